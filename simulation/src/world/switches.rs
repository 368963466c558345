//! What can be done to servers and transports while a world runs.

use super::{
    ClientId, Fault, Reachable, ServerId, TransportKey, World, queue::Happening, server::Stream,
};
use chronicle_connection::{Failure, FailureKind, Reply, Request, Status};
use chronicle_reference_server::model::{ModelConfig, ServerModel};
use rand_core::Rng as _;
use std::{mem, time::Duration};

impl World {
    /// Changes how the model of a server behaves, from its next use on.
    pub fn reconfigure(&mut self, server: ServerId, change: impl Fn(&mut ModelConfig)) {
        self.note(server.to_string(), "reconfigured");
        let slot = &mut self.servers[server.0];
        change(&mut slot.config);
        change(slot.model.config_mut());
        self.pump(server);
    }

    /// Makes a server forget every token that it gave out.
    pub fn reset_tokens(&mut self, server: ServerId) {
        self.note(server.to_string(), "forgets its tokens");
        self.servers[server.0].model.reset_tokens();
    }

    /// Makes one kind of request go wrong on a server, from the next one on.
    pub fn fail(&mut self, server: ServerId, request: Request, fault: Fault) {
        self.note(server.to_string(), &format!("{request} {fault:?}"));
        self.servers[server.0].faults.push((request, fault));
    }

    /// Makes all requests go well on a server again.
    pub fn heal(&mut self, server: ServerId) {
        self.note(server.to_string(), "healed");
        self.servers[server.0].faults.clear();
    }

    /// What happens to those who dial a server from here on. Open transports stay.
    pub fn set_reachable(&mut self, server: ServerId, reachable: Reachable) {
        self.note(server.to_string(), &format!("{reachable:?}"));
        self.servers[server.0].reachable = reachable;
    }

    /// Kills a server: its transports end, it forgets everything, and refuses until it is
    /// [`start`](Self::start)ed.
    pub fn crash(&mut self, server: ServerId) {
        self.note(server.to_string(), "crashes");
        for key in self.transports_to(server) {
            self.break_transport(key, &Failure::new(FailureKind::Reset, "the server is gone"));
        }
        let slot = &mut self.servers[server.0];
        slot.streams.clear();
        slot.paused = slot.paused.take().map(|_| Vec::new());
        slot.crashes += 1;
        slot.model = ServerModel::new(slot.config.clone(), self.now);
        slot.reachable = Reachable::Refuses;
        self.pump(server);
    }

    /// Starts a server again, with nothing in its memory.
    pub fn start(&mut self, server: ServerId) {
        self.set_reachable(server, Reachable::Up);
    }

    /// Kills a server and starts it at once.
    pub fn restart(&mut self, server: ServerId) {
        self.crash(server);
        self.start(server);
    }

    /// Sends GOAWAY on every transport of a server. One that is paused sends nothing.
    pub fn go_away(&mut self, server: ServerId, code: u32) {
        if self.servers[server.0].paused.is_some() {
            return;
        }
        self.note(server.to_string(), &format!("GOAWAY {code}"));
        for key in self.transports_to(server) {
            self.send_down(key, key.1, Reply::GoingAway { code });
        }
    }

    /// Ends every `Connect` stream of a server with a status; transports stay open. One that is paused
    /// ends nothing.
    pub fn finish_streams(&mut self, server: ServerId, status: &Status) {
        if self.servers[server.0].paused.is_some() {
            return;
        }
        self.note(server.to_string(), &format!("ends its streams: {status}"));
        let streams = mem::take(&mut self.servers[server.0].streams);
        self.end_streams(server, streams.keys().copied());
        for Stream { key, id, .. } in streams.into_values() {
            if let Some(transport) = self.transport_mut(key) {
                transport.streams.retain(|(ask, _)| *ask != id);
            }
            self.send_down(key, id, Reply::Finished(status.clone()));
        }
    }

    /// Turns the open transports of a client into black holes: nothing passes, and TCP stays open.
    pub fn black_hole(&mut self, client: ClientId) {
        self.note(client.to_string(), "its transports are black holes");
        for transport in self.clients[client.0].transports.iter_mut() {
            transport.is_black_hole = true;
        }
    }

    /// Stops the process of a server for a while, as SIGSTOP does: what arrives waits, and nothing
    /// is sent. One that is stopped already stays so, for as long as it was to be.
    pub fn pause_server(&mut self, server: ServerId, duration: Duration) {
        if self.servers[server.0].paused.is_some() {
            return;
        }
        self.note(server.to_string(), &format!("paused for {duration:?}"));
        self.servers[server.0].paused = Some(Vec::new());
        let at = self.now + duration;
        self.queue.push(at, Happening::ServerResumes(server));
    }

    /// Gives back what happens, or keeps it where it happens to a server whose process is stopped.
    pub(super) fn kept_by_paused(&mut self, happening: Happening) -> Option<Happening> {
        let server = match &happening {
            Happening::DialArrives { server, .. } => Some(*server),
            Happening::RequestArrives(ask) | Happening::ServerAnswers { call: ask, .. } => {
                self.transport(ask.key).map(|transport| transport.server)
            }
            Happening::CancelArrives(key, _) | Happening::CloseArrives(key) => {
                self.transport(*key).map(|transport| transport.server)
            }
            Happening::ClientWakes(_)
            | Happening::ClientResumes(_)
            | Happening::ServerWakes(_)
            | Happening::ServerResumes(_)
            | Happening::ReplyArrives { .. } => None,
        };
        let inbox = server.and_then(|server| self.servers[server.0].paused.as_mut());
        match inbox {
            Some(inbox) => {
                inbox.push(happening);
                None
            }
            None => Some(happening),
        }
    }

    pub(super) fn resume_server(&mut self, server: ServerId) {
        self.note(server.to_string(), "resumed");
        for happening in self.servers[server.0].paused.take().unwrap_or_default() {
            self.happen(happening);
        }
        self.pump(server);
    }

    /// A transport ends. Adapters differ in what they tell: of the transport alone, of the requests
    /// on it before, or of them afterwards. So does this.
    pub(super) fn break_transport(&mut self, key: TransportKey, failure: &Failure) {
        let Some(transport) = self.transport(key) else {
            return;
        };
        let ids: Vec<_> = transport.streams.iter().map(|(id, _)| *id).collect();
        if !transport.is_black_hole {
            let closed = (key.1, Reply::Closed(failure.clone()));
            let failed = ids
                .into_iter()
                .map(|id| (id, Reply::Failed(failure.clone())));
            let told: Vec<_> = match self.rng.next_u64() % 3 {
                0 => vec![closed],
                1 => failed.chain([closed]).collect(),
                _ => [closed].into_iter().chain(failed).collect(),
            };
            for (id, reply) in told {
                self.send_down(key, id, reply);
            }
        }
        self.clients[key.0.0].transports.remove(key.1);
    }
}
