//! What a connection is built from.

use crate::{Authentication, ConnectionString, Endpoint, LoadBalancer, Secret, Servers, Strategy};
use std::{fmt, time::Duration};

/// A checked configuration of a connection.
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) servers: Servers,
    pub(crate) srv_name_server: Option<Endpoint>,
    pub(crate) credentials: Credentials,
    pub(crate) strategy: Strategy,
    pub(crate) skip_compatibility_check: bool,
    pub(crate) skip_tls_validation: bool,
    pub(crate) certificate_path: Option<String>,
    pub(crate) certificate_password: Option<Secret>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) timing: Timing,
    pub(crate) backoff: Backoff,
    pub(crate) client: ClientInfo,
}

impl Config {
    /// How long the first connect may take unless set otherwise: 30 s.
    pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

    /// Starts a configuration from a connection string.
    pub fn builder(connection_string: ConnectionString) -> ConfigBuilder {
        ConfigBuilder {
            connection_string,
            strategy: None,
            skip_compatibility_check: None,
            skip_tls_validation: None,
            certificate_path: None,
            certificate_password: None,
            connect_timeout: Some(Self::DEFAULT_CONNECT_TIMEOUT),
            timing: Timing::default(),
            backoff: Backoff::default(),
            client: ClientInfo::default(),
        }
    }

    /// Whether calls carry tokens, which can be refreshed.
    pub fn has_tokens(&self) -> bool {
        match self.credentials {
            Credentials::Client { .. } => true,
            Credentials::None | Credentials::ApiKey(_) => false,
        }
    }

    /// Whether any server certificate is to be accepted.
    pub fn skip_tls_validation(&self) -> bool {
        self.skip_tls_validation
    }

    /// The file of the client's certificate, where one is given.
    pub fn certificate_path(&self) -> Option<&str> {
        self.certificate_path.as_deref()
    }

    /// The password of the client's certificate, where one is given.
    pub fn certificate_password(&self) -> Option<&Secret> {
        self.certificate_password.as_ref()
    }
}

/// What a client proves who it is with.
#[derive(Debug, Clone)]
pub(crate) enum Credentials {
    None,
    ApiKey(Secret),
    Client { id: String, secret: Secret },
}

/// Collects a [`Config`]. What is not set comes from the connection string, then from defaults.
#[derive(Debug, Clone)]
pub struct ConfigBuilder {
    connection_string: ConnectionString,
    strategy: Option<Strategy>,
    skip_compatibility_check: Option<bool>,
    skip_tls_validation: Option<bool>,
    certificate_path: Option<String>,
    certificate_password: Option<Secret>,
    connect_timeout: Option<Duration>,
    timing: Timing,
    backoff: Backoff,
    client: ClientInfo,
}

impl ConfigBuilder {
    /// How a server is chosen. Must agree with `loadBalancer` where the string has it.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = Some(strategy);
        self
    }

    /// Connect without proof that both sides speak the same contract. Must agree with
    /// `skipCompatibilityCheck` where the string has it.
    pub fn skip_compatibility_check(mut self, skip: bool) -> Self {
        self.skip_compatibility_check = Some(skip);
        self
    }

    /// Accept any server certificate. `false` here or in the string validates, whatever the other
    /// says.
    pub fn skip_tls_validation(mut self, skip: bool) -> Self {
        self.skip_tls_validation = Some(skip);
        self
    }

    /// The file of the client's certificate. Must agree with `certificatePath` where the string has
    /// it.
    pub fn certificate_path(mut self, path: impl Into<String>) -> Self {
        self.certificate_path = Some(path.into());
        self
    }

    /// The password of that file. Must agree with `certificatePassword` where the string has it.
    pub fn certificate_password(mut self, password: Secret) -> Self {
        self.certificate_password = Some(password);
        self
    }

    /// How long the first connect may take, retries included; `None` tries for ever. Default 30 s.
    pub fn connect_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The deadlines and waits of a connection.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// The waits between attempts.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// What the server is told about this process.
    pub fn client(mut self, client: ClientInfo) -> Self {
        self.client = client;
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    /// [`ConfigError`] where two places contradict each other, where a duration makes no sense,
    /// and for what this version cannot do yet.
    pub fn build(self) -> Result<Config, ConfigError> {
        let string = &self.connection_string;
        let credentials = match string.authentication() {
            Authentication::None => Credentials::None,
            Authentication::ApiKey(key) => Credentials::ApiKey(key.clone()),
            Authentication::ClientCredentials { id, secret } => Credentials::Client {
                id: id.to_owned(),
                secret: secret.clone(),
            },
        };
        let certificate_path = agree(
            "certificatePath",
            self.certificate_path,
            string.certificate_path().map(str::to_owned),
        )?;
        let certificate_password = agree(
            "certificatePassword",
            self.certificate_password,
            string.certificate_password().cloned(),
        )?;
        let strategy = agree_on_strategy(self.strategy, string.load_balancer())?;
        let skip_compatibility_check = agree(
            "skipCompatibilityCheck",
            self.skip_compatibility_check,
            string.skip_compatibility_check(),
        )?;
        let skip_tls_validation = match (self.skip_tls_validation, string.skip_tls_validation()) {
            (Some(false), _) | (_, Some(false)) => false,
            (code, string) => code.or(string).unwrap_or(false),
        };
        self.timing.check()?;
        self.backoff.check()?;
        if self.connect_timeout == Some(Duration::ZERO) {
            return Err(ConfigError::Zero("connect_timeout"));
        }
        check_longest("connect_timeout", self.connect_timeout.unwrap_or_default())?;
        Ok(Config {
            servers: string.servers().clone(),
            srv_name_server: string.srv_name_server().cloned(),
            credentials,
            strategy,
            skip_compatibility_check: skip_compatibility_check.unwrap_or(false),
            skip_tls_validation,
            certificate_path,
            certificate_password,
            connect_timeout: self.connect_timeout,
            timing: self.timing,
            backoff: self.backoff,
            client: self.client,
        })
    }
}

