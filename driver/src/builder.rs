//! What can be set about a connection.

use crate::{
    Client, ConnectError, Events, Runtime,
    client_certificate::ClientCertificate,
    driver::{Driver, Requests, Transports, View},
    events,
    resolve::resolve,
    retry::Refresh,
    suspend::SuspendWatch,
    tls::Tls,
};
use chronicle_connection::{
    Backoff, ClientInfo, Config, ConfigBuilder, ConfigError, Connection, ConnectionString,
    Contract, Endpoint, Event, Secret, State, Strategy, Timing,
};
use rand_chacha::ChaCha12Rng;
use rand_core::SeedableRng;
use std::{
    fmt,
    marker::PhantomData,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::sync::{broadcast, mpsc, watch};
use tracing::Instrument;
use zeroize::Zeroizing;

/// Collects what a connection is to be. What is not set comes from the connection string, then from
/// defaults.
#[derive(Clone)]
pub struct Builder<R> {
    config: ConfigBuilder,
    contract: Contract,
    /// `None` where the application has not said; within, `None` is for ever.
    connect_timeout: Option<Option<Duration>>,
    extra_roots: Vec<u8>,
    certificate: Option<Zeroizing<Vec<u8>>>,
    is_running_with_debugger: bool,
    open_timeout: Duration,
    runtime: PhantomData<fn() -> R>,
}

/// Shows nothing of a certificate, which holds a key.
impl<R> fmt::Debug for Builder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

impl<R: Runtime> Builder<R> {
    pub(crate) fn new(connection_string: ConnectionString) -> Self {
        Self {
            config: Config::builder(connection_string),
            contract: Contract::default(),
            connect_timeout: None,
            extra_roots: Vec::new(),
            certificate: None,
            is_running_with_debugger: false,
            open_timeout: Timing::default().open,
            runtime: PhantomData,
        }
    }

    /// How a server is chosen. Must agree with `loadBalancer` where the string has it.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.config = self.config.strategy(strategy);
        self
    }

    /// Connect without proof that both sides speak the same contract. Must agree with
    /// `skipCompatibilityCheck` where the string has it.
    pub fn skip_compatibility_check(mut self, skip: bool) -> Self {
        self.config = self.config.skip_compatibility_check(skip);
        self
    }

    /// Accept any server certificate. `false` here or in the string validates, whatever the other
    /// says.
    pub fn skip_tls_validation(mut self, skip: bool) -> Self {
        self.config = self.config.skip_tls_validation(skip);
        self
    }

    /// Trust these roots (PEM) besides those of the platform.
    pub fn extra_roots(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.extra_roots = pem.into();
        self
    }

    /// Show this certificate to servers that ask for one: PEM with the certificate, those that
    /// vouch for it and the key, not encrypted; or, with the feature `pkcs12`, PKCS#12.
    pub fn client_certificate(mut self, content: impl Into<Vec<u8>>) -> Self {
        self.certificate = Some(Zeroizing::new(content.into()));
        self
    }

    /// The same from a file, which is read when the connection starts. Must agree with
    /// `certificatePath` where the string has it.
    pub fn client_certificate_path(mut self, path: impl Into<String>) -> Self {
        self.config = self.config.certificate_path(path);
        self
    }

    /// The password of a certificate in PKCS#12. Must agree with `certificatePassword` where the
    /// string has it.
    pub fn client_certificate_password(mut self, password: Secret) -> Self {
        self.config = self.config.certificate_password(password);
        self
    }

    /// The contract of the application. The default is what the session itself needs.
    pub fn contract(mut self, contract: Contract) -> Self {
        self.contract = contract;
        self
    }

    /// How long the first session may take to come up, retries included; `None` tries for ever.
    /// The default is 30 s for [`connect`](Self::connect), and for ever for [`start`](Self::start).
    pub fn connect_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// The deadlines and waits of the connection.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.open_timeout = timing.open;
        self.config = self.config.timing(timing);
        self
    }

    /// The waits between attempts.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.config = self.config.backoff(backoff);
        self
    }

    /// Tell the server that a debugger is attached: it then evicts nobody.
    pub fn debugger(mut self, attached: bool) -> Self {
        self.is_running_with_debugger = attached;
        self
    }

    /// Connects: completes with the first session, or with the error that ends the attempts.
    ///
    /// # Errors
    /// [`ConnectError`]: what is wrong with the configuration or with every server that was tried.
    pub async fn connect(self) -> Result<Client<R>, ConnectError> {
        let client = self.spawn(Some(Config::DEFAULT_CONNECT_TIMEOUT))?;
        client.first_connected().await?;
        Ok(client)
    }

    /// Starts to connect and returns at once.
    ///
    /// # Errors
    /// [`ConnectError`]: what is wrong with the configuration.
    pub fn start(self) -> Result<Client<R>, ConnectError> {
        self.spawn(None)
    }

    /// Looks the servers up once, as the first attempt of a connect would, and connects to none.
    ///
    /// Gives the servers in order; none where there are none, or nobody could tell. The events are
    /// those of such an attempt up to [`Event::Connecting`], or to [`Event::BackingOff`], which tells
    /// why there are no servers.
    ///
    /// # Errors
    /// [`ConnectError`]: what is wrong with the configuration.
    pub async fn resolve(
        self,
        on_event: impl FnMut(&Event),
    ) -> Result<Vec<Endpoint>, ConnectError> {
        let runtime = R::current()?;
        let config = self.config.connect_timeout(None).build()?;
        let machine = Connection::new(config, self.contract, seeded()?, Instant::now());
        Ok(resolve(runtime, machine, on_event).await)
    }

    fn spawn(self, connect_timeout: Option<Duration>) -> Result<Client<R>, ConnectError> {
        let (client, mut driver) = self.assemble(connect_timeout)?;
        let task = async move { driver.run().await };
        let span = tracing::info_span!("chronicle");
        client.runtime.spawn(task.instrument(span));
        Ok(client)
    }

    /// A client, and the driver that has to run for it.
    pub(crate) fn assemble(
        self,
        connect_timeout: Option<Duration>,
    ) -> Result<(Client<R>, Driver<R>), ConnectError> {
        let runtime = R::current()?;
        let info = this_process(self.is_running_with_debugger);
        let connect_timeout = self.connect_timeout.unwrap_or(connect_timeout);
        let config = self
            .config
            .client(info)
            .connect_timeout(connect_timeout)
            .build()?;
        let password = config.certificate_password();
        let certificate = match (&self.certificate, config.certificate_path()) {
            (Some(_), Some(_)) => return Err(ConfigError::Contradiction("certificatePath").into()),
            (Some(content), None) => Some(ClientCertificate::parse(content, password)?),
            (None, Some(path)) => Some(ClientCertificate::read(Path::new(path), password)?),
            (None, None) => None,
        };
        let tls = Tls::new(config.skip_tls_validation(), &self.extra_roots, certificate)?;
        let (commands, command_receiver) = mpsc::unbounded_channel();
        let (live, live_receiver) = watch::channel(None);
        let (events, first_events) = broadcast::channel(events::QUEUE);
        let (view, view_receiver) = watch::channel(View {
            state: State::Idle,
            was_connected: false,
            failed: None,
        });
        let (token_news, news) = watch::channel(());
        let refresh = config
            .has_tokens()
            .then(|| Refresh::new(self.contract.clone(), news));
        let client = Client {
            refresh,
            runtime: runtime.clone(),
            commands,
            view: view_receiver,
            live: live_receiver,
            events: events.downgrade(),
            first_events: Arc::new(Mutex::new(Some(Events::new(first_events)))),
        };
        let driver = Driver {
            runtime,
            tls,
            open_timeout: self.open_timeout,
            machine: Connection::new(config, self.contract, seeded()?, Instant::now()),
            commands: command_receiver,
            transports: Transports::default(),
            requests: Requests::default(),
            suspend: SuspendWatch::new(),
            in_a_row: 0,
            live,
            token_news,
            events,
            view,
        };
        Ok((client, driver))
    }
}

fn seeded() -> Result<ChaCha12Rng, ConnectError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| ConnectError::NoRandomness(error.to_string()))?;
    Ok(ChaCha12Rng::from_seed(seed))
}

fn this_process(is_running_with_debugger: bool) -> ClientInfo {
    let path = std::env::current_exe().unwrap_or_default();
    ClientInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        process_id: i32::try_from(std::process::id()).unwrap_or_default(),
        process_path: path.to_string_lossy().into_owned(),
        machine_name: machine_name(),
        is_running_with_debugger,
    }
}

#[cfg(unix)]
fn machine_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn machine_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}
