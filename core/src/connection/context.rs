//! What every phase works with: the configuration, the time, the generator, the outputs, and what a
//! connection remembers across attempts.

use super::{CallMetadata, Stats, random};
use crate::{
    AttemptError, Call, Config, Contract, DnsTransport, Endpoint, Event, Failure, FailureKind, Id,
    Jitter, Output, Reply, Strategy, Token, TokenError, TokenMachine, config::Credentials,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use rand_core::Rng;
use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

#[derive(Debug, Clone)]
pub(super) struct Context<R> {
    pub(super) config: Arc<Config>,
    /// A copy of the configured one: a custom strategy may have a state of its own.
    pub(super) strategy: Strategy,
    pub(super) contract: Contract,
    pub(super) rng: R,
    /// The time of the input at hand.
    pub(super) now: Instant,
    pub(super) outputs: VecDeque<Output>,
    pub(super) stats: Stats,
    pub(super) memory: Memory,
    /// Where the mode of authentication is by tokens. They survive reconnects and servers.
    pub(super) tokens: Option<TokenMachine>,
    pub(super) next_id: u64,
}

/// What outlives an attempt.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    /// Attempts since the start or the last session.
    pub(super) attempt: u32,
    /// Where the ladder of waits stands: how many waits were taken.
    pub(super) step: u32,
    /// Servers that failed after they were chosen, since the last session.
    pub(super) failed: BTreeSet<Endpoint>,
    /// Servers whose sessions were too short to be stable, since the last stable one, the newest
    /// last. Two of them would pass a client to and fro for ever, if a session with the one cleared
    /// the other.
    pub(super) unstable: Vec<Endpoint>,
    /// The server chosen last, and where it stood in the list: round-robin goes on behind it.
    pub(super) round_robin: Option<(Endpoint, usize)>,
    /// A session was dropped and no selection was made since.
    pub(super) fresh_reconnect: bool,
    /// Until the first session: when the first connect must have succeeded.
    pub(super) connect_deadline: Option<Instant>,
    /// What the last lookup gave; empty before the first, and after a name server told that there
    /// are no servers.
    pub(super) last_good: Vec<Endpoint>,
    /// Why the last attempt failed.
    pub(super) last_error: Option<AttemptError>,
}

impl Memory {
    /// Whether a server ranks behind those that have not failed.
    pub(super) fn ranks_behind(&self, server: &Endpoint) -> bool {
        self.failed.contains(server) || self.unstable.contains(server)
    }

    /// A session was too short to be stable.
    pub(super) fn add_unstable(&mut self, server: Endpoint) {
        self.unstable.retain(|other| *other != server);
        self.unstable.push(server);
    }

    /// Gives all servers of short sessions another chance but the newest, which would have the fewest
    /// clients of all.
    pub(super) fn forgive(&mut self) {
        let newest = self.unstable.pop();
        self.unstable.clear();
        self.unstable.extend(newest);
    }
}

impl<R: Rng> Context<R> {
    pub(super) fn new(config: Arc<Config>, contract: Contract, rng: R, now: Instant) -> Self {
        let tokens = match &config.credentials {
            Credentials::None | Credentials::ApiKey(_) => None,
            Credentials::Client { id, secret } => Some(TokenMachine::new(id, secret.clone())),
        };
        Self {
            tokens,
            strategy: config.strategy.clone(),
            config,
            contract,
            rng,
            now,
            outputs: VecDeque::new(),
            stats: Stats::default(),
            memory: Memory {
                attempt: 0,
                step: 0,
                failed: BTreeSet::new(),
                unstable: Vec::new(),
                round_robin: None,
                fresh_reconnect: false,
                connect_deadline: None,
                last_good: Vec::new(),
                last_error: None,
            },
            next_id: 0,
        }
    }

    /// Whether no session has been up yet.
    pub(super) fn is_initial(&self) -> bool {
        self.stats.sessions == 0
    }

    pub(super) fn emit(&mut self, event: Event) {
        self.put(Output::Event(event));
    }

    pub(super) fn name_servers(&mut self) -> Id {
        let id = self.mint();
        self.put(Output::NameServers { id });
        id
    }

    pub(super) fn dns(
        &mut self,
        server: Endpoint,
        transport: DnsTransport,
        message: Bytes,
        limit: usize,
    ) -> Id {
        let id = self.mint();
        self.put(Output::Dns {
            id,
            server,
            transport,
            message,
            limit,
        });
        id
    }

    pub(super) fn open(&mut self, to: Endpoint) -> Id {
        let id = self.mint();
        self.put(Output::Open { id, to });
        id
    }

    pub(super) fn http(&mut self, on: Id, method: Method, path: &'static str, limit: usize) -> Id {
        let mut request = http::Request::new(Bytes::new());
        *request.method_mut() = method;
        *request.uri_mut() = http::Uri::from_static(path);
        self.send(on, request, limit)
    }

    pub(super) fn send(&mut self, on: Id, request: http::Request<Bytes>, limit: usize) -> Id {
        let id = self.mint();
        self.put(Output::Http {
            id,
            on,
            request,
            limit,
        });
        id
    }

    /// A call of the session's own; `authenticated` ones carry the credentials.
    pub(super) fn call(
        &mut self,
        open: fn(Call) -> Output,
        on: Id,
        path: &'static str,
        authenticated: bool,
        message: Bytes,
        limit: usize,
    ) -> Id {
        let id = self.mint();
        let metadata = if authenticated {
            self.call_metadata().headers
        } else {
            HeaderMap::new()
        };
        self.put(open(Call {
            id,
            on,
            path,
            metadata,
            message,
            limit,
        }));
        id
    }

