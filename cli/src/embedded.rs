//! Three servers on loopback for a first look: the one in use goes down and comes up again.

use chronicle_reference_server::{Cluster, ServerOptions, model::ModelConfig};
use std::{io, time::Duration};

/// How long a session lasts before its server is taken down.
pub(crate) const SESSION: Duration = Duration::from_secs(6);

/// How long a server stays down.
pub(crate) const DOWN: Duration = Duration::from_secs(3);

/// The servers, at most one of which is down.
pub(crate) struct Embedded {
    cluster: Cluster,
    down: Option<usize>,
}

impl Embedded {
    /// Starts the servers.
    ///
    /// # Errors
    /// Where no port can be had.
    pub(crate) async fn start() -> io::Result<Self> {
        let options = ServerOptions {
            model: ModelConfig {
                // A session of six seconds is to be a stable one, with some to spare.
                keep_alive_interval: Duration::from_millis(250),
                ..ModelConfig::default()
            },
            ..ServerOptions::default()
        };
        Ok(Self {
            cluster: Cluster::start_with(vec![options; SERVERS]).await?,
            down: None,
        })
    }

    pub(crate) fn connection_string(&self) -> String {
        self.cluster.srv_connection_string()
    }

    /// Takes down the server with this port.
    pub(crate) async fn take_down(&mut self, port: u16) {
        let mut servers = self.cluster.servers_mut().iter_mut().enumerate();
        if let Some((index, server)) = servers.find(|(_, server)| server.port() == port) {
            server.kill().await;
            self.down = Some(index);
        }
    }

    /// Brings up what is down, and tells where it listens.
    ///
    /// # Errors
    /// Where its port cannot be had any more.
    pub(crate) async fn bring_up(&mut self) -> io::Result<Option<String>> {
        let Some(index) = self.down.take() else {
            return Ok(None);
        };
        let server = &mut self.cluster.servers_mut()[index];
        server.restart().await?;
        Ok(Some(server.endpoint()))
    }
}

const SERVERS: usize = 3;
