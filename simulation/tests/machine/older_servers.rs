//! Servers that are too old to compare contracts: this side does it, by the text of the server and
//! by which of the two is the newer one.

use crate::help::*;
use chronicle_connection::{
    CallError, CandidateError, Code, Contract, Event, FatalError, Findings, IncompatibilityKind,
    Origin, Reply, Request, Schema, State, Status,
};
use chronicle_connection_proto::clients::DescriptorSetResponse;
use chronicle_reference_server::model::{Age, Authentication, ModelConfig, Verdict};
use chronicle_simulation::{Fault, Hand, Setup, World, http, ok, status};
use prost::Message as _;

#[test]
fn a_removed_field_refuses_except_where_the_client_is_known_to_be_newer() {
    let client = contract("17.0.0", &GAINED_FIELD);
    for (server_version, is_compatible) in [
        (Some("16.37.1"), true),
        (Some("17.0.0"), false),
        (Some("18.0.0"), false),
        (Some("latest"), false),
        (None, false),
    ] {
        let world = meet(&client, "", older(server_version, &ORDERS));
        let case = format!("server {server_version:?}");
        assert_eq!(is_connected(&world), is_compatible, "{case}");
        if is_compatible {
            assert_eq!(missing(&world), ["acme.Order.Note"], "{case}");
            continue;
        }
        let (findings, text) = refusal(&world);
        let [finding] = findings.as_slice() else {
            panic!("{findings:?}")
        };
        assert_eq!(finding.0, IncompatibilityKind::FieldRemoved, "{case}");
        for part in ["acme.Order.Note", "string Note = 3", "17.0.0"] {
            assert!(text.contains(part), "{case}: {part} in {text}");
        }
    }
}

#[test]
fn whatever_a_newer_client_gained_is_missing_on_the_server_and_refuses_nothing() {
    let client = contract(
        "17.0.0",
        &[
            "message Order { string Id = 1; State State = 2; Extra Extra = 3; }",
            "message Extra { Level Level = 1; }",
            "enum Level { LEVEL_Low = 0; }",
            "enum State { New = 0; Done = 1; Lost = 2; }",
            "service Orders { rpc Place (Order) returns (stream Order); }",
        ],
    );
    let world = meet(&client, "", older(Some("16.0.0"), &ORDERS));
    assert_eq!(
        missing(&world),
        [
            "acme.Extra",
            "acme.Level",
            "acme.Order.Extra",
            "acme.State.Lost"
        ]
    );
}

#[test]
fn a_missing_method_or_service_refuses_whoever_is_newer() {
    for (gained, kind) in [
        (
            "service Orders { rpc Place (Order) returns (stream Order); rpc Drop (Order) returns (Order); }",
            IncompatibilityKind::MethodRemoved,
        ),
        (
            "service Orders { rpc Place (Order) returns (stream Order); } service More { rpc Go (Order) returns (Order); }",
            IncompatibilityKind::ServiceRemoved,
        ),
    ] {
        for server_version in [Some("16.0.0"), Some("17.0.0"), Some("18.0.0"), None] {
            let client = contract("17.0.0", &[ORDERS[0], ORDERS[1], gained]);
            let world = meet(&client, "", older(server_version, &ORDERS));
            let (findings, _) = refusal(&world);
            let kinds: Vec<_> = findings.iter().map(|(kind, _)| *kind).collect();
            assert_eq!(kinds, [kind], "server {server_version:?}");
        }
    }
}

#[test]
fn what_changed_refuses_whoever_is_newer() {
    let client = contract(
        "17.0.0",
        &[
            "message Order { int32 Id = 1; repeated State State = 2; }",
            "enum State { Fresh = 0; Done = 1; }",
            "service Orders { rpc Place (Order) returns (Order); }",
        ],
    );
    for server_version in [Some("16.0.0"), Some("18.0.0"), None] {
        let world = meet(&client, "", older(server_version, &ORDERS));
        let (findings, _) = refusal(&world);
        let told: Vec<_> = findings.iter().map(|(_, path)| path.as_str()).collect();
        assert_eq!(
            told,
            [
                "acme.Order.Id",
                "acme.Order.State",
                "acme.Orders/Place",
                "acme.State.Fresh"
            ]
        );
    }
}

