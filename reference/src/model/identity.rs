//! Who may call a server.

use http::{HeaderMap, Response, StatusCode, header};
use percent_encoding::percent_decode_str;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Whom a server knows; `Default` is the client of a development server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentication {
    /// The id of the one client that gets tokens.
    pub client_id: String,
    /// The secret of that client.
    pub client_secret: String,
    /// The key that does instead of a token.
    pub api_key: String,
    /// How long a token is valid: an hour.
    pub token_life: Duration,
    /// What the tokens of this server begin with. Servers of one cluster need different ones.
    pub issuer: String,
    /// Takes the tokens of servers with another issuer, as servers with common keys do: true.
    pub trusts_others: bool,
    /// Compatibility is checked for anybody: true.
    pub anonymous_check: bool,
}

impl Default for Authentication {
    fn default() -> Self {
        Self {
            client_id: "chronicle-dev-client".to_owned(),
            client_secret: "chronicle-dev-secret".to_owned(),
            api_key: "chronicle-dev-key".to_owned(),
            token_life: Duration::from_secs(3600),
            issuer: "token".to_owned(),
            trusts_others: true,
            anonymous_check: true,
        }
    }
}

/// The tokens that a server has given out, with their ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Tokens {
    valid: BTreeMap<String, Instant>,
    issued: u64,
}

impl Tokens {
    /// Forgets all tokens, and does not give the same out again.
    pub(super) fn reset(&mut self) {
        self.valid.clear();
    }

    /// `POST /connect/token`
    pub(super) fn answer(
        &mut self,
        now: Instant,
        known: Option<&Authentication>,
        form: &[u8],
    ) -> Response<String> {
        let Some(known) = known else {
            return json(StatusCode::NOT_FOUND, String::new());
        };
        let form = fields(form);
        let field = |name: &str| form.get(name).map(String::as_str);
        if field("grant_type") != Some("client_credentials") {
            return error(StatusCode::BAD_REQUEST, "unsupported_grant_type");
        }
        let (id, secret) = (known.client_id.as_str(), known.client_secret.as_str());
        if (field("client_id"), field("client_secret")) != (Some(id), Some(secret)) {
            return error(StatusCode::UNAUTHORIZED, "invalid_client");
        }
        self.valid.retain(|_, end| now < *end);
        self.issued += 1;
        let token = format!("{}-{}", known.issuer, self.issued);
        self.valid.insert(token.clone(), now + known.token_life);
        let life = known.token_life.as_secs();
        let body =
            format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":{life}}}"#);
        json(StatusCode::OK, body)
    }

    /// Whether headers prove that their sender may call.
    pub(super) fn admit(&self, now: Instant, known: &Authentication, headers: &HeaderMap) -> bool {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if text("api-key") == Some(&known.api_key) {
            return true;
        }
        let authorization = text(header::AUTHORIZATION.as_str());
        let Some(token) = authorization.and_then(|text| text.strip_prefix("Bearer ")) else {
            return false;
        };
        match token.rsplit_once('-') {
            Some((issuer, _)) if issuer == known.issuer => {
                self.valid.get(token).is_some_and(|end| now < *end)
            }
            Some(_) => known.trusts_others,
            None => false,
        }
    }
}

fn fields(form: &[u8]) -> BTreeMap<String, String> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    String::from_utf8_lossy(form)
        .split('&')
        .filter_map(|field| field.split_once('='))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

fn error(status: StatusCode, error: &str) -> Response<String> {
    json(status, format!(r#"{{"error":"{error}"}}"#))
}

fn json(status: StatusCode, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}
