//! Tokens for client credentials (OAuth 2.0, RFC 6749 section 4.4).

use crate::{Failure, Secret};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use std::{
    fmt,
    time::{Duration, Instant},
};
use zeroize::Zeroizing;

/// Gets tokens and keeps the newest: no I/O, no clock.
///
/// A [`Connection`](crate::Connection) has one of its own. Alone it is driven like this: when
/// [`due`](Self::due) has come, or when a token is needed and [`token`](Self::token) has none,
/// [`begin`](Self::begin) gives the request to send, and [`finish`](Self::finish) takes what came of
/// it.
///
/// - A token is refreshed ahead of its expiry by a quarter of its life, at most 60 s.
/// - There is one fetch at a time, whoever asks.
/// - A fetch that failed is not repeated for 5 s unless [`begin`](Self::begin) is called for it, and
///   the old token serves while it is valid.
/// - A token that a server rejected is never served again.
#[derive(Debug, Clone)]
pub struct TokenMachine {
    id: String,
    secret: Secret,
    token: Option<Token>,
    /// Of the newest token that was ever fetched.
    generation: u64,
    is_fetching: bool,
    /// When a failed fetch may be repeated.
    retry_at: Option<Instant>,
}

/// A bearer token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    value: Secret,
    generation: u64,
    refresh_at: Instant,
    expires_at: Instant,
}

impl Token {
    /// The `authorization` entry that carries the token, marked sensitive.
    pub fn authorization(&self) -> HeaderValue {
        let text = Zeroizing::new(format!("Bearer {}", self.value.expose()));
        // A token is visible ASCII, or it would not have been accepted.
        let mut value =
            HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }

    /// 1 for the first token of a machine, then one more each.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// When the token is no longer valid.
    pub fn expires_at(&self) -> Instant {
        self.expires_at
    }
}

impl TokenMachine {
    /// A machine without a token yet.
    pub fn new(id: impl Into<String>, secret: Secret) -> Self {
        Self {
            id: id.into(),
            secret,
            token: None,
            generation: 0,
            is_fetching: false,
            retry_at: None,
        }
    }

    /// The token to send, if a valid one is at hand.
    pub fn token(&self, now: Instant) -> Option<&Token> {
        self.token.as_ref().filter(|token| now < token.expires_at)
    }

    /// The generation of the newest token that was fetched; 0 before the first.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// When the next fetch is due: at once without a token, else ahead of its expiry, and not
    /// sooner than 5 s after one that failed. `None` while one is under way.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        if self.is_fetching {
            return None;
        }
        let wanted = self.token.as_ref().map_or(now, |token| token.refresh_at);
        Some(self.retry_at.map_or(wanted, |retry| retry.max(wanted)))
    }

    /// The request of a fetch, throttle or not; `None` while one is under way.
    pub fn begin(&mut self) -> Option<Request<Bytes>> {
        if self.is_fetching {
            return None;
        }
        self.is_fetching = true;
        let mut request = Request::new(Bytes::from_owner(self.form()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = http::Uri::from_static(PATH);
        request.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        Some(request)
    }

    fn form(&self) -> Zeroizing<String> {
        let (id, secret) = (self.id.as_str(), self.secret.expose());
        // Room for all of it from the start: a buffer that grows leaves copies of secrets behind.
        let room = GRANT.len() + CLIENT_SECRET.len() + 3 * (id.len() + secret.len());
        let mut form = Zeroizing::new(String::with_capacity(room));
        form.push_str(GRANT);
        form.extend(utf8_percent_encode(id, FORM));
        form.push_str(CLIENT_SECRET);
        form.extend(utf8_percent_encode(secret, FORM));
        form
    }

    /// Takes what came of a fetch.
    ///
    /// # Errors
    /// Why there is no new token. An old one serves on while it is valid.
    pub fn finish(
        &mut self,
        now: Instant,
        answer: Result<&Response<Bytes>, Failure>,
    ) -> Result<(), TokenError> {
        self.is_fetching = false;
        let read = answer.map_err(TokenError::Failure).and_then(read);
        let (value, life) = read.inspect_err(|_| self.retry_at = Some(now + RETRY_AFTER))?;
        self.retry_at = None;
        self.generation += 1;
        self.token = Some(Token {
            value,
            generation: self.generation,
            refresh_at: now + (life - LEAD.min(life / 4)),
            expires_at: now + life,
        });
        Ok(())
    }

    /// Forgets a fetch whose answer will never come.
    pub fn abandon(&mut self) {
        self.is_fetching = false;
    }

    /// A server rejected the token of a generation: if it is the one at hand, it is dropped.
    pub fn reject(&mut self, generation: u64) {
        self.token.take_if(|token| token.generation <= generation);
    }

    /// Whether a fetch would come sooner than 5 s after one that failed.
    pub fn is_throttled(&self, now: Instant) -> bool {
        self.retry_at.is_some_and(|retry| now < retry)
    }
}

#[cfg(feature = "model-checking")]
impl TokenMachine {
    /// Writes what decides what this machine does from `now` on.
    pub(crate) fn normal_form<H: std::hash::Hasher>(
        &self,
        now: Instant,
        form: &mut crate::NormalForm<H>,
    ) {
        let Self {
            id: _,
            secret: _,
            token: _,
            generation,
            is_fetching,
            retry_at,
        } = self;
        // Rises only; but for whether there ever was a token.
        form.value((*generation > 0, is_fetching));
        // A token that has expired is as good as none: both are due at once. And a throttle that is
        // over throttles nothing.
        form.optional(self.token(now), |form, token| {
            let Token {
                value,
                generation: of_token,
                refresh_at,
                expires_at,
            } = token;
            form.value((value.expose(), generation.saturating_sub(*of_token)));
            form.instant(*refresh_at);
            form.instant(*expires_at);
        });
        form.optional(retry_at.filter(|retry| now < *retry), |form, retry| {
            form.instant(retry);
        });
    }
}

/// Why a fetch brought no token. Never holds anything of an answer but well-known words.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TokenError {
    /// The request failed below HTTP.
    Failure(Failure),
    /// The server refused the client's credentials.
    Refused {
        /// The HTTP status.
        status: u16,
        /// OAuth's word for it (RFC 6749 section 5.2), where the server gave a known one.
        error: Option<&'static str>,
    },
    /// The server answered with another HTTP status than 200.
    Http(u16),
    /// The server answered 200 with something that is no token.
    Malformed(&'static str),
    /// A fetch failed a moment ago; the next is not made yet.
    Throttled,
    /// There is no session whose server could be asked.
    NoSession,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(failure) => failure.fmt(f),
            Self::Refused {
                status,
                error: Some(error),
            } => write!(f, "client id or secret refused ({error}, HTTP {status})"),
            Self::Refused {
                status,
                error: None,
            } => write!(f, "client id or secret refused (HTTP {status})"),
            Self::Http(status) => write!(f, "HTTP {status}"),
            Self::Malformed(what) => write!(f, "the answer is no token: {what}"),
            Self::Throttled => f.write_str("the last try failed less than 5 s ago"),
            Self::NoSession => f.write_str("there is no session"),
        }
    }
}