#[test]
fn what_the_server_has_beyond_the_client_is_never_an_incompatibility() {
    let client = contract("17.0.0", &ORDERS);
    for server_version in [Some("16.0.0"), Some("18.0.0"), None] {
        let world = meet(&client, "", older(server_version, &GAINED_FIELD));
        assert!(is_connected(&world), "{server_version:?}");
        assert_eq!(missing(&world), [""; 0]);
    }
}

#[test]
fn the_contract_of_the_session_alone_suits_every_older_server() {
    for server_version in [Some("15.7.1"), Some("17.0.0"), None] {
        let world = meet(&Contract::default(), "", older(server_version, &ORDERS));
        assert!(is_connected(&world), "{server_version:?}");
    }
}

/// The version is told to those with credentials only.
#[test]
fn the_version_is_asked_for_with_the_credentials() {
    let client = contract("17.0.0", &GAINED_FIELD);
    let server = ModelConfig {
        authentication: Some(Authentication {
            api_key: "k3y".to_owned(),
            ..Authentication::default()
        }),
        ..older(Some("16.0.0"), &ORDERS)
    };
    let with_key = meet(&client, "?apiKey=k3y", server.clone());
    assert!(is_connected(&with_key));
    assert_eq!(missing(&with_key), ["acme.Order.Note"]);

    let without = meet(&client, "", server);
    let (findings, text) = refusal(&without);
    assert_eq!(
        findings.len(),
        1,
        "a version that is not told is unknown: {text}"
    );
    assert!(text.contains("server unknown"), "{text}");
}

#[test]
fn a_version_that_cannot_be_had_is_unknown_and_the_check_goes_on() {
    let ends = [
        vec![status(Code::Unimplemented)],
        vec![status(Code::Unauthenticated)],
        vec![status(Code::Internal)],
        vec![ok()],
        vec![Reply::Message(vec![0xff].into()), ok()],
        vec![Reply::Message(vec![0; 5000].into())],
        vec![Reply::Message(vec![].into()), Reply::Message(vec![].into())],
        vec![failed(chronicle_connection::FailureKind::Reset)],
        vec![http(200, "")],
        vec![Reply::Finished(Status {
            code: Code::Unimplemented,
            message: String::new(),
            origin: Origin::Http(404),
        })],
    ];
    for end in ends {
        let mut hand = asked_for_the_version(&Contract::default());
        let call = call(&mut hand, Request::GetVersionInfo);
        for reply in end.clone() {
            hand.reply(call.id, reply);
        }
        assert!(hand.asks(Request::Connect), "{end:?}");
    }
    // A field that may have been removed refuses then.
    let mut hand = asked_for_the_version(&contract("17.0.0", &GAINED_FIELD));
    let call = call(&mut hand, Request::GetVersionInfo);
    hand.reply(call.id, status(Code::Unimplemented));
    assert!(fatal(&mut hand).is_some());
}

#[test]
fn a_version_that_cannot_be_had_fails_the_attempt_where_it_would_have_decided() {
    for end in [
        status(Code::Unavailable),
        failed(chronicle_connection::FailureKind::Reset),
    ] {
        let mut hand = asked_for_the_version(&contract("17.0.0", &GAINED_FIELD));
        let call = call(&mut hand, Request::GetVersionInfo);
        hand.reply(call.id, end);
        let error = the_failure(&mut hand);
        assert_eq!(hand.state(), State::BackingOff);
        let text = error.to_string();
        assert!(text.contains("GetVersionInfo failed"), "{text}");
    }
}

#[test]
fn a_version_that_never_comes_is_unknown_when_the_time_of_the_check_is_over() {
    let mut hand = asked_for_the_version(&Contract::default());
    let call = call(&mut hand, Request::GetVersionInfo);
    hand.wait(secs(10) - MOMENT);
    assert!(!hand.asks(Request::Connect));
    hand.wait(MOMENT);
    assert!(hand.is_cancelled(call.id));
    assert!(hand.asks(Request::Connect));
}

