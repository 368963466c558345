//! No secret is shown: not by `Debug`, `Display`, an error, or the log at its most talkative.
//!
//! Canaries take the place of every secret. They are looked for raw, percent-encoded and in base64.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests on real sockets in real time"
)]

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use chronicle_connection_tokio::{
    Client, Code, Command, Config, Connection, ConnectionString, Contract, Input, Notice, Output,
    Reply, Secret, Status, TokenMachine,
};
use chronicle_reference_server::{
    Answer, Cluster, ServerOptions,
    echo::{Payload, echo_client::EchoClient},
    model::{Authentication, ModelConfig},
    paths,
};
use log::{LevelFilter, Log, Metadata, Record};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng as _};
use std::{
    fmt::{self, Debug, Display},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};

const SECRET: &str = "canary-Secret/ä+1";
const TOKEN: &str = "canaryTokenQ7";
const API_KEY: &str = "canary.Key.Z9";
const PASSWORD: &str = "canary Password=3";

#[test]
fn the_search_finds_a_canary_however_it_is_dressed() {
    for dressed in [
        SECRET.to_owned(),
        format!("x={SECRET}&"),
        utf8_percent_encode(SECRET, NON_ALPHANUMERIC).to_string(),
        utf8_percent_encode(SECRET, NON_ALPHANUMERIC)
            .to_string()
            .to_lowercase(),
        STANDARD.encode(SECRET),
        STANDARD.encode(format!("a:{SECRET}")),
        STANDARD.encode(format!("id:{SECRET}")),
        format!("{:?}", SECRET.as_bytes()),
    ] {
        assert!(Canary::new(SECRET).is_in(&dressed), "{dressed}");
    }
    assert!(!Canary::new(SECRET).is_in("nothing of the kind"));
}

#[test]
fn connection_strings_configurations_and_tokens_show_no_secret() {
    let mut shown = Shown::default();
    let client = ConnectionString::builder()
        .server("node")
        .credentials("id", Secret::new(SECRET))
        .certificate_path("file.p12")
        .certificate_password(Secret::new(PASSWORD));
    let key = ConnectionString::builder()
        .server("node")
        .api_key(Secret::new(API_KEY));
    for builder in [client, key] {
        shown.debug(&builder);
        let string = builder.build().unwrap();
        shown.both(&string);
        shown.debug(&string.authentication());
        shown.debug(&Config::builder(string.clone()));
        shown.debug(&Client::builder(string.clone()));
        shown.debug(&Config::builder(string).build().unwrap());
    }
    for text in [
        "chronicle://id:canary-Secret/ä+1@node",
        "chronicle://id:canaryTokenQ7@node?apiKey=canary.Key.Z9",
        "chronicle://node?certificatePassword=canary%20Password%3D3&certificatePassword=x",
        "chronicle://node?apiKey=canary%20Password%3D3",
        "chronicle://canary.Key.Z9@node",
        "http://id:canaryTokenQ7@node",
    ] {
        let error = ConnectionString::parse(text).unwrap_err();
        shown.both(&error);
    }
    let mut tokens = TokenMachine::new("id", Secret::new(SECRET));
    tokens.begin().unwrap();
    tokens.finish(Instant::now(), Ok(&token_answer())).unwrap();
    shown.debug(&tokens);
    shown.debug(&tokens.token(Instant::now()));
    shown.check();
}

