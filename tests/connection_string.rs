//! The tables under `data`, and the corpus of the fuzzer.

#![allow(
    clippy::disallowed_methods,
    reason = "these tests read files of this workspace"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failure is a failed test"
)]

#[path = "../fuzz/src/connection_string.rs"]
mod fuzzed;

use chronicle_connection::{
    Authentication, ConnectionString, ConnectionStringError, ConnectionStringErrorKind as Kind,
    Endpoint, Host, LoadBalancer, Servers,
};
use serde::{Deserialize, de::DeserializeOwned};
use std::{fs, net::IpAddr, path::Path};

#[test]
fn valid_strings_mean_what_the_table_says() {
    for case in table::<ValidCase>("connection_string_valid.json") {
        let Case { name, input, .. } = &case.case;
        let string = case
            .case
            .parse()
            .unwrap_or_else(|error| panic!("{name}: {input}: {error}"));
        assert_eq!(meaning(&string), case.meaning, "{name}: {input}");

        let redacted = string.to_string();
        if let Some(expected) = case.redacted {
            assert_eq!(redacted, expected, "{name}");
        }
        case.case.assert_hidden(&redacted);
        case.case.assert_hidden(&format!("{string:?} {string:#?}"));

        let full = string.to_string_with_secrets();
        if let Some(expected) = case.full {
            assert_eq!(*full, expected, "{name}");
        }
        let again = ConnectionString::parse_lenient(&full);
        assert_eq!(again.as_ref(), Ok(&string), "{name}: {}", *full);
    }
}

#[test]
fn invalid_strings_are_refused_where_and_why_the_table_says() {
    for case in table::<InvalidCase>("connection_string_invalid.json") {
        let Case { name, input, .. } = &case.case;
        let error = match case.case.parse() {
            Err(error) => error,
            Ok(string) => panic!("{name}: {input} was taken as {string}"),
        };
        assert_eq!(described(&error), case.error, "{name}: {input}");
        case.case
            .assert_hidden(&format!("{error} {error:?} {error:#?}"));
        assert!(input.is_char_boundary(error.position().unwrap()), "{name}");
    }
}

#[test]
fn lenient_parsing_refuses_all_but_unknown_options() {
    for case in table::<InvalidCase>("connection_string_invalid.json") {
        let result = ConnectionString::parse_lenient(&case.case.input);
        if case.error.kind != "unknown-option" {
            assert!(result.is_err(), "{}", case.case.name);
        }
    }
}

#[test]
fn the_corpus_of_the_fuzzer_holds() {
    let corpus = workspace().join("fuzz/corpus/connection_string");
    let mut replayed = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        fuzzed::check(&fs::read(entry.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed > 0);
}

#[derive(Deserialize)]
struct Case {
    name: String,
    input: String,
    #[serde(default)]
    lenient: bool,
    #[serde(default)]
    secrets: Vec<String>,
}

impl Case {
    fn parse(&self) -> Result<ConnectionString, ConnectionStringError> {
        if self.lenient {
            return ConnectionString::parse_lenient(&self.input);
        }
        self.input.parse()
    }

    fn assert_hidden(&self, text: &str) {
        for secret in &self.secrets {
            assert!(!text.contains(secret), "{}: {secret} in {text}", self.name);
        }
    }
}

#[derive(Deserialize)]
struct ValidCase {
    #[serde(flatten)]
    case: Case,
    #[serde(flatten)]
    meaning: Meaning,
    redacted: Option<String>,
    full: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Meaning {
    servers: Option<Vec<Server>>,
    srv: Option<String>,
    authentication: Mode,
    #[serde(default)]
    options: KnownOptions,
    #[serde(default)]
    unknown: Vec<(String, String)>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Server {
    name: Option<String>,
    ip: Option<IpAddr>,
    port: u16,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Mode {
    None,
    ClientCredentials { id: String, secret: String },
    ApiKey(String),
}

#[derive(Debug, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KnownOptions {
    skip_tls_validation: Option<bool>,
    load_balancer: Option<String>,
    srv_name_server: Option<Server>,
    certificate_path: Option<String>,
    certificate_password: Option<String>,
    skip_compatibility_check: Option<bool>,
}

fn meaning(string: &ConnectionString) -> Meaning {
    let (servers, srv) = match string.servers() {
        Servers::List(list) => (Some(list.iter().map(server).collect()), None),
        Servers::Srv(name) => (None, Some(name.clone())),
    };
    Meaning {
        servers,
        srv,
        authentication: match string.authentication() {
            Authentication::None => Mode::None,
            Authentication::ClientCredentials { id, secret } => Mode::ClientCredentials {
                id: id.to_owned(),
                secret: secret.expose().to_owned(),
            },
            Authentication::ApiKey(key) => Mode::ApiKey(key.expose().to_owned()),
        },
        options: KnownOptions {
            skip_tls_validation: string.skip_tls_validation(),
            load_balancer: string.load_balancer().map(|strategy| {
                match strategy {
                    LoadBalancer::LeastConnections => "least-connections",
                    LoadBalancer::RoundRobin => "round-robin",
                    LoadBalancer::Random => "random",
                }
                .to_owned()
            }),
            srv_name_server: string.srv_name_server().map(server),
            certificate_path: string.certificate_path().map(str::to_owned),
            certificate_password: string
                .certificate_password()
                .map(|password| password.expose().to_owned()),
            skip_compatibility_check: string.skip_compatibility_check(),
        },
        unknown: string
            .unknown_options()
            .map(|(name, value)| (name.to_owned(), value.expose().to_owned()))
            .collect(),
    }
}

fn server(endpoint: &Endpoint) -> Server {
    let (name, ip) = match &endpoint.host {
        Host::Name(name) => (Some(name.clone()), None),
        Host::Ip(address) => (None, Some(*address)),
    };
    Server {
        name,
        ip,
        port: endpoint.port,
    }
}

#[derive(Deserialize)]
struct InvalidCase {
    #[serde(flatten)]
    case: Case,
    error: Described,
}

#[derive(Debug, PartialEq, Default, Deserialize)]
struct Described {
    kind: String,
    position: Option<usize>,
    character: Option<char>,
    option: Option<String>,
    nearest: Option<String>,
}

fn described(error: &ConnectionStringError) -> Described {
    let kind = error.kind();
    let mut described = Described {
        kind: kind_name(kind),
        position: error.position(),
        ..Described::default()
    };
    if let Kind::Unencoded(character) = kind {
        described.character = Some(character);
    }
    if let Kind::UnknownOption { nearest } = kind {
        described.nearest = nearest.map(str::to_owned);
    }
    if let Kind::DuplicateOption(name) | Kind::MissingValue(name) | Kind::InvalidBoolean(name) =
        kind
    {
        described.option = Some(name.to_owned());
    }
    described
}

/// `Unencoded('@')` as `unencoded`.
fn kind_name(kind: Kind) -> String {
    let mut name = String::new();
    let debug = format!("{kind:?}");
    for character in debug.chars().take_while(char::is_ascii_alphanumeric) {
        if character.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(character.to_ascii_lowercase());
    }
    name
}

fn table<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let text = fs::read_to_string(workspace().join("tests/data").join(name)).unwrap();
    let cases: Vec<T> = serde_json::from_str(&text).unwrap();
    assert!(!cases.is_empty());
    cases
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
