//! Outputs of clients, performed as an adapter would.

use super::{
    ClientId, Host, Reachable, ServerId, TransportKey, World, network::Transport, queue::Happening,
    serve::Ask,
};
use chronicle_connection::{Failure, FailureKind, Id, Output, Reply};

impl World {
    /// Performs an output. Replies that are on their way when their request is cancelled still
    /// arrive, as they may with any adapter.
    pub(super) fn perform(&mut self, client: ClientId, output: Output) {
        match output {
            Output::NameServers { id } => self.tell_name_servers(client, id),
            Output::Dns {
                id,
                ref server,
                transport,
                ref message,
                ..
            } => self.ask_name_server(client, id, server, transport, message),
            Output::Open { id, to } => match self.server_at(&to) {
                Some(server) => {
                    let happening = Happening::DialArrives { client, id, server };
                    self.send(Host::Client(client), Host::Server(server), happening);
                }
                None => {
                    if Self::is_forged(&to) {
                        self.breaks(client, "dials a server that only a forged answer names");
                    }
                    let failure = Failure::new(FailureKind::Dns, "no such host");
                    self.fail_locally(client, id, failure);
                }
            },
            Output::Http { on, .. } => self.ask((client, on), output),
            Output::Unary(ref call) | Output::ServerStream(ref call) => {
                let key = (client, call.on);
                self.ask(key, output);
            }
            Output::Cancel(id) => {
                if let Some(on) = self.clients[client.0].in_flight.end(id) {
                    let key = (client, on);
                    self.send_up(key, Happening::CancelArrives(key, id));
                }
            }
            Output::Close(id) => {
                self.clients[client.0].in_flight.end_all_on(id);
                let key = (client, id);
                self.send_up(key, Happening::CloseArrives(key));
            }
            Output::Event(_) => {}
        }
    }

    fn ask(&mut self, key: TransportKey, output: Output) {
        if let Some(ask) = Ask::new(key, output) {
            self.clients[key.0.0].in_flight.begin(ask.id, key.1);
            self.send_up(key, Happening::RequestArrives(ask));
        }
    }

    /// A SYN arrives.
    pub(super) fn accept(&mut self, client: ClientId, id: Id, server: ServerId) {
        let at = self.elapsed();
        let slot = &mut self.servers[server.0];
        slot.load(at).dials += 1;
        if self.recording.arrivals {
            slot.dials.push((at, client));
        }
        match slot.reachable {
            Reachable::Up => self.establish((client, id), server),
            Reachable::Refuses => {
                let failure = Failure::new(FailureKind::Refused, "nothing listens");
                self.turn_away(client, id, server, failure);
            }
            Reachable::Fails(kind) => {
                self.turn_away(client, id, server, Failure::new(kind, "as told"));
            }
            Reachable::Hangs => {}
        }
    }

    fn turn_away(&mut self, client: ClientId, id: Id, server: ServerId, failure: Failure) {
        let happening = Happening::ReplyArrives {
            client,
            id,
            reply: Reply::Failed(failure),
            via: None,
        };
        self.send(Host::Server(server), Host::Client(client), happening);
    }

    fn establish(&mut self, key: TransportKey, server: ServerId) {
        let (client, id) = key;
        let mut opened = self.now;
        for _ in 1..self.network.open_trips.max(2) {
            opened += self.trip(Host::Server(server), Host::Client(client));
        }
        let transport = Transport {
            server,
            down_until: opened,
            up_until: self.now,
            is_black_hole: false,
            astray: Vec::new(),
            streams: Vec::new(),
        };
        self.clients[client.0].transports.insert(id, transport);
        let peer = self.servers[server.0].peer();
        self.send_down(key, id, Reply::Opened { peer });
    }

    /// Ends a request with a failure that no server has a part in.
    fn fail_locally(&mut self, client: ClientId, id: Id, failure: Failure) {
        let here = Host::Client(client);
        let happening = Happening::ReplyArrives {
            client,
            id,
            reply: Reply::Failed(failure),
            via: None,
        };
        self.send(here, here, happening);
    }
}