#[test]
fn an_http_answer_in_the_fallback_fails_the_attempt_and_is_no_old_server() {
    for status in [200, 404, 503] {
        let mut world = World::new(start(), 1);
        let server = world.add_server_with(older(Some("16.0.0"), &ORDERS));
        let page = Fault::Http(status, "<html></html>".to_owned());
        world.fail(server, Request::GetDescriptorSet, page);
        let client = world.add_client(Setup::new("chronicle://s1").exact().patient());
        world.connect(client);
        world.run_for(secs(20));
        assert_eq!(world.server(server).arrived(Request::Connect), 0);
        assert_ne!(world.client(client).state(), State::Stopped, "{status}");
        world.heal(server);
        world.run_for(secs(20));
        assert!(world.client(client).session().is_some(), "{status}");
    }
}

#[test]
fn a_text_that_says_nothing_or_cannot_be_read_is_a_failed_check() {
    for text in [
        "",
        "syntax = \"proto3\";\n",
        "syntax = \"proto3\"; package a; message M { string S = 1; }",
        "service S { rpc M (A) returns (B)",
        "<html><body>hello</body></html>",
        "package a; service S {} package b; message M { int32 a = 1; int32 b = 1; }",
    ] {
        let (mut hand, transport) = proving("chronicle://s1");
        let check = hand.take(Request::CheckCompatibility, transport);
        hand.reply(check, status(Code::Unimplemented));
        tell(&mut hand, text);
        assert!(!hand.asks(Request::GetVersionInfo), "{text}");
        let error = the_failure(&mut hand);
        let is_malformed = matches!(
            cause(&error, "s1"),
            Some(CandidateError::Call {
                request: Request::GetDescriptorSet,
                error: CallError::Malformed(_),
            })
        );
        assert!(is_malformed, "{text}: {error}");
    }
}

/// A client that gained one field once took down a whole system: every server took the client as
/// the expected side, and refused it.
#[test]
fn where_a_server_takes_a_newer_client_as_expected_the_error_names_the_way_through() {
    let client = contract("17.0.0", &GAINED_FIELD);
    for (server_version, is_offered) in [
        ("16.37.1", true),
        ("17.0.0", false),
        ("18.0.0", false),
        ("", false),
    ] {
        let refusing = ModelConfig {
            verdict: Verdict::Incompatible(vec!["FieldRemoved: .acme.Order.Note".to_owned()]),
            protocol_version: server_version.to_owned(),
            version: server_version.to_owned(),
            ..ModelConfig::default()
        };
        let world = meet(&client, "", refusing);
        let error = fatal_of(&world).to_string();
        assert!(error.contains(".acme.Order.Note"), "{error}");
        assert_eq!(
            error.contains("skipCompatibilityCheck=true"),
            is_offered,
            "server {server_version}: {error}"
        );
    }
    let skipping = meet(
        &client,
        "?skipCompatibilityCheck=true",
        ModelConfig {
            verdict: Verdict::Incompatible(vec![]),
            ..ModelConfig::default()
        },
    );
    assert!(is_connected(&skipping));
}

#[test]
fn a_part_of_a_contract_claims_the_oldest_version_and_is_judged_by_its_own() {
    let whole = contract("17.0.0", &GAINED_FIELD);
    let part = whole.only(&["acme.Orders"]).unwrap();
    assert_eq!(part.claimed_version(), "15.7.1");
    let world = meet(&part, "", older(Some("16.0.0"), &ORDERS));
    assert_eq!(missing(&world), ["acme.Order.Note"]);
}

const ORDERS: [&str; 3] = [
    "message Order { string Id = 1; State State = 2; }",
    "enum State { New = 0; Done = 1; }",
    "service Orders { rpc Place (Order) returns (stream Order); }",
];

