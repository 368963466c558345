//! Properties of connection strings, and the builder. The cases one by one are in the tables under
//! `tests/data` of the workspace.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failure is a failed test"
)]

#[path = "../../fuzz/src/connection_string.rs"]
mod fuzzed;

use chronicle_connection::{
    Authentication, ConnectionString, ConnectionStringBuilder, ConnectionStringErrorKind as Kind,
    DEFAULT_PORT, Endpoint, Host, LoadBalancer, Secret, Servers,
};
use proptest::{collection, option, prelude::*, sample};
use std::net::{Ipv4Addr, Ipv6Addr};

proptest! {
    #[test]
    fn what_the_builder_builds_prints_and_parses_to_the_same(builder in builder()) {
        let string = builder.build().unwrap();
        let full = string.to_string_with_secrets();
        prop_assert_eq!(full.parse(), Ok(string.clone()), "{}", *full);
        prop_assert_eq!(ConnectionString::parse_lenient(&full), Ok(string));
    }

    #[test]
    fn any_text_holds_the_promises_of_the_fuzzer(text in any::<String>()) {
        check(&text);
        check(&format!("chronicle://{text}"));
        check(&format!("chronicle://h?{text}"));
    }

    #[test]
    fn any_pile_of_pieces_holds_them_and_no_error_tells_a_secret(
        pieces in collection::vec(sample::select(PIECES), 0..12)
    ) {
        let text = pieces.concat();
        check(&text);
        check(&format!("chronicle://{text}"));
    }

    #[test]
    fn secrets_are_not_shown_whatever_surrounds_them(before in text(), after in text()) {
        let secret = || Secret::new(format!("{before}{CANARY}{after}"));
        let base = ConnectionString::builder()
            .server("node1")
            .certificate_password(secret());
        let strings = [
            base.clone().credentials("id", secret()).build().unwrap(),
            base.api_key(Secret::new(CANARY)).build().unwrap(),
        ];
        for string in strings {
            prop_assert!(string.to_string_with_secrets().contains(CANARY));
            prop_assert!(!shown(&string).contains(CANARY));
        }
    }

    #[test]
    fn one_stray_character_exposes_no_secret(
        text in sample::select(WITH_SECRETS),
        position in any::<sample::Index>(),
        stray in sample::select(STRAY),
    ) {
        let mut text = text.to_owned();
        text.insert(position.index(text.len() + 1), stray);
        for parse in [ConnectionString::parse, ConnectionString::parse_lenient] {
            let shown = match parse(&text) {
                Ok(string) => shown(&string),
                Err(error) => format!("{error} {error:?}"),
            };
            // Half of it, since the stray character may have split it.
            prop_assert!(!shown.contains(&CANARY[..6]), "{} shown for {}", shown, text);
            prop_assert!(!shown.contains(&CANARY[6..]), "{} shown for {}", shown, text);
        }
    }
}

#[test]
fn a_text_of_64_kib_parses_and_a_longer_one_does_not() {
    let start = "chronicle://h:35000?apiKey=";
    let longest = format!("{start}{}", "k".repeat(64 * 1024 - start.len()));
    let string = ConnectionString::parse(&longest).unwrap();
    assert_eq!(*string.to_string_with_secrets(), longest);

    let error = ConnectionString::parse(&format!("{longest}k")).unwrap_err();
    assert_eq!(error.kind(), Kind::TooLong);
    assert_eq!(error.position(), Some(64 * 1024));
}

#[test]
fn a_text_that_would_be_too_long_when_printed_does_not_parse() {
    let text = format!("chronicle://h?apiKey={}", "=".repeat(30_000));
    let error = ConnectionString::parse(&text).unwrap_err();
    assert_eq!(error.kind(), Kind::TooLong);
}

#[test]
fn the_development_string_is_what_it_says() {
    let string = ConnectionString::development();
    assert_eq!(
        *string.to_string_with_secrets(),
        "chronicle://chronicle-dev-client:chronicle-dev-secret@localhost:35000\
         ?skipTlsValidation=true"
    );
    assert_eq!(string.to_string_with_secrets().parse(), Ok(string));
}

