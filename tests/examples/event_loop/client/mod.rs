//! A loop around a [`Connection`]: one thread, non-blocking sockets, and one timer.
//!
//! A turn asks everything that is under way whether it got any further: transports, requests and
//! queries. A client has a few of each, so asking all of them costs less than books on whose socket
//! it was. When nothing has, the thread sleeps until a socket is ready, somebody gives a command, or
//! the machine's deadline is there.
//!
//! h2 is written for async runtimes, and is polled by hand here: its wakers set a flag which says
//! that another turn is worth it, and readiness of sockets comes from the loop alone.

mod dial;
mod dns;
mod failures;
mod grpc;
mod request;
mod socket;
pub(crate) mod tls;
mod transport;

use chronicle_connection::{
    Command, Connection, Event, Failure, FailureKind, Id, Input, Output, Reply, State,
};
use mio::{Events, Poll, Token, event::Source};
use rand_core::Rng;
use request::Request;
use rustls::ClientConfig;
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, TryRecvError, channel},
    },
    task::{Context, Poll as Polled, Wake, Waker},
    time::{Duration, Instant},
};
use transport::Transport;

/// A machine with all of its I/O. Dropping it drops all of that.
pub(crate) struct EventLoop<R> {
    connection: Connection<R>,
    poll: Poll,
    commands: Receiver<Command>,
    kit: Kit,
    transports: BTreeMap<Id, Transport>,
    requests: BTreeMap<Id, Request>,
    queries: BTreeMap<Id, dns::Query>,
    /// What came in the last turn.
    inputs: VecDeque<Input>,
    /// Whether another turn is worth it without waiting.
    again: Arc<Again>,
}

impl<R: Rng> EventLoop<R> {
    /// A loop around a connection, and the handle to it.
    ///
    /// # Errors
    /// Those of the system, which may have no more descriptors to give.
    pub(crate) fn new(
        connection: Connection<R>,
        tls: Arc<ClientConfig>,
    ) -> io::Result<(Self, Handle)> {
        let poll = Poll::new()?;
        let waker = Arc::new(mio::Waker::new(poll.registry(), ANY)?);
        let (sender, commands) = channel();
        let this = Self {
            connection,
            commands,
            kit: Kit {
                registry: poll.registry().try_clone()?,
                waker: Arc::clone(&waker),
                tls,
            },
            poll,
            transports: BTreeMap::new(),
            requests: BTreeMap::new(),
            queries: BTreeMap::new(),
            inputs: VecDeque::new(),
            again: Arc::default(),
        };
        let handle = Handle {
            commands: Some(sender),
            waker,
        };
        Ok((this, handle))
    }

    /// Connects, and stays connected until the machine stops or every handle is gone. Tells every
    /// event, and what the machine is at after each input.
    ///
    /// # Errors
    /// Those of waiting, after which nothing can go on.
    pub(crate) fn run(mut self, mut tell: impl FnMut(Vec<Event>, State)) -> io::Result<()> {
        let mut input = Input::from(Command::Connect);
        loop {
            self.connection.handle(Instant::now(), input);
            let mut events = vec![];
            while let Some(output) = self.connection.poll_output() {
                match output {
                    Output::Event(event) => events.push(event),
                    output => self.perform(output),
                }
            }
            let state = self.connection.state();
            let is_stopped = state == State::Stopped;
            tell(events, state);
            if is_stopped {
                return Ok(());
            }
            input = self.next_input()?;
        }
    }