/// What code or string says; where both do, they must say the same.
fn agree<T: PartialEq>(
    option: &'static str,
    code: Option<T>,
    string: Option<T>,
) -> Result<Option<T>, ConfigError> {
    match (code, string) {
        (Some(code), Some(string)) if code != string => Err(ConfigError::Contradiction(option)),
        (code, string) => Ok(code.or(string)),
    }
}

fn agree_on_strategy(
    code: Option<Strategy>,
    string: Option<LoadBalancer>,
) -> Result<Strategy, ConfigError> {
    let Some(named) = string else {
        return Ok(code.unwrap_or_default());
    };
    let Some(code) = code else {
        return Ok(match named {
            LoadBalancer::LeastConnections => Strategy::default(),
            LoadBalancer::RoundRobin => Strategy::RoundRobin,
            LoadBalancer::Random => Strategy::Random,
        });
    };
    match (&code, named) {
        (Strategy::LeastConnections { .. }, LoadBalancer::LeastConnections)
        | (Strategy::RoundRobin, LoadBalancer::RoundRobin)
        | (Strategy::Random, LoadBalancer::Random) => Ok(code),
        (
            Strategy::LeastConnections { .. }
            | Strategy::RoundRobin
            | Strategy::Random
            | Strategy::Custom(_),
            LoadBalancer::LeastConnections | LoadBalancer::RoundRobin | LoadBalancer::Random,
        ) => Err(ConfigError::Contradiction("loadBalancer")),
    }
}

/// Keeps the arithmetic of instants within bounds.
fn check_longest(name: &'static str, duration: Duration) -> Result<(), ConfigError> {
    if duration > LONGEST {
        return Err(ConfigError::TooLong(name));
    }
    Ok(())
}

/// The deadlines and waits of a connection, each with the default that `Default` gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// One question to one name server: 2 s.
    pub lookup_try: Duration,
    /// A lookup of the servers in DNS as a whole, whoever is asked how often: 10 s.
    pub lookup: Duration,
    /// The longest random wait before a selection: 250 ms. Zero switches it off.
    pub selection_wait: Duration,
    /// TCP, TLS and HTTP/2 together: 5 s.
    pub open: Duration,
    /// A server without a count this long after the wait is maximally loaded: 2 s.
    pub count: Duration,
    /// Counts older than this are asked for once more before they decide: 250 ms.
    pub stale_count: Duration,
    /// The reservation: 2 s.
    pub reserve: Duration,
    /// The compatibility check with its fallback: 10 s.
    pub check: Duration,
    /// A token request: 10 s.
    pub token: Duration,
    /// From sending `Connect` to the first keep-alive: 4 s.
    pub first_keep_alive: Duration,
    /// A session without keep-alive, or without acknowledged answer, for this long is gone: 5 s.
    pub keep_alive: Duration,
    /// An answer unacknowledged for this long no longer holds back the next one: 1.5 s.
    pub answer_pace: Duration,
    /// A session whose keep-alives span more than this was stable: 5 s.
    pub stable_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lookup_try: Duration::from_secs(2),
            lookup: Duration::from_secs(10),
            selection_wait: Duration::from_millis(250),
            open: Duration::from_secs(5),
            count: Duration::from_secs(2),
            stale_count: Duration::from_millis(250),
            reserve: Duration::from_secs(2),
            check: Duration::from_secs(10),
            token: Duration::from_secs(10),
            first_keep_alive: Duration::from_secs(4),
            keep_alive: Duration::from_secs(5),
            answer_pace: Duration::from_millis(1500),
            stable_after: Duration::from_secs(5),
        }
    }
}