#[test]
fn the_builder_normalises_as_the_parser_does() {
    let string = ConnectionString::builder()
        .server("NODE1.")
        .server("node1:35000")
        .endpoint(&Endpoint::new(Host::Name("Node1".to_owned()), DEFAULT_PORT))
        .server("192.0.2.1.")
        .build()
        .unwrap();
    let node1 = Endpoint::new(Host::Name("node1".to_owned()), 35000);
    let address = Endpoint::new(Ipv4Addr::new(192, 0, 2, 1).into(), 35000);
    assert_eq!(*string.servers(), Servers::List(vec![node1, address]));
    assert_eq!(string.authentication(), Authentication::None);
}

#[test]
fn the_builder_refuses_what_the_parser_refuses() {
    let builder = ConnectionString::builder;
    let node = || builder().server("node1");
    let empty = || Secret::new("");
    let line = || Secret::new("a\nb");
    let long = || Secret::new("k".repeat(64 * 1024));
    let cases = [
        (builder(), Kind::EmptyHost),
        (builder().server(""), Kind::EmptyHost),
        (builder().server("a,b"), Kind::HostCharacter),
        (builder().server("a b"), Kind::HostCharacter),
        (builder().server("u:p@a"), Kind::InvalidPort),
        (builder().server("::1"), Kind::BareIpv6),
        (builder().server("node1:0"), Kind::PortOutOfRange),
        (node().srv("cluster.test"), Kind::ServersAndSrv),
        (builder().srv("cluster.test:1"), Kind::SrvPort),
        (builder().srv("192.0.2.1"), Kind::SrvAddress),
        (
            node().srv_name_server("ns1.test"),
            Kind::NameServerWithoutSrv,
        ),
        (
            builder().srv("c.test").srv_name_server(":53"),
            Kind::EmptyHost,
        ),
        (
            node().credentials("", Secret::new("b")),
            Kind::IncompleteCredentials,
        ),
        (
            node().credentials("a", empty()),
            Kind::IncompleteCredentials,
        ),
        (
            node().credentials("a\0", Secret::new("b")),
            Kind::ControlCharacter,
        ),
        (node().credentials("a", line()), Kind::ControlCharacter),
        (node().api_key(empty()), Kind::MissingValue("apiKey")),
        (node().api_key(line()), Kind::ControlCharacter),
        (node().api_key(Secret::new("a b")), Kind::InvalidApiKey),
        (node().api_key(long()), Kind::TooLong),
        (
            node().certificate_path(""),
            Kind::MissingValue("certificatePath"),
        ),
        (node().certificate_path("a\tb"), Kind::ControlCharacter),
        (
            node().certificate_password(empty()),
            Kind::MissingValue("certificatePassword"),
        ),
        (node().certificate_password(line()), Kind::ControlCharacter),
        (
            node()
                .credentials("a", Secret::new("b"))
                .api_key(Secret::new("k")),
            Kind::CredentialsAndApiKey,
        ),
        (
            node()
                .credentials("a", Secret::new("b"))
                .no_authentication(),
            Kind::AuthenticationAndNone,
        ),
        (
            node().api_key(Secret::new("k")).no_authentication(),
            Kind::AuthenticationAndNone,
        ),
        (
            (0..65).fold(builder(), |builder, n| builder.server(format!("n{n}"))),
            Kind::TooManyHosts,
        ),
    ];
    for (builder, kind) in cases {
        let error = builder.build().unwrap_err();
        assert_eq!((error.kind(), error.position()), (kind, None));
    }
}