    fn next_input(&mut self) -> io::Result<Input> {
        loop {
            if let Some(input) = self.inputs.pop_front() {
                return Ok(input);
            }
            self.turn();
            if self.again.take() || !self.inputs.is_empty() {
                continue;
            }
            let patience = self
                .connection
                .poll_timeout()
                .map(|at| at.saturating_duration_since(Instant::now()));
            if patience == Some(Duration::ZERO) {
                return Ok(Command::Tick.into());
            }
            let dials = self.transports.values().filter_map(Transport::timeout);
            let stagger = dials
                .min()
                .map(|at| at.saturating_duration_since(Instant::now()));
            let patience = [patience, stagger].into_iter().flatten().min();
            // Which sockets are ready does not matter: the next turn asks them all.
            match self.poll.poll(&mut Events::with_capacity(64), patience) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Asks everything once.
    fn turn(&mut self) {
        let waker = Waker::from(Arc::clone(&self.again));
        let mut cx = Context::from_waker(&waker);
        loop {
            match self.commands.try_recv() {
                Ok(command) => self.inputs.push_back(command.into()),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.inputs.push_back(Command::Close.into());
                    break;
                }
            }
        }
        let inputs = &mut self.inputs;
        // Transports first: that their requests fail is what comes of their end, not the news.
        self.transports.retain(|id, transport| {
            let reply = transport.poll(&self.kit, &mut cx);
            keep(inputs, *id, reply, |reply| {
                matches!(reply, Reply::Closed(_) | Reply::Failed(_))
            })
        });
        self.requests.retain(|id, request| {
            keep(inputs, *id, request.poll(&mut cx), |reply| {
                matches!(
                    reply,
                    Reply::Http(_) | Reply::Finished(_) | Reply::Failed(_)
                )
            })
        });
        self.queries.retain(|id, query| {
            let reply = query.poll(&self.kit);
            keep(inputs, *id, reply, |reply| {
                matches!(reply, Reply::Failed(_))
            })
        });
    }

    fn perform(&mut self, output: Output) {
        match output {
            Output::NameServers { id } => {
                let reply = dns::name_servers();
                self.inputs.push_back(Input::Reply { id, reply });
            }
            Output::Dns {
                id,
                server,
                transport,
                message,
                limit,
            } => {
                let query = dns::Query::new(&self.kit, &server, transport, message, limit);
                self.queries.insert(id, query);
            }
            Output::Open { id, to } => {
                self.transports.insert(id, Transport::open(&self.kit, to));
            }
            Output::Http {
                id,
                on,
                request,
                limit,
            } => self.request(id, on, |transport| Request::http(transport, request, limit)),
            Output::Unary(call) => {
                self.request(call.id, call.on, |transport| {
                    Request::unary(transport, call)
                });
            }
            Output::ServerStream(call) => {
                self.request(call.id, call.on, |transport| {
                    Request::stream(transport, call)
                });
            }
            Output::Cancel(id) => {
                self.requests.remove(&id);
                self.queries.remove(&id);
            }
            Output::Close(id) => {
                // Requests on it end by that, and nobody asks how any more.
                self.transports.remove(&id);
            }
            Output::Event(_) => {}
        }
        self.again.set();
    }

    fn request(
        &mut self,
        id: Id,
        on: Id,
        begin: impl FnOnce(&mut Transport) -> Result<Request, Failure>,
    ) {
        let begun = match self.transports.get_mut(&on) {
            Some(transport) => begin(transport),
            None => Err(Failure::new(FailureKind::Closed, "the transport is gone")),
        };
        match begun {
            Ok(request) => {
                self.requests.insert(id, request);
            }
            Err(failure) => {
                let reply = Reply::Failed(failure);
                self.inputs.push_back(Input::Reply { id, reply });
            }
        }
    }
}

/// Hands on what came, and says whether more may come.
fn keep(
    inputs: &mut VecDeque<Input>,
    id: Id,
    reply: Polled<Reply>,
    is_last: impl Fn(&Reply) -> bool,
) -> bool {
    let Polled::Ready(reply) = reply else {
        return true;
    };
    let is_last = is_last(&reply);
    inputs.push_back(Input::Reply { id, reply });
    !is_last
}

/// Gives commands, from any thread. The connection closes with its last handle.
pub(crate) struct Handle {
    /// `None` only while this is dropped.
    commands: Option<Sender<Command>>,
    waker: Arc<mio::Waker>,
}

impl Handle {
    /// Gives a command. Where the loop has ended there is nothing left to command.
    pub(crate) fn command(&self, command: Command) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
        }
        let _ = self.waker.wake();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.commands = None;
        let _ = self.waker.wake();
    }
}

/// What every socket needs.
struct Kit {
    registry: mio::Registry,
    /// Ends the wait, for the threads that look names up.
    waker: Arc<mio::Waker>,
    tls: Arc<ClientConfig>,
}

impl Kit {
    /// Makes the loop wake up whenever a socket is ready for anything.
    fn register(&self, socket: &mut impl Source) -> io::Result<()> {
        let interests = mio::Interest::READABLE | mio::Interest::WRITABLE;
        self.registry.register(socket, ANY, interests)
    }
}

/// The waker of everything that is polled.
#[derive(Default)]
struct Again(AtomicBool);

impl Again {
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Again {
    fn wake(self: Arc<Self>) {
        self.set();
    }
}

/// The one token there is.
const ANY: Token = Token(0);
