//! What to do about credentials that a server refuses.

use chronicle_connection_tokio::{
    Authentication, ConnectionString, Endpoint, Host, Secret, Servers,
};

/// The remedy, as the second half of a sentence.
pub(crate) fn advice(string: &ConnectionString) -> String {
    let what = match string.authentication() {
        Authentication::None => "give a client id and secret as in chronicle://id:secret@host",
        Authentication::ApiKey(_) => "correct the apiKey",
        Authentication::ClientCredentials { .. } => "correct the client id and secret",
    };
    match development(string) {
        Some(development) => {
            format!("{what}, or connect to a development server with {development}")
        }
        None => what.to_owned(),
    }
}

/// The development string for the server that the user means. What it has for a secret is in every
/// manual.
fn development(string: &ConnectionString) -> Option<String> {
    let Servers::List(servers) = string.servers() else {
        return None;
    };
    let server = servers.iter().find(|server| is_local(server))?;
    let development = ConnectionString::development();
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
