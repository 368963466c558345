//! Outputs of clients, performed as an adapter would.

use super::{
    ClientId, Reachable, ServerId, TransportKey, World, network::Transport, queue::Happening,
    serve::Ask,
};
use chronicle_connection::{Endpoint, Failure, FailureKind, Id, Output, Reply};
use std::time::Instant;

impl World {
    /// Performs an output. Replies that are on their way when their request is cancelled still
    /// arrive, as they may with any adapter.
    pub(super) fn perform(&mut self, client: ClientId, output: Output) {
        match output {
            Output::NameServers { id } | Output::Dns { id, .. } => {
                let failure = Failure::new(FailureKind::Unreachable, "no DNS in this world");
                self.refuse(client, id, failure);
            }
            Output::Open { id, to } => {
                let at = self.now + self.trip();
                self.queue
                    .push(at, Happening::DialArrives { client, id, to });
            }
            Output::Http { on, .. } => self.ask((client, on), output),
            Output::Unary(ref call) | Output::ServerStream(ref call) => {
                let key = (client, call.on);
                self.ask(key, output);
            }
            Output::Cancel(id) => {
                // A client has a handful of transports, and a cancel names none.
                let keys: Vec<TransportKey> = self.transports_of(client).collect();
                for key in keys {
                    self.send_up(key, Happening::CancelArrives(key, id));
                }
            }
            Output::Close(id) => {
                let key = (client, id);
                self.send_up(key, Happening::CloseArrives(key));
            }
            Output::Event(_) => {}
        }
    }

    fn ask(&mut self, key: TransportKey, output: Output) {
        if let Some(ask) = Ask::new(key, output) {
            self.send_up(key, Happening::RequestArrives(ask));
        }
    }

    /// A SYN arrives.
    pub(super) fn accept(&mut self, client: ClientId, id: Id, to: &Endpoint) {
        let Some(server) = self.server_at(to) else {
            let failure = Failure::new(FailureKind::Dns, "no such host");
            return self.refuse(client, id, failure);
        };
        let at = self.elapsed();
        let slot = &mut self.servers[server.0];
        slot.dials.push((at, client));
        match slot.reachable {
            Reachable::Up => self.establish((client, id), server),
            Reachable::Refuses => {
                let failure = Failure::new(FailureKind::Refused, "nothing listens");
                self.refuse(client, id, failure);
            }
            Reachable::Hangs => {}
        }
    }

    fn establish(&mut self, key: TransportKey, server: ServerId) {
        let mut opened = self.now;
        for _ in 1..self.network.open_trips.max(2) {
            opened += self.trip();
        }
        self.transports.insert(
            key,
            Transport {
                server,
                down_until: opened,
                up_until: self.now,
                is_black_hole: false,
            },
        );
        let peer = self.servers[server.0].peer();
        self.arrive_at_client(opened, key, Reply::Opened { peer });
    }

    fn arrive_at_client(&mut self, at: Instant, key: TransportKey, reply: Reply) {
        let (client, id) = key;
        let via = Some(key);
        self.queue.push(
            at,
            Happening::ReplyArrives {
                client,
                id,
                reply,
                via,
            },
        );
    }

    fn refuse(&mut self, client: ClientId, id: Id, failure: Failure) {
        let at = self.now + self.trip();
        let reply = Reply::Failed(failure);
        self.queue.push(
            at,
            Happening::ReplyArrives {
                client,
                id,
                reply,
                via: None,
            },
        );
    }

    pub(super) fn transports_of(&self, client: ClientId) -> impl Iterator<Item = TransportKey> {
        let keys = self.transports.keys().copied();
        keys.filter(move |(owner, _)| *owner == client)
    }
}
