//! A connection driven by hand, on plain threads and channels: no async runtime, no socket.
//!
//! [`drive`] is all that it takes. Around it: an application that listens, and a server model in a
//! thread of its own, with two channels between it and the connection in place of a network. The
//! server hangs up on the first session; the connection comes back, and then the application closes
//! it.
//!
//! `cargo run -p chronicle-simulation --example threads`

#![allow(
    clippy::disallowed_methods,
    reason = "here are the clock and the threads that the machine does without"
)]

use bytes::Bytes;
use chronicle_connection::{
    Command, Config, Connection, Contract, Event, Failure, FailureKind, Id, Input, Output, Reply,
    Session, State,
};
use chronicle_connection_proto::{
    clients::{ConnectRequest, ConnectionKeepAlive},
    paths,
};
use chronicle_reference_server::model::{ModelConfig, ServerModel, StreamKey};
use chronicle_simulation::{compatible, http, keep_alive, ok};
use prost::Message as _;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng as _};
use std::{
    error::Error,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

/// Runs a connection until it is closed or has failed for good.
fn drive(
    mut connection: Connection<impl Rng>,
    inbox: &Receiver<Input>,
    mut perform: impl FnMut(Output),
) {
    let mut input = Input::from(Command::Connect);
    loop {
        // Tell it what happened, and do what it asks for.
        connection.handle(Instant::now(), input);
        while let Some(output) = connection.poll_output() {
            perform(output);
        }
        if connection.state() == State::Stopped {
            return;
        }
        // Wait for a reply, a command or the deadline.
        let patience = until(connection.poll_timeout());
        input = match inbox.recv_timeout(patience) {
            Ok(input) => input,
            Err(RecvTimeoutError::Timeout) => Command::Tick.into(),
            Err(RecvTimeoutError::Disconnected) => Command::Close.into(),
        };
    }
}

/// How long it is until a deadline; for ever where there is none.
fn until(deadline: Option<Instant>) -> Duration {
    deadline.map_or(Duration::MAX, |at| {
        at.saturating_duration_since(Instant::now())
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    two_sessions().map(drop)
}

/// The application. Gives what it was told.
fn two_sessions() -> Result<Vec<Event>, Box<dyn Error>> {
    let (inbox, inputs) = channel();
    let (network, requests) = channel();
    let (news, events) = channel();

    let replies = inbox.clone();
    thread::spawn(move || serve(&requests, replies));

    let config = Config::builder("chronicle://model".parse()?).build()?;
    // An application takes the seed from its system, or all of its clients would march in step.
    let rng = ChaCha8Rng::from_seed([7; 32]);
    let connection = Connection::new(config, Contract::default(), rng, Instant::now());
    thread::spawn(move || {
        // Where nobody listens any more, nothing is left to be done.
        drive(connection, &inputs, |output| {
            if let Output::Event(event) = output {
                let _ = news.send(event);
            } else {
                let _ = network.send(output);
            }
        });
    });

    let mut told = vec![];
    for event in events {
        println!("{event}");
        if let Event::Connected(Session { generation: 2, .. }) = &event {
            inbox.send(Command::Close.into())?;
        }
        told.push(event);
    }
    Ok(told)
}

/// The server: a machine as well, with deadlines at which it has something to say unasked.
fn serve(requests: &Receiver<Output>, inbox: Sender<Input>) {
    let config = ModelConfig {
        keep_alive_interval: Duration::from_millis(100),
        ..ModelConfig::default()
    };
    let mut server = Server {
        model: ServerModel::new(config, Instant::now()),
        inbox,
        stream: None,
        answers: 0,
    };
    loop {
        match requests.recv_timeout(until(server.model.poll_timeout())) {
            Ok(request) => server.answer(Instant::now(), request),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        server.push_keep_alives(Instant::now());
    }
}

/// A server with one client.
struct Server {
    model: ServerModel,
    inbox: Sender<Input>,
    /// Where keep-alives go: the server's name for it, and the client's.
    stream: Option<(StreamKey, Id)>,
    answers: u32,
}

impl Server {
    fn answer(&mut self, now: Instant, request: Output) {
        match request {
            Output::Open { id, .. } => {
                let peer = ([127, 0, 0, 1], 35000).into();
                self.reply(id, [Reply::Opened { peer }]);
            }
            // A client of one server has no counts to compare: it reserves, and that is all.
            Output::Http { id, .. } => {
                self.model.reserve(now);
                self.reply(id, [http(200, "")]);
            }
            Output::Unary(call) if call.path == paths::CHECK_COMPATIBILITY => {
                self.reply(call.id, [compatible(), ok()]);
            }
            Output::Unary(call) => {
                let answer = ConnectionKeepAlive::decode(call.message).unwrap_or_default();
                self.model.keep_alive(now, &answer);
                self.reply(call.id, [Reply::Message(Bytes::new()), ok()]);
                self.answers += 1;
                if self.answers == 3 {
                    self.hang_up(now, call.on);
                }
            }
            Output::ServerStream(call) => {
                let client = ConnectRequest::decode(call.message).unwrap_or_default();
                self.stream = Some((self.model.connect(now, &client), call.id));
            }
            Output::Cancel(_) | Output::Close(_) => self.stream = None,
            // Of a connection string that lists its servers there is nothing to look up.
            Output::NameServers { .. } | Output::Dns { .. } | Output::Event(_) => {}
        }
    }

    fn push_keep_alives(&mut self, now: Instant) {
        while let Some((to, pushed)) = self.model.poll_push(now) {
            if let Some((key, id)) = self.stream
                && key == to
            {
                self.reply(id, [keep_alive(&pushed.connection_id)]);
            }
        }
    }

    fn hang_up(&mut self, now: Instant, transport: Id) {
        if let Some((key, _)) = self.stream.take() {
            self.model.disconnect(now, key);
        }
        let failure = Failure::new(FailureKind::Reset, "the server has had enough");
        self.reply(transport, [Reply::Closed(failure)]);
    }

    fn reply<const N: usize>(&self, id: Id, replies: [Reply; N]) {
        for reply in replies {
            // A client that is gone needs no reply.
            let _ = self.inbox.send(Input::Reply { id, reply });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chronicle_connection::DropCause;

    #[test]
    fn a_connection_on_plain_threads_survives_its_server_and_closes() {
        let events = two_sessions().unwrap();
        let sessions: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::Connected(session) => Some(session.generation),
                _ => None,
            })
            .collect();
        assert_eq!(sessions, [1, 2], "{events:#?}");
        let dropped = |event: &Event| match event {
            Event::Disconnected { cause, .. } => matches!(cause, DropCause::TransportClosed(_)),
            _ => false,
        };
        assert!(events.iter().any(dropped), "{events:#?}");
        assert_eq!(events.last(), Some(&Event::Closed));
    }
}
