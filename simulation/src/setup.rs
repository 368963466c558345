//! What a client is built from.

use chronicle_connection::{
    Backoff, ClientInfo, Config, ConnectionString, Contract, Jitter, Strategy, Timing,
};
use std::time::Duration;

/// What a client is built from: a connection string, and whatever deviates from the defaults.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The connection string, such as `chronicle://s1,s2`.
    pub string: String,
    /// How a server is chosen; what the string says where `None`.
    pub strategy: Option<Strategy>,
    /// Connect without the compatibility check.
    pub skip_compatibility_check: bool,
    /// How long the first connect may take.
    pub connect_timeout: Option<Duration>,
    /// Deadlines and waits.
    pub timing: Timing,
    /// Waits between attempts.
    pub backoff: Backoff,
    /// What the server is told of the process.
    pub client: ClientInfo,
    /// What the server is shown.
    pub contract: Contract,
}

impl Setup {
    /// The defaults, for a connection string.
    pub fn new(string: &str) -> Self {
        Self {
            string: string.to_owned(),
            strategy: None,
            skip_compatibility_check: false,
            connect_timeout: Some(Duration::from_secs(30)),
            timing: Timing::default(),
            backoff: Backoff::default(),
            client: ClientInfo::default(),
            contract: Contract::default(),
        }
    }

    /// With a strategy.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = Some(strategy);
        self
    }

    /// Without any random wait, so that every deadline is known to the microsecond.
    pub fn exact(mut self) -> Self {
        self.timing.selection_wait = Duration::ZERO;
        self.backoff.jitter = Jitter::None;
        self
    }

    /// Trying for ever.
    pub fn patient(mut self) -> Self {
        self.connect_timeout = None;
        self
    }

    /// With another set of deadlines.
    pub fn timing(mut self, change: impl FnOnce(&mut Timing)) -> Self {
        change(&mut self.timing);
        self
    }

    /// The checked configuration.
    ///
    /// # Panics
    /// Where the connection string or the rest is not valid: a mistake in the scenario.
    pub fn config(&self) -> Config {
        let mut builder = Config::builder(self.connection_string())
            .connect_timeout(self.connect_timeout)
            .timing(self.timing.clone())
            .backoff(self.backoff.clone())
            .client(self.client.clone());
        if let Some(strategy) = &self.strategy {
            builder = builder.strategy(strategy.clone());
        }
        if self.skip_compatibility_check {
            builder = builder.skip_compatibility_check(true);
        }
        match builder.build() {
            Ok(config) => config,
            Err(error) => panic!("{}: {error}", self.string),
        }
    }

    /// Whether the compatibility check is skipped, in code or in the string.
    pub(crate) fn skips_check(&self) -> bool {
        self.skip_compatibility_check
            || self.connection_string().skip_compatibility_check() == Some(true)
    }

    pub(crate) fn connection_string(&self) -> ConnectionString {
        match self.string.parse() {
            Ok(string) => string,
            Err(error) => panic!("{}: {error}", self.string),
        }
    }
}
