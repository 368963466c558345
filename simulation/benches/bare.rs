//! A bare connection without checkers, brought up by hand.

use bytes::Bytes;
use chronicle_connection::{
    Command, Config, Connection, Contract, Id, Input, Output, Reply, Request,
};
use chronicle_simulation::{
    Setup, compatible, connection_id_of, http, id_of, keep_alive, ok, request_of, transport_of,
};
use rand_chacha::ChaCha12Rng;
use rand_core::SeedableRng as _;
use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// A connection to one of three servers, and how many inputs it has been given.
pub(crate) struct Bare {
    pub(crate) connection: Connection<ChaCha12Rng>,
    now: Instant,
    pub(crate) events: u64,
    inbox: VecDeque<Input>,
    session: Option<Session>,
}

/// The transport and the stream of a session, and its keep-alive.
type Session = (Option<Id>, Id, Reply);

/// What any number of connections share.
pub(crate) fn shared() -> Arc<Config> {
    Arc::new(Setup::new("chronicle://s1,s2,s3").config())
}

impl Bare {
    pub(crate) fn new(config: Arc<Config>, contract: Contract, seed: u64, now: Instant) -> Self {
        let rng = ChaCha12Rng::seed_from_u64(seed);
        Self {
            connection: Connection::new(config, contract, rng, now),
            now,
            events: 0,
            inbox: VecDeque::new(),
            session: None,
        }
    }

    /// From idle, or from a lost session, to a session whose first keep-alive was acknowledged.
    pub(crate) fn connect(&mut self) {
        self.input(Command::Connect);
        while self.session.is_none()
            && let Some(due) = self.connection.poll_timeout()
        {
            self.now = due;
            self.input(Command::Tick);
        }
    }

    /// One keep-alive, its answer and the acknowledgement.
    pub(crate) fn keep_alive(&mut self) {
        self.now += Duration::from_secs(1);
        if let Some((_, stream, keep_alive)) = &self.session {
            let (stream, keep_alive) = (*stream, keep_alive.clone());
            self.reply(stream, keep_alive);
        }
    }

    /// The server says goodbye to a stable session.
    pub(crate) fn lose(&mut self) {
        for _ in 0..6 {
            self.keep_alive();
        }
        if let Some((Some(on), ..)) = self.session.take() {
            self.reply(on, Reply::GoingAway { code: 0 });
        }
    }

    fn reply(&mut self, id: Id, reply: Reply) {
        self.input(Input::Reply { id, reply });
    }

    /// Gives an input, and the replies of a good server to all that comes of it.
    fn input(&mut self, input: impl Into<Input>) {
        let mut next = Some(input.into());
        while let Some(input) = next {
            self.events += 1;
            self.connection.handle(self.now, input);
            while let Some(output) = self.connection.poll_output() {
                self.serve(&output);
            }
            next = self.inbox.pop_front();
        }
    }

    fn serve(&mut self, output: &Output) {
        let Some(id) = id_of(output) else {
            return;
        };
        let mut send = |reply| self.inbox.push_back(Input::Reply { id, reply });
        match request_of(output) {
            None => {
                let peer = SocketAddr::from(([10, 0, 0, 1], 35000));
                send(Reply::Opened { peer });
            }
            Some(Request::Count) => send(http(200, "7")),
            Some(Request::Reserve) => send(http(200, "")),
            Some(Request::CheckCompatibility) => {
                send(compatible());
                send(ok());
            }
            Some(Request::Connect) => {
                let keep_alive = keep_alive(&connection_id_of(output).unwrap_or_default());
                send(keep_alive.clone());
                self.session = Some((transport_of(output), id, keep_alive));
            }
            Some(Request::KeepAlive) => {
                send(Reply::Message(Bytes::new()));
                send(ok());
            }
            Some(Request::Token | Request::GetDescriptorSet | Request::GetVersionInfo) => {}
        }
    }
}