impl std::error::Error for TokenError {}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    token_type: Option<String>,
    expires_in: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

fn read(answer: &Response<Bytes>) -> Result<(Secret, Duration), TokenError> {
    let status = answer.status().as_u16();
    if answer.body().len() > TOKEN_LIMIT {
        return Err(TokenError::Malformed("it is too long"));
    }
    match status {
        200 => {}
        401 | 403 => {
            return Err(TokenError::Refused {
                status,
                error: oauth_error(answer.body()),
            });
        }
        400 => {
            return Err(match oauth_error(answer.body()) {
                error @ Some("invalid_client" | "invalid_grant" | "unauthorized_client") => {
                    TokenError::Refused { status, error }
                }
                Some(_) | None => TokenError::Http(status),
            });
        }
        status => return Err(TokenError::Http(status)),
    }
    let answer: Answer = serde_json::from_slice(answer.body())
        .map_err(|_| TokenError::Malformed("it is no JSON object with an access_token"))?;
    let value = Secret::new(answer.access_token);
    let token = value.expose();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TokenError::Malformed("its access_token fits no header"));
    }
    let is_bearer = |kind: &String| kind.eq_ignore_ascii_case("bearer");
    if !answer.token_type.as_ref().is_none_or(is_bearer) {
        return Err(TokenError::Malformed("its token_type is not Bearer"));
    }
    let seconds = match answer.expires_in {
        None => Some(DEFAULT_LIFE),
        Some(serde_json::Value::String(text)) if text.bytes().all(|b| b.is_ascii_digit()) => {
            text.parse().ok()
        }
        Some(value) => value.as_u64(),
    };
    match seconds {
        Some(seconds @ 1..=LONGEST_LIFE) => Ok((value, Duration::from_secs(seconds))),
        Some(_) | None => Err(TokenError::Malformed(
            "its expires_in is no number of seconds up to a year",
        )),
    }
}

/// The known word in an OAuth error, which alone is safe to repeat.
fn oauth_error(body: &Bytes) -> Option<&'static str> {
    let refusal: Refusal = serde_json::from_slice(body).ok()?;
    OAUTH_ERRORS
        .into_iter()
        .find(|known| *known == refusal.error)
}

/// The path of a token request.
const PATH: &str = "/connect/token";

const GRANT: &str = "grant_type=client_credentials&client_id=";
const CLIENT_SECRET: &str = "&client_secret=";

/// What an answer may be long.
pub(crate) const TOKEN_LIMIT: usize = 64 * 1024;

/// All but the unreserved characters of RFC 3986, which forms take as they are.
const FORM: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// RFC 6749 section 5.2.
const OAUTH_ERRORS: [&str; 6] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
];

const LEAD: Duration = Duration::from_secs(60);
const RETRY_AFTER: Duration = Duration::from_secs(5);
const DEFAULT_LIFE: u64 = 3600;
const LONGEST_LIFE: u64 = 31_536_000;