impl Timing {
    fn check(&self) -> Result<(), ConfigError> {
        for (name, duration) in [
            ("timing.lookup_try", self.lookup_try),
            ("timing.lookup", self.lookup),
            ("timing.open", self.open),
            ("timing.count", self.count),
            ("timing.reserve", self.reserve),
            ("timing.check", self.check),
            ("timing.token", self.token),
            ("timing.first_keep_alive", self.first_keep_alive),
            ("timing.keep_alive", self.keep_alive),
            ("timing.answer_pace", self.answer_pace),
        ] {
            if duration.is_zero() {
                return Err(ConfigError::Zero(name));
            }
        }
        for (name, duration) in [
            ("timing.lookup_try", self.lookup_try),
            ("timing.lookup", self.lookup),
            ("timing.selection_wait", self.selection_wait),
            ("timing.open", self.open),
            ("timing.count", self.count),
            ("timing.stale_count", self.stale_count),
            ("timing.reserve", self.reserve),
            ("timing.check", self.check),
            ("timing.token", self.token),
            ("timing.first_keep_alive", self.first_keep_alive),
            ("timing.keep_alive", self.keep_alive),
            ("timing.answer_pace", self.answer_pace),
        ] {
            check_longest(name, duration)?;
        }
        Ok(())
    }
}

/// The waits between attempts: none before the first, then `base`, doubled each time up to
/// `ceiling` (S2, "Staying connected").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failed attempt: 1 s.
    pub base: Duration,
    /// The longest wait: 30 s.
    pub ceiling: Duration,
    /// How waits are spread.
    pub jitter: Jitter,
}

/// How the waits of a fleet are kept from marching in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// Each wait is drawn uniformly from its upper half.
    UpperHalf,
    /// The exact ladder.
    None,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            base: Duration::from_secs(1),
            ceiling: Duration::from_secs(30),
            jitter: Jitter::UpperHalf,
        }
    }
}

impl Backoff {
    /// The wait before an attempt, without jitter; `step` counts failures before it.
    pub(crate) fn wait(&self, step: u32) -> Duration {
        match step {
            0 => Duration::ZERO,
            step => 1_u128
                .checked_shl(step - 1)
                .and_then(|factor| self.base.as_nanos().checked_mul(factor))
                .and_then(|nanos| u64::try_from(nanos).ok())
                .map_or(self.ceiling, |nanos| {
                    Duration::from_nanos(nanos).min(self.ceiling)
                }),
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.base.is_zero() {
            return Err(ConfigError::Zero("backoff.base"));
        }
        if self.ceiling < self.base {
            return Err(ConfigError::CeilingBelowBase);
        }
        check_longest("backoff.ceiling", self.ceiling)
    }
}

/// What the server is told about this process. The core knows nothing of it by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientInfo {
    /// The version of the client.
    pub version: String,
    /// The process id.
    pub process_id: i32,
    /// The path of the running program.
    pub process_path: String,
    /// The name of this machine.
    pub machine_name: String,
    /// Whether a debugger is attached: the server then evicts nobody.
    pub is_running_with_debugger: bool,
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigError {
    /// The connection string and the code say different things about an option.
    Contradiction(&'static str),
    /// A duration that must not be zero is.
    Zero(&'static str),
    /// A duration is longer than a year.
    TooLong(&'static str),
    /// `backoff.ceiling` is below `backoff.base`.
    CeilingBelowBase,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contradiction(option) => write!(
                f,
                "{option} differs between the connection string and the code; set it in one place"
            ),
            Self::Zero(name) => write!(f, "{name} must be longer than zero"),
            Self::TooLong(name) => write!(f, "{name} must not be longer than a year"),
            Self::CeilingBelowBase => {
                f.write_str("backoff.ceiling is below backoff.base; raise the ceiling")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);
