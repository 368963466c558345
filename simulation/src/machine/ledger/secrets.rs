//! What no event may show.

use super::Broken;
use bytes::Bytes;
use chronicle_connection::{Authentication, ConnectionString, Event};

/// The secrets of a machine: those of its connection string, and the newest tokens.
#[derive(Debug, Clone, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    pub(super) fn new(string: &ConnectionString) -> Self {
        Self(match string.authentication() {
            Authentication::None => vec![],
            Authentication::ClientCredentials { secret, .. } => vec![secret.expose().to_owned()],
            Authentication::ApiKey(key) => vec![key.expose().to_owned()],
        })
    }

    /// The body of an answer that may hold a token.
    pub(super) fn token(&mut self, body: &Bytes) {
        let body = String::from_utf8_lossy(body);
        let token = body.split(r#""access_token":""#).nth(1);
        if let Some(token) = token.and_then(|rest| rest.split('"').next()) {
            if self.0.len() == MOST {
                // The first is that of the connection string.
                self.0.remove(1);
            }
            self.0.push(token.to_owned());
        }
    }

    pub(super) fn are_kept_by(&self, event: &Event) -> Result<(), Broken> {
        if self.0.is_empty() {
            return Ok(());
        }
        let text = format!("{event} {event:?}");
        let mut told = self.0.iter().filter(|secret| secret.len() >= SHORTEST);
        Broken::unless(told.all(|secret| !text.contains(secret.as_str())), || {
            "a secret in an event".to_owned()
        })
    }
}

/// How many are looked for.
const MOST: usize = 8;

/// What is shorter turns up in any text.
const SHORTEST: usize = 4;
