//! Several servers.

use super::{Server, ServerOptions};
use crate::DnsServer;
use chronicle_connection::{Endpoint, Host, SrvRecord};
use std::io;

/// Servers that one connection string names. They know nothing of each other, as with a load
/// balancer of the client's.
#[derive(Debug)]
pub struct Cluster {
    servers: Vec<Server>,
    dns: DnsServer,
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
        let records = servers.iter().map(record).collect();
        let dns = DnsServer::start(NAME, records).await?;
        Ok(Self { servers, dns })
    }

    /// The string that connects to any of the servers, whatever their certificates.
    pub fn connection_string(&self) -> String {
        let endpoints: Vec<_> = self.servers.iter().map(Server::endpoint).collect();
        format!(
            "chronicle://{}/?skipTlsValidation=true",
            endpoints.join(",")
        )
    }

    /// The string that finds the servers through DNS, whatever their certificates.
    pub fn srv_connection_string(&self) -> String {
        format!(
            "chronicle+srv://{NAME}/?srvNameServer={}&skipTlsValidation=true",
            self.dns.address()
        )
    }

    /// The name server that the servers are found through: at first it knows all of them.
    pub fn dns(&self) -> &DnsServer {
        &self.dns
    }

    /// Makes DNS tell these servers, by their index, and no others.
    pub fn list_in_dns(&self, servers: &[usize]) {
        let servers = servers.iter().filter_map(|index| self.servers.get(*index));
        self.dns.set_records(servers.map(record).collect());
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

/// DNS knows no addresses as targets.
fn record(server: &Server) -> SrvRecord {
    SrvRecord {
        server: Endpoint::new(Host::Name("localhost".to_owned()), server.port()),
        priority: 0,
        weight: 0,
    }
}

const NAME: &str = "cluster.test";