#[test]
fn errors_say_what_where_and_what_to_do() {
    for (text, expected) in [
        (
            "chronicle://node1?skipTlsValidaton=true",
            "connection string, byte 18: unknown option, did you mean skipTlsValidation? (in a \
             value, write '&' as %26)",
        ),
        (
            "chronicle://app:a@b@node1",
            "connection string, byte 17: a '@' in the client id or secret must be written %40",
        ),
        (
            "chronicle://node1:65536",
            "connection string, byte 18: a port is 1 to 65535; correct it",
        ),
    ] {
        let error = ConnectionString::parse(text).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

fn check(text: &str) {
    fuzzed::check(text.as_bytes());
    if let Err(error) = ConnectionString::parse_lenient(text) {
        assert!(!format!("{error} {error:?}").contains(CANARY), "{text}");
    }
}

fn shown(string: &ConnectionString) -> String {
    format!(
        "{string} {string:?} {string:#?} {:?}",
        string.authentication()
    )
}

fn builder() -> impl Strategy<Value = ConnectionStringBuilder> {
    let list = collection::vec(endpoint(), 1..6).prop_map(|endpoints| {
        let builder = ConnectionString::builder();
        endpoints
            .iter()
            .fold(builder, ConnectionStringBuilder::endpoint)
    });
    let srv = (name(), option::of(endpoint())).prop_map(|(name, name_server)| {
        let builder = ConnectionString::builder().srv(name);
        set(builder, name_server, |builder, name_server| {
            builder.srv_name_server(name_server.to_string())
        })
    });
    let strategy = sample::select(&[
        LoadBalancer::LeastConnections,
        LoadBalancer::RoundRobin,
        LoadBalancer::Random,
    ]);
    let options = (
        option::of(any::<bool>()),
        option::of(any::<bool>()),
        option::of(strategy),
        option::of(text()),
        option::of(text()),
    );
    (prop_oneof![list, srv], mode(), options).prop_map(|(builder, mode, options)| {
        let builder = match mode {
            Mode::Unsaid => builder,
            Mode::None => builder.no_authentication(),
            Mode::Credentials(id, secret) => builder.credentials(id, Secret::new(secret)),
            Mode::ApiKey(key) => builder.api_key(Secret::new(key)),
        };
        let (tls, check, strategy, path, password) = options;
        let builder = set(builder, tls, ConnectionStringBuilder::skip_tls_validation);
        let builder = set(
            builder,
            check,
            ConnectionStringBuilder::skip_compatibility_check,
        );
        let builder = set(builder, strategy, ConnectionStringBuilder::load_balancer);
        let builder = set(builder, path, ConnectionStringBuilder::certificate_path);
        set(
            builder,
            password.map(Secret::new),
            ConnectionStringBuilder::certificate_password,
        )
    })
}

fn set<T>(
    builder: ConnectionStringBuilder,
    value: Option<T>,
    setter: impl Fn(ConnectionStringBuilder, T) -> ConnectionStringBuilder,
) -> ConnectionStringBuilder {
    match value {
        Some(value) => setter(builder, value),
        None => builder,
    }
}

#[derive(Debug, Clone)]
enum Mode {
    Unsaid,
    None,
    Credentials(String, String),
    ApiKey(String),
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        Just(Mode::Unsaid),
        Just(Mode::None),
        (text(), text()).prop_map(|(id, secret)| Mode::Credentials(id, secret)),
        "[!-~]{1,40}".prop_map(Mode::ApiKey),
    ]
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    let host = prop_oneof![
        name().prop_map(Host::Name),
        any::<Ipv4Addr>().prop_map(Host::from),
        any::<Ipv6Addr>().prop_map(Host::from),
    ];
    (host, 1..=u16::MAX).prop_map(|(host, port)| Endpoint::new(host, port))
}

fn name() -> impl Strategy<Value = String> {
    "([a-zA-Z0-9_]([a-zA-Z0-9_-]{0,9}[a-zA-Z0-9_])?[.]){0,3}[a-zA-Z_][a-zA-Z0-9_]{0,9}[.]?"
}

/// Text that a part of a connection string can hold.
fn text() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| {
        let mut text: String = text.chars().filter(|c| !c.is_control()).collect();
        if text.is_empty() {
            text.push('%');
        }
        text
    })
}

const CANARY: &str = "cAnArY-wInGeD";

const PIECES: &[&str] = &[
    "chronicle://",
    "chronicle+srv://",
    CANARY,
    "id:",
    "@",
    ":",
    "/",
    "?",
    "#",
    ",",
    "&",
    "=",
    "%",
    "%41",
    "%C3",
    "%00",
    "é",
    " ",
    ".",
    "[::1]",
    "[",
    "]",
    "node1",
    "1",
    "35000",
    "auth",
    "none",
    "apiKey",
    "skipTlsValidation",
    "true",
    "loadBalancer",
    "random",
    "srvNameServer",
    "certificatePassword",
    "unknown",
];

const WITH_SECRETS: &[&str] = &[
    "chronicle://id:cAnArY-wInGeD@node1:35001,[::1]?skipTlsValidation=true",
    "chronicle+srv://id:cAnArY-wInGeD@cluster.test/?srvNameServer=ns1.test",
    "chronicle://node1?apiKey=cAnArY-wInGeD&loadBalancer=random",
    "chronicle://node1?certificatePath=/c.pfx&certificatePassword=cAnArY-wInGeD",
    "chronicle://node1?token=cAnArY-wInGeD",
];

const STRAY: &[char] = &[
    '@', ':', '/', '?', '#', ',', '&', '=', '%', '[', ']', '.', ' ', '+', '\0', 'é', 'x', '1',
];
