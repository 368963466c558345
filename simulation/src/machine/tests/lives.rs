//! Lives that keep all rules.

use super::*;
use crate::{compatible, keep_alive, wire::message};
use chronicle_connection_proto::clients::DescriptorSetResponse;
use chronicle_reference_server::model::ModelConfig;

/// Two servers, and no random waits.
pub(super) fn setup() -> Setup {
    waiting().exact()
}

pub(super) fn waiting() -> Setup {
    Setup::new("chronicle://s1,s2")
}

/// The first of two servers is chosen, and has not answered yet.
pub(super) fn asked(setup: &Setup) -> Life {
    let mut life = Life::new(setup);
    life.input(Command::Connect);
    life.go_on();
    count(&mut life);
    life
}

/// `Connect` was sent, and no keep-alive has come.
pub(super) fn connecting() -> Life {
    let mut life = asked(&setup());
    prove(&mut life);
    life
}

pub(super) fn connected() -> Life {
    connected_with(&setup())
}

pub(super) fn connected_with(setup: &Setup) -> Life {
    let mut life = asked(setup);
    prove(&mut life);
    beat(&mut life);
    life.now += Duration::from_secs(1);
    beat(&mut life);
    life
}

/// A session that has tokens, of which it has had one.
pub(super) fn with_a_token() -> Life {
    let mut life = asked(&Setup::new("chronicle://app:canary0@s1,s2").exact());
    life.reply(life.last(Request::Token), token(1));
    prove(&mut life);
    beat(&mut life);
    life
}

pub(super) fn token(number: u64) -> Reply {
    http(200, format!(r#"{{"access_token":"canary{number}"}}"#))
}

pub(super) fn lost() -> Life {
    let mut life = connected();
    lose(&mut life);
    life
}

/// A stable session that is lost, up to the dials of the next attempt.
pub(super) fn reconnecting() -> Life {
    let mut life = connected_with(&waiting());
    stay(&mut life);
    lose(&mut life);
    life.go_on();
    life
}

/// Both servers refuse every dial, so many times.
pub(super) fn refused(attempts: usize) -> Life {
    let mut life = Life::new(&setup().patient());
    life.input(Command::Connect);
    for _ in 0..attempts {
        refuse(&mut life);
        life.wait_until(life.due());
    }
    life
}

pub(super) fn closed() -> Life {
    let mut life = connected();
    life.input(Command::Close);
    life
}

/// The session was over before it was closed, and nobody had looked.
pub(super) fn closed_too_late() -> Life {
    let mut life = connected();
    life.now += Duration::from_secs(6);
    life.input(Command::Close);
    life
}

/// The time for the first connect is up, and then it is closed.
pub(super) fn given_up() -> Life {
    let mut life = Life::new(&setup());
    life.input(Command::Connect);
    life.wait_until(life.now + Duration::from_secs(31));
    life.input(Command::Close);
    life
}

/// The client compares, and the server's version comes last.
pub(super) fn judged_here() -> Life {
    let mut life = asked(&setup());
    life.reply(life.last(Request::Reserve), http(200, ""));
    let unknown = status(Code::Unimplemented);
    life.reply(life.last(Request::CheckCompatibility), unknown.clone());
    let text = life.last(Request::GetDescriptorSet);
    let response = DescriptorSetResponse {
        schema_definition: ModelConfig::default().schema,
    };
    life.reply(text, message(&response));
    life.reply(text, ok());
    life.reply(life.last(Request::GetVersionInfo), unknown);
    life.last(Request::Connect);
    life
}

/// The one name server fails in the first round and is silent in the second.
pub(super) fn looked_up() -> Life {
    let string = "chronicle+srv://cluster.test?srvNameServer=10.0.0.1";
    let mut life = Life::new(&Setup::new(string).exact());
    life.input(Command::Connect);
    let question = life.ids(|output| matches!(output, Output::Dns { .. }))[0];
    let failure = Failure::new(FailureKind::Refused, "");
    life.reply(question, Reply::Failed(failure));
    life.wait_until(life.now + Duration::from_secs(2));
    life
}

/// From the dials of both servers to the first keep-alive of the first.
pub(super) fn connect(life: &mut Life) {
    count(life);
    prove(life);
    beat(life);
}

/// From the dial of the one server that is chosen to its first keep-alive.
pub(super) fn connect_to_one(life: &mut Life) {
    let dials = life.ids(is_dial);
    life.reply(dials[dials.len() - 1], opened());
    prove(life);
    beat(life);
}

pub(super) fn opened() -> Reply {
    let peer = ([10, 0, 0, 1], 35000).into();
    Reply::Opened { peer }
}

/// From the dials of both servers to the choice of the first.
fn count(life: &mut Life) {
    let dials = life.ids(is_dial);
    for &id in &dials[dials.len() - 2..] {
        life.reply(id, opened());
    }
    life.go_on();
    let counts = life.ids(is_count);
    let counts = &counts[counts.len() - 2..];
    life.reply(counts[0], http(200, "0"));
    life.reply(counts[1], http(200, "1"));
}

/// From the choice to `Connect`.
fn prove(life: &mut Life) {
    life.reply(life.last(Request::Reserve), http(200, ""));
    let check = life.last(Request::CheckCompatibility);
    life.reply(check, compatible());
    life.reply(check, ok());
}

/// A keep-alive arrives.
pub(super) fn beat(life: &mut Life) {
    let stream = life.last(Request::Connect);
    let mut outputs = life.outputs();
    let connect = outputs.find(|output| id_of(output) == Some(stream));
    let connection_id = connect.and_then(connection_id_of).unwrap();
    drop(outputs);
    life.reply(stream, keep_alive(&connection_id));
}

/// Keep-alives arrive until the session is stable.
pub(super) fn stay(life: &mut Life) {
    for _ in 0..7 {
        life.now += Duration::from_secs(1);
        let answer = life.last(Request::KeepAlive);
        life.reply(answer, ok());
        beat(life);
    }
}

pub(super) fn lose(life: &mut Life) {
    let stream = life.last(Request::Connect);
    let transport = life.outputs().find_map(|output| match output {
        Output::ServerStream(call) if call.id == stream => Some(call.on),
        _ => None,
    });
    life.reply(transport.unwrap(), gone());
}

pub(super) fn gone() -> Reply {
    Reply::Closed(Failure::new(FailureKind::Reset, ""))
}

/// Both servers refuse their dials.
pub(super) fn refuse(life: &mut Life) {
    let dials = life.ids(is_dial);
    for &id in &dials[dials.len() - 2..] {
        let failure = Failure::new(FailureKind::Refused, "");
        life.reply(id, Reply::Failed(failure));
    }
}
