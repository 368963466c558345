//! A connection that proves who it is: with tokens, with a key, and without.

mod handshake;
mod session;

use crate::help::*;
use chronicle_connection::{
    Call, CandidateError, Code, Command, CredentialsError, DropCause, Event, FailureKind,
    FatalError, Id, Origin, Output, Reply, Request, State, Status, TokenError, WaitReason,
};
use chronicle_connection_proto::clients::DescriptorSetResponse;
use chronicle_reference_server::model::{Authentication, ModelConfig};
use chronicle_simulation::{
    Fault, Hand, Setup, World, compatible, http, id_of, ok, replay, request_of, status,
};
use http::HeaderMap;
use prost::Message as _;

pub(super) const CLIENT: &str = "chronicle://app:canary@s1";

/// A session with the token `t1`, which lives 120 s.
pub(super) fn live_client() -> (Hand, Live) {
    let (mut hand, transport) = proving(CLIENT);
    let live = pass_with_token(&mut hand, transport, "t1");
    hand.events();
    (hand, live)
}

/// A session a second old whose second answer was refused.
pub(super) fn refused_answer() -> (Hand, Live) {
    let (mut hand, live) = live_client();
    hand.wait(secs(1));
    beat(&mut hand, live);
    let answer = hand.take(Request::KeepAlive, live.transport);
    hand.reply(answer, unauthenticated());
    assert!(hand.session().is_some());
    assert_eq!(hand.machine().call_metadata().generation, 0);
    (hand, live)
}

/// A server without `CheckCompatibility`, and the token request that it got.
pub(super) fn older_server() -> (Hand, Id) {
    let (mut hand, transport) = proving(CLIENT);
    let check = hand.take(Request::CheckCompatibility, transport);
    let token = hand.take(Request::Token, transport);
    hand.reply(check, status(Code::Unimplemented));
    (hand, token)
}

/// The contract of a server, as older ones print it.
pub(super) fn text() -> bytes::Bytes {
    let answer = DescriptorSetResponse {
        schema_definition: ModelConfig::default().schema,
    };
    answer.encode_to_vec().into()
}

/// Machines that have had a token, and have no session.
pub(super) fn token_phases() -> Vec<(&'static str, Hand)> {
    let (mut backing_off, live) = live_client();
    backing_off.reply(live.transport, closed());
    let mut dialling = backing_off.clone();
    dialling.wait(secs(1));
    let mut proving = dialling.clone();
    let transport = proving.take_open("s1");
    proving.open(transport);
    let mut stopped = backing_off.clone();
    stopped.input(Command::RefreshToken { rejected: 1 });
    stopped.input(Command::Close);
    vec![
        ("backing off", backing_off),
        ("dialling", dialling),
        ("proving", proving),
        ("stopped", stopped),
    ]
}

pub(super) fn opened(hand: &mut Hand) -> (Id, String) {
    let (transport, server) = hand.find_open().unwrap();
    hand.open(transport);
    (transport, server)
}

pub(super) fn prove_with_token(hand: &mut Hand, transport: Id, token: &str) -> Id {
    let request = hand.take(Request::Token, transport);
    hand.reply(request, good(token));
    prove(hand, transport)
}

pub(super) fn pass_with_token(hand: &mut Hand, transport: Id, token: &str) -> Live {
    let request = hand.take(Request::Token, transport);
    hand.reply(request, good(token));
    pass(hand, transport)
}

pub(super) fn prove_with(hand: &mut Hand, transport: Id, look: impl FnOnce(&Call)) -> Id {
    let reserve = hand.take(Request::Reserve, transport);
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(reserve, http(200, ""));
    hand.reply(check, compatible());
    hand.reply(check, ok());
    let connect = call(hand, Request::Connect);
    look(&connect);
    connect.id
}

pub(super) fn assert_refused(hand: &mut Hand, request: Request, had_credentials: bool) {
    let error = match hand.state() {
        State::Stopped => match fatal(hand) {
            Some(FatalError::Credentials { error, .. }) => error,
            other => panic!("{other:?}"),
        },
        _ => panic!("{}", hand.trace().as_str()),
    };
    let Reply::Finished(status) = unauthenticated() else {
        unreachable!()
    };
    let expected = CredentialsError::Refused {
        request,
        status,
        had_credentials,
    };
    assert_eq!(error, expected);
}

pub(super) fn token_events(hand: &mut Hand) -> Vec<(u64, Option<TokenError>)> {
    let events = hand.events().into_iter();
    events
        .filter_map(|event| match event {
            Event::Token {
                generation, error, ..
            } => Some((generation, error)),
            _ => None,
        })
        .collect()
}

pub(super) fn refusals() -> Vec<(Reply, TokenError)> {
    let refused = |status, error| TokenError::Refused { status, error };
    vec![
        (
            http(400, r#"{"error":"invalid_client"}"#),
            refused(400, Some("invalid_client")),
        ),
        (http(401, ""), refused(401, None)),
        (http(403, "<html>"), refused(403, None)),
    ]
}

pub(super) fn authenticated(issuer: &str) -> ModelConfig {
    ModelConfig {
        authentication: Some(Authentication {
            issuer: issuer.to_owned(),
            trusts_others: false,
            ..Authentication::default()
        }),
        ..ModelConfig::default()
    }
}

/// A token that lives 120 s.
pub(super) fn good(token: &str) -> Reply {
    let body = format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":120}}"#);
    http(200, body)
}

/// How an adapter tells HTTP 401.
pub(super) fn unauthenticated() -> Reply {
    Reply::Finished(Status {
        code: Code::Unauthenticated,
        message: String::new(),
        origin: Origin::Http(401),
    })
}

pub(super) fn authorization(call: &Call) -> Option<String> {
    let value = call.metadata.get("authorization")?;
    Some(value.to_str().unwrap().to_owned())
}

pub(super) fn headers(output: &Output) -> HeaderMap {
    match output {
        Output::Http { request, .. } => request.headers().clone(),
        Output::Unary(call) | Output::ServerStream(call) => call.metadata.clone(),
        _ => HeaderMap::new(),
    }
}