#[test]
fn a_machine_and_all_that_it_asks_for_show_no_secret() {
    let mut shown = Shown::default();
    for (string, words) in [
        (
            format!(
                "chronicle://id:{}@node",
                utf8_percent_encode(SECRET, NON_ALPHANUMERIC)
            ),
            2,
        ),
        (format!("chronicle://node?apiKey={API_KEY}"), 1),
    ] {
        let config = Config::builder(string.parse().unwrap()).build().unwrap();
        let rng = ChaCha8Rng::from_seed([7; 32]);
        let now = Instant::now();
        let mut machine = Connection::new(config, Contract::default(), rng, now);
        machine.handle(now, Command::Connect);
        let mut carried = 0;
        while let Some(output) = machine.poll_output() {
            shown.debug(&machine);
            shown.debug(&output);
            shown.debug(&machine.call_metadata());
            let mut reply = |id, reply: Reply| {
                let input = Input::Reply { id, reply };
                shown.debug(&input);
                machine.handle(now, input);
            };
            match output {
                Output::Open { id, .. } => {
                    let peer = "127.0.0.1:1".parse().unwrap();
                    reply(id, Reply::Opened { peer });
                }
                Output::Http { id, request, .. } if request.uri() == paths::TOKEN => {
                    carried += 1;
                    reply(id, Reply::Http(token_answer()));
                }
                Output::Http { id, .. } => reply(id, Reply::Http(http::Response::default())),
                Output::Unary(call) => {
                    // Field 1, true: compatible.
                    reply(call.id, Reply::Message(Bytes::from_static(&[8, 1])));
                    let ok = Status::grpc(Code::Ok, "");
                    reply(call.id, Reply::Finished(ok));
                }
                Output::ServerStream(call) => carried += usize::from(!call.metadata.is_empty()),
                Output::NameServers { .. } | Output::Dns { .. } => {
                    unreachable!("the servers are listed")
                }
                Output::Cancel(_) | Output::Close(_) | Output::Event(_) => {}
            }
        }
        assert_eq!(carried, words, "the secrets were there to be shown");
    }
    shown.check();
}

/// Servers log as well, on their own threads, and know the secrets by right.
#[test]
fn a_whole_run_at_trace_level_shows_no_secret() {
    log::set_logger(&LOGGER).unwrap();
    log::set_max_level(LevelFilter::Trace);
    let servers = tokio::runtime::Runtime::new().unwrap();
    let options = ServerOptions {
        model: ModelConfig {
            authentication: Some(Authentication {
                client_id: "id".to_owned(),
                client_secret: SECRET.to_owned(),
                api_key: API_KEY.to_owned(),
                issuer: TOKEN.to_owned(),
                ..Authentication::default()
            }),
            ..ModelConfig::default()
        },
        ..ServerOptions::default()
    };
    let cluster = Cluster::start_with([options.clone(), options]);
    let cluster = servers.block_on(cluster).unwrap();
    let lines = Lines::default();
    let clients = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut shown = Shown::default();
    tracing::subscriber::with_default(lines.clone(), || {
        clients.block_on(run(&cluster, &mut shown));
    });
    let lines = lines.all.lock().unwrap();
    let logged = LOGGER.all.lock().unwrap();
    for part in ["connected to", "token 1", "h2::"] {
        let heard = lines.iter().any(|line| line.contains(part));
        assert!(
            heard,
            "the log is not heard: no {part} in {} lines",
            lines.len()
        );
    }
    assert!(logged.iter().any(|line| line.contains("rustls")));
    shown.texts.extend(lines.iter().cloned());
    shown.texts.extend(logged.iter().cloned());
    shown.check();
}

/// Sessions, calls, refreshes and refusals of every mode.
async fn run(cluster: &Cluster, shown: &mut Shown) {
    let secret = utf8_percent_encode(SECRET, NON_ALPHANUMERIC).to_string();
    let string = cluster.connection_string();
    let with_secret = |secret: &str| {
        let string = string.replace("chronicle://", &format!("chronicle://id:{secret}@"));
        string.parse::<ConnectionString>().unwrap()
    };
    let with_key = |key: &str| {
        let string = format!("{string}&apiKey={key}");
        string.parse::<ConnectionString>().unwrap()
    };
    for string in [with_secret(&secret), with_key(API_KEY)] {
        let client = Client::connect(string).await.unwrap();
        let mut events = client.events();
        let mut echo = EchoClient::new(client.channel());
        echo.unary(Payload::default()).await.unwrap();
        for server in cluster.servers() {
            server.faults().reset_tokens();
        }
        let refused = echo.unary(Payload::default()).await;
        if let Err(status) = refused {
            shown.both(&status);
        }
        shown.debug(&client);
        shown.debug(&client.channel());
        shown.both(&format_args!("{:?} {:?}", client.state(), client.session()));
        shown.debug(&client.call_metadata());
        client.close().await;
        while let Some(notice) = events.next().await {
            shown.both(&notice);
            if let Notice::Event(event) = notice {
                shown.both(&event);
            }
        }
    }
    // What is refused is as secret as what is not.
    for server in cluster.servers() {
        server.faults().set(|faults| {
            let known = faults.model.authentication.as_mut().unwrap();
            known.client_secret = "other".to_owned();
            known.api_key = "other".to_owned();
        });
    }
    for string in [with_secret(&secret), with_key(API_KEY)] {
        shown.both(&Client::connect(string).await.unwrap_err());
    }
    for server in cluster.servers() {
        server.faults().set(|faults| {
            let body = format!("{{\"error\":\"{TOKEN}\",\"error_description\":\"{SECRET}\"}}");
            faults.on(paths::TOKEN).answer = Some(Answer::Http(400, body.into()));
        });
    }
    let impatient = Client::builder(with_secret(&secret));
    let impatient = impatient.connect_timeout(Some(std::time::Duration::from_secs(1)));
    shown.both(&impatient.connect().await.unwrap_err());
    let certificate = Client::builder(with_secret(&secret))
        .client_certificate([0x30, 3, 2, 1, 1])
        .client_certificate_password(Secret::new(PASSWORD));
    shown.debug(&certificate);
    shown.both(&certificate.start().unwrap_err());
}

