//! What to do about credentials that a server refuses.

use crate::problem::Problem;
use chronicle_connection_tokio::{
    Authentication, ConnectionString, Endpoint, FatalError, Host, Secret, Servers,
};

/// Why a connection was given up, with the remedy where credentials are what was wrong.
pub(crate) fn gave_up(error: &FatalError, advice: &str) -> Problem {
    Problem::GaveUp(match error {
        FatalError::Credentials { .. } => format!("{error}; {advice}"),
        FatalError::Incompatible(_) | FatalError::ConnectTimeout { .. } => error.to_string(),
    })
}

/// The remedy, as the second half of a sentence.
pub(crate) fn advice(string: &ConnectionString) -> String {
    let development = ConnectionString::development();
    let what = match string.authentication() {
        given if given == development.authentication() => {
            return "the server does not know the development client; give the client id and secret \
                    that it was set up with"
                .to_owned();
        }
        Authentication::None => "give a client id and secret as in chronicle://id:secret@host",
        Authentication::ApiKey(_) => "correct the apiKey",
        Authentication::ClientCredentials { .. } => "correct the client id and secret",
    };
    match with_credentials_of(&development, string) {
        Some(string) => {
            format!("{what}, or connect to a development server with {string}")
        }
        None => what.to_owned(),
    }
}

/// The development string for the server that the user means. What it has for a secret is in every
/// manual.
fn with_credentials_of(
    development: &ConnectionString,
    string: &ConnectionString,
) -> Option<String> {
    let Servers::List(servers) = string.servers() else {
        return None;
    };
    let server = servers.iter().find(|server| is_local(server))?;
    let Authentication::ClientCredentials { id, secret } = development.authentication() else {
        return None;
    };
    let string = ConnectionString::builder()
        .endpoint(server)
        .credentials(id, Secret::new(secret.expose()))
        .skip_tls_validation(true)
        .build();
    Some(string.ok()?.to_string_with_secrets().to_string())
}

fn is_local(server: &Endpoint) -> bool {
    match &server.host {
        Host::Name(name) => name == "localhost",
        Host::Ip(address) => address.is_loopback(),
    }
}
