//! What holds for the connection string of any text. The fuzzer and the tests both call it.

use chronicle_connection::{Authentication, ConnectionString};

/// Parses, prints and parses again; panics where a promise is broken.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for parse in [ConnectionString::parse, ConnectionString::parse_lenient] {
        match parse(text) {
            Ok(string) => {
                assert_eq!(
                    parse(&string.to_string_with_secrets()).as_ref(),
                    Ok(&string)
                );
                check_redacted(&string);
            }
            Err(error) => {
                let position = error.position().expect("errors of a text have a position");
                assert!(text.is_char_boundary(position), "{error}");
            }
        }
    }
}

/// The redacted form is the full form of the same string with other secrets, so it cannot hold
/// any of the real ones.
fn check_redacted(string: &ConnectionString) {
    let redacted = string.to_string();
    assert_eq!(
        format!("{string:?}"),
        format!("ConnectionString({redacted})")
    );
    let shown = ConnectionString::parse_lenient(&redacted).expect("the redacted form parses");
    assert_eq!(shown.servers(), string.servers());
    assert_eq!(shown.certificate_path(), string.certificate_path());
    assert_eq!(shown.srv_name_server(), string.srv_name_server());
    match (shown.authentication(), string.authentication()) {
        (Authentication::None, Authentication::None) => {}
        (Authentication::ApiKey(key), Authentication::ApiKey(_)) => {
            assert_eq!(key.expose(), "REDACTED");
        }
        (
            Authentication::ClientCredentials { id, secret },
            Authentication::ClientCredentials { id: real_id, .. },
        ) => {
            assert_eq!(id, real_id);
            assert_eq!(secret.expose(), "REDACTED");
        }
        (shown, real) => panic!("{shown:?} shown for {real:?}"),
    }
    if let Some(password) = shown.certificate_password() {
        assert_eq!(password.expose(), "REDACTED");
    }
    for (name, value) in shown.unknown_options() {
        assert_eq!((name, value.expose()), ("REDACTED", ""));
    }
}