    pub(super) fn cancel(&mut self, id: Id) {
        self.put(Output::Cancel(id));
    }

    /// Ends what a lookup asked for. What nobody was asked for yet is withdrawn instead.
    pub(super) fn cancel_lookup(&mut self, request: Id) {
        let queued = self.outputs.len();
        self.outputs.retain(|output| {
            !matches!(
                output,
                Output::NameServers { id } | Output::Dns { id, .. } if *id == request
            )
        });
        if self.outputs.len() == queued {
            self.cancel(request);
        }
    }

    /// Ends a transport with every request on it. One that nobody was asked to open yet is
    /// withdrawn instead.
    pub(super) fn close(&mut self, transport: Id) {
        let queued = self.outputs.len();
        self.outputs
            .retain(|output| !matches!(output, Output::Open { id, .. } if *id == transport));
        if self.outputs.len() == queued {
            self.put(Output::Close(transport));
        }
    }

    /// Withdraws every request on a transport that nobody was asked for yet.
    pub(super) fn withdraw_requests(&mut self) {
        self.outputs.retain(|output| match output {
            Output::Http { .. } | Output::Unary(_) | Output::ServerStream(_) => false,
            Output::NameServers { .. }
            | Output::Dns { .. }
            | Output::Open { .. }
            | Output::Cancel(_)
            | Output::Close(_)
            | Output::Event(_) => true,
        });
    }

    /// Counts a reply to an unknown or finished request. A transport that opened too late, for it
    /// crossed with its `Close`, is closed.
    pub(super) fn ignore(&mut self, id: Id, reply: &Reply) {
        self.stats.ignored_replies += 1;
        if matches!(reply, Reply::Opened { .. }) && id.0 < self.next_id {
            self.close(id);
        }
    }

    pub(super) fn call_metadata(&self) -> CallMetadata {
        let mut headers = HeaderMap::new();
        let mut generation = 0;
        match &self.config.credentials {
            Credentials::None => {}
            Credentials::ApiKey(key) => {
                // The connection string refuses keys that are no header values, so `Err` is out of
                // reach.
                if let Ok(mut value) = HeaderValue::from_str(key.expose()) {
                    value.set_sensitive(true);
                    headers.insert("api-key", value);
                }
            }
            Credentials::Client { .. } => {
                let token = self.tokens.as_ref().and_then(|all| all.token(self.now));
                if let Some(token) = token {
                    headers.insert(header::AUTHORIZATION, token.authorization());
                    generation = token.generation();
                }
            }
        }
        CallMetadata {
            headers,
            generation,
        }
    }

    /// The generation of the token that calls carry now; 0 where they carry none.
    pub(super) fn token_generation(&self) -> u64 {
        let token = self.tokens.as_ref().and_then(|all| all.token(self.now));
        token.map_or(0, Token::generation)
    }

    /// Never serves the token of this generation again.
    pub(super) fn reject_token(&mut self, generation: u64) {
        if let Some(tokens) = &mut self.tokens {
            tokens.reject(generation);
        }
    }

    /// Whether tokens are the mode and none is at hand.
    pub(super) fn lacks_token(&self) -> bool {
        self.lacks_token_at(self.now)
    }

    /// Whether tokens are the mode and none that is at hand now is valid at that time.
    pub(super) fn lacks_token_at(&self, at: Instant) -> bool {
        let lacks = |tokens: &TokenMachine| tokens.token(at).is_none();
        self.tokens.as_ref().is_some_and(lacks)
    }

    /// Tells what became of a wish for a token, where tokens are the mode.
    pub(super) fn tell_token(&mut self, error: Option<TokenError>) {
        if let Some(tokens) = &self.tokens {
            let left = |token: &Token| token.expires_at().saturating_duration_since(self.now);
            self.emit(Event::Token {
                generation: tokens.generation(),
                expires_in: tokens.token(self.now).map(left),
                error,
            });
        }
    }

    /// Takes the next rung of the ladder and draws its wait.
    pub(super) fn next_wait(&mut self) -> Duration {
        self.memory.step = self.memory.step.saturating_add(1);
        let longest = self.config.backoff.wait(self.memory.step);
        match self.config.backoff.jitter {
            Jitter::None => longest,
            Jitter::UpperHalf => random::duration(&mut self.rng, longest / 2, longest),
        }
    }

    fn put(&mut self, output: Output) {
        if self.outputs.capacity() == 0 {
            // Most inputs bring one or two, and the queue goes when they are taken.
            self.outputs.reserve_exact(2);
        }
        self.outputs.push_back(output);
    }

    fn mint(&mut self) -> Id {
        let id = Id(self.next_id);
        self.next_id += 1;
        id
    }
}

/// The failure of a request that got a reply of a kind that it cannot get.
pub(super) fn wrong_kind() -> Failure {
    Failure::new(
        FailureKind::Protocol,
        "the reply is of a kind that this request cannot get",
    )
}

/// The failure of a request whose time is up.
pub(super) fn timed_out(after: Duration) -> Failure {
    Failure::new(
        FailureKind::TimedOut,
        format!("no answer within {} s", after.as_secs_f64()),
    )
}

/// Checks what the performer of the I/O was told to see to.
pub(super) fn check_limit(message: &Bytes, limit: usize) -> Result<(), Failure> {
    if message.len() <= limit {
        return Ok(());
    }
    Err(Failure::new(
        FailureKind::TooLarge,
        format!("{} bytes where at most {limit} are allowed", message.len()),
    ))
}
