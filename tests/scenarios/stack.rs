//! What a scenario of connections needs of a client, whoever performs what its machine asks for.

use chronicle_connection_driver::{
    Builder, Client, ConnectError, Events, Notice, Runtime,
    core::{
        Backoff, ConnectionString, Contract, Endpoint, Event, Session, State, Strategy, Timing,
    },
};
use std::{
    fmt::Debug,
    future::Future,
    time::{Duration, Instant},
};

/// A way to drive a machine over real sockets. Every adapter is one.
pub(crate) trait Stack: Clone + Send + Sync + 'static {
    type Builder: StackBuilder<Client = Self::Client>;
    type Client: StackClient<Events = Self::Events>;
    type Events: StackEvents;

    /// The one that the caller runs on.
    fn here() -> Self;

    /// Everything that can be set about a client.
    fn client(string: ConnectionString) -> Self::Builder;

    /// Completes at an instant, or soon after.
    fn pass_until(&self, at: Instant) -> impl Future<Output = ()> + Send;

    /// A client with defaults, connected.
    fn connect(
        string: ConnectionString,
    ) -> impl Future<Output = Result<Self::Client, ConnectError>> {
        Self::client(string).connect()
    }
}

/// See [`Builder`].
pub(crate) trait StackBuilder: Sized {
    type Client;

    fn strategy(self, strategy: Strategy) -> Self;
    fn skip_tls_validation(self, skip: bool) -> Self;
    fn extra_roots(self, pem: &str) -> Self;
    fn contract(self, contract: Contract) -> Self;
    fn connect_timeout(self, timeout: Option<Duration>) -> Self;
    fn timing(self, timing: Timing) -> Self;
    fn backoff(self, backoff: Backoff) -> Self;
    fn start(self) -> Result<Self::Client, ConnectError>;
    fn connect(self) -> impl Future<Output = Result<Self::Client, ConnectError>>;
    fn resolve(
        self,
        on_event: impl FnMut(&Event),
    ) -> impl Future<Output = Result<Vec<Endpoint>, ConnectError>>;
}

/// See [`Client`].
pub(crate) trait StackClient: Clone + Debug + Send + 'static {
    type Events;

    fn session(&self) -> Option<Session>;
    fn state(&self) -> State;
    fn events(&self) -> Self::Events;
    fn connected(&self) -> impl Future<Output = Result<Session, ConnectError>>;
    fn close(&self) -> impl Future<Output = ()>;
}

/// See [`Events`].
pub(crate) trait StackEvents {
    fn next(&mut self) -> impl Future<Output = Option<Notice>>;
}

impl<R: Runtime> Stack for R {
    type Builder = Builder<R>;
    type Client = Client<R>;
    type Events = Events;

    fn here() -> Self {
        R::current().unwrap()
    }

    fn client(string: ConnectionString) -> Builder<R> {
        Client::builder(string)
    }

    fn pass_until(&self, at: Instant) -> impl Future<Output = ()> + Send {
        self.sleep_until(at)
    }
}

impl<R: Runtime> StackBuilder for Builder<R> {
    type Client = Client<R>;

    fn strategy(self, strategy: Strategy) -> Self {
        self.strategy(strategy)
    }

    fn skip_tls_validation(self, skip: bool) -> Self {
        self.skip_tls_validation(skip)
    }

    fn extra_roots(self, pem: &str) -> Self {
        self.extra_roots(pem)
    }

    fn contract(self, contract: Contract) -> Self {
        self.contract(contract)
    }

    fn connect_timeout(self, timeout: Option<Duration>) -> Self {
        self.connect_timeout(timeout)
    }

    fn timing(self, timing: Timing) -> Self {
        self.timing(timing)
    }

    fn backoff(self, backoff: Backoff) -> Self {
        self.backoff(backoff)
    }

    fn start(self) -> Result<Client<R>, ConnectError> {
        self.start()
    }

    async fn connect(self) -> Result<Client<R>, ConnectError> {
        self.connect().await
    }

    async fn resolve(self, on_event: impl FnMut(&Event)) -> Result<Vec<Endpoint>, ConnectError> {
        self.resolve(on_event).await
    }
}

impl<R: Runtime> StackClient for Client<R> {
    type Events = Events;

    fn session(&self) -> Option<Session> {
        self.session()
    }

    fn state(&self) -> State {
        self.state()
    }

    fn events(&self) -> Events {
        self.events()
    }

    async fn connected(&self) -> Result<Session, ConnectError> {
        self.connected().await
    }

    async fn close(&self) {
        self.close().await;
    }
}

impl StackEvents for Events {
    async fn next(&mut self) -> Option<Notice> {
        self.next().await
    }
}