const GAINED_FIELD: [&str; 3] = [
    "message Order { string Id = 1; State State = 2; string Note = 3; }",
    ORDERS[1],
    ORDERS[2],
];

/// An application's contract in the package `acme`.
fn contract(version: &str, declarations: &[&str]) -> Contract {
    let schema = Schema::from_source_text(&text(declarations)).unwrap();
    Contract::from_descriptor_set(schema.descriptor_set().clone(), version).unwrap()
}

fn text(declarations: &[&str]) -> String {
    let declarations = declarations.join("\r\n");
    format!("syntax = \"proto3\";\r\npackage acme;\r\n{declarations}\r\n")
}

/// A server without the check that has these declarations beside those of the session.
fn older(version: Option<&str>, declarations: &[&str]) -> ModelConfig {
    let session = ModelConfig::default().schema;
    ModelConfig {
        age: Age::WithoutCheck,
        version: version.unwrap_or("16.0.0").to_owned(),
        tells_version: version.is_some(),
        schema: format!("{session}\n{}", text(declarations)),
        ..ModelConfig::default()
    }
}

/// A client and a server, some time later.
fn meet(contract: &Contract, options: &str, server: ModelConfig) -> World {
    let mut world = World::new(start(), 1);
    world.add_server_with(server);
    let mut setup = Setup::new(&format!("chronicle://s1/{options}"));
    setup.contract = contract.clone();
    let client = world.add_client(setup);
    world.connect(client);
    world.run_for(secs(5));
    world
}

fn is_connected(world: &World) -> bool {
    world.clients().all(|client| client.session().is_some())
}

/// What the client said is missing on its server.
fn missing(world: &World) -> Vec<String> {
    assert!(is_connected(world), "{}", world.trace().as_str());
    let events = world.clients().flat_map(|client| client.events());
    let missing = events.filter_map(|(_, event)| match event {
        Event::Compatible {
            missing_on_server, ..
        } => Some(missing_on_server),
        _ => None,
    });
    missing
        .flatten()
        .map(|finding| finding.path.clone())
        .collect()
}

fn fatal_of(world: &World) -> FatalError {
    let mut events = world.clients().flat_map(|client| client.events());
    let failed = events.find_map(|(_, event)| match event {
        Event::Failed(error) => Some(error.clone()),
        _ => None,
    });
    failed.unwrap_or_else(|| panic!("{}", world.trace().as_str()))
}

/// What this side found, and the whole text of the error.
fn refusal(world: &World) -> (Vec<(IncompatibilityKind, String)>, String) {
    let error = fatal_of(world);
    let FatalError::Incompatible(attempt) = &error else {
        panic!("{error}")
    };
    let Some(CandidateError::Incompatible(refusal)) = cause(attempt, "s1") else {
        panic!("{error}")
    };
    let Findings::Compared(findings) = refusal.findings else {
        panic!("{error}")
    };
    let findings = findings.into_iter();
    (
        findings
            .map(|finding| (finding.kind, finding.path))
            .collect(),
        error.to_string(),
    )
}

/// A machine whose server has told its text.
pub(crate) fn asked_for_the_version(contract: &Contract) -> Hand {
    let mut setup = Setup::new("chronicle://s1?apiKey=k3y").exact();
    setup.contract = contract.clone();
    let mut hand = Hand::new(start(), setup);
    hand.connect();
    let transport = hand.take_open("s1");
    hand.open(transport);
    let reserve = hand.take(Request::Reserve, transport);
    hand.reply(reserve, http(200, ""));
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(check, status(Code::Unimplemented));
    tell(&mut hand, &older(None, &ORDERS).schema);
    assert!(hand.asks(Request::GetVersionInfo));
    hand
}

/// Answers the question for the text.
fn tell(hand: &mut Hand, text: &str) {
    let call = call(hand, Request::GetDescriptorSet);
    let response = DescriptorSetResponse {
        schema_definition: text.to_owned(),
    };
    hand.reply(call.id, Reply::Message(response.encode_to_vec().into()));
    hand.reply(call.id, ok());
}
