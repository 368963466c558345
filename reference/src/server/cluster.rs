//! Several servers.

use super::{Server, ServerOptions};
use std::io;

/// Servers that one connection string names. They know nothing of each other, as with a load
/// balancer of the client's.
#[derive(Debug)]
pub struct Cluster {
    servers: Vec<Server>,
}

impl Cluster {
    /// Starts this many servers on free ports.
    ///
    /// # Errors
    /// Where a port cannot be had.
    pub async fn start(servers: usize) -> io::Result<Self> {
        Self::start_with(vec![ServerOptions::default(); servers]).await
    }

    /// Starts a server for each of these.
    ///
    /// # Errors
    /// Where a port cannot be had.
    pub async fn start_with(options: impl IntoIterator<Item = ServerOptions>) -> io::Result<Self> {
        let mut servers = vec![];
        for options in options {
            servers.push(Server::start(options).await?);
        }
        Ok(Self { servers })
    }

    /// The string that connects to any of the servers, whatever their certificates.
    pub fn connection_string(&self) -> String {
        let endpoints: Vec<_> = self.servers.iter().map(Server::endpoint).collect();
        format!(
            "chronicle://{}/?skipTlsValidation=true",
            endpoints.join(",")
        )
    }

    /// The servers.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The servers, to kill and restart.
    pub fn servers_mut(&mut self) -> &mut [Server] {
        &mut self.servers
    }
}