fn token_answer() -> http::Response<Bytes> {
    http::Response::new(format!(r#"{{"access_token":"{TOKEN}"}}"#).into())
}

/// Everything that was shown.
#[derive(Default)]
struct Shown {
    texts: Vec<String>,
}

impl Shown {
    fn debug(&mut self, value: &(impl Debug + ?Sized)) {
        self.texts.push(format!("{value:?}"));
        self.texts.push(format!("{value:#?}"));
    }

    fn both(&mut self, value: &(impl Debug + Display + ?Sized)) {
        self.debug(value);
        self.texts.push(value.to_string());
    }

    fn check(&self) {
        assert!(!self.texts.is_empty());
        for canary in [SECRET, TOKEN, API_KEY, PASSWORD].map(Canary::new) {
            for text in &self.texts {
                assert!(!canary.is_in(text), "{:?} is in: {text}", canary.dressed[0]);
            }
        }
    }
}

/// A secret, in all that it may be dressed in. In lower case, as hexadecimal digits may be.
struct Canary {
    dressed: Vec<String>,
    base64: Vec<String>,
}

impl Canary {
    fn new(secret: &str) -> Self {
        let percent = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
        let bytes = format!("{:?}", secret.as_bytes());
        let plain = [
            secret.to_owned(),
            percent,
            bytes.trim_matches(['[', ']']).to_owned(),
        ];
        // Where it stands in what was encoded decides what is seen of it.
        let base64 = (0..3).map(|before| {
            let text = [&b"xxx"[..before], secret.as_bytes()].concat();
            let encoded = STANDARD.encode(&text);
            encoded[4.min(before * 4)..text.len() / 3 * 4].to_owned()
        });
        Self {
            dressed: plain.map(|text| text.to_lowercase()).into(),
            base64: base64.collect(),
        }
    }

    fn is_in(&self, text: &str) -> bool {
        let lower = text.to_lowercase();
        self.dressed
            .iter()
            .any(|canary| lower.contains(canary.as_str()))
            || self
                .base64
                .iter()
                .any(|canary| text.contains(canary.as_str()))
    }
}

/// Keeps every span and event of `tracing`, whatever its level.
#[derive(Clone, Default)]
struct Lines {
    all: Arc<Mutex<Vec<String>>>,
    spans: Arc<AtomicU64>,
}

impl Lines {
    fn push(&self, name: &str, record: impl FnOnce(&mut dyn Visit)) {
        let mut line = Line(name.to_owned());
        record(&mut line);
        self.all.lock().unwrap().push(line.0);
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.push(span.metadata().target(), |line| span.record(line));
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, values: &tracing::span::Record<'_>) {
        self.push("", |line| values.record(line));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.push(event.metadata().target(), |line| event.record(line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = fmt::write(&mut self.0, format_args!(" {field}={value:?}"));
    }
}

/// Keeps every record of `log`, which rustls speaks.
struct Logger {
    all: Mutex<Vec<String>>,
}

static LOGGER: Logger = Logger {
    all: Mutex::new(Vec::new()),
};

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = format!("{} {}", record.target(), record.args());
        self.all.lock().unwrap().push(line);
    }

    fn flush(&self) {}
}
