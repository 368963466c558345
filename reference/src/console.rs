//! Servers that somebody drives from a terminal, or a test from another process.

use crate::{Answer, Cluster, Faults, Server, ServerOptions, model::ModelConfig};
use chronicle_connection::{Code, ContractError, is_version};
use std::{
    fmt,
    io::{self, BufRead, Write},
    str,
};

/// A cluster that obeys commands, one line each.
///
/// The servers keep connections as those of Chronicle do, and judge contracts. They store nothing, and
/// answer the calls of an application as UNIMPLEMENTED, unless they are given its services.
#[derive(Debug)]
pub struct Console {
    cluster: Cluster,
}

/// What a console says to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// What was asked, in one line or several.
    Done(String),
    /// Why not.
    Error(String),
    /// Nothing more.
    Quit,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(text) => f.write_str(text),
            Self::Error(text) => write!(f, "error: {text}"),
            Self::Quit => f.write_str("ok"),
        }
    }
}

impl Console {
    /// Starts servers that are alike, on the ports from that of the options on; 0 stands for any that
    /// are free.
    ///
    /// # Errors
    /// Where a port cannot be had, or would be none; where there are no servers, or more than the 64
    /// that a connection string holds.
    pub async fn start(options: ServerOptions, servers: u16) -> io::Result<Self> {
        let bad_input = |error: String| io::Error::new(io::ErrorKind::InvalidInput, error);
        if !(1..=MAX_SERVERS).contains(&servers) {
            return Err(bad_input(format!(
                "no connection string holds {servers} servers; give 1 to {MAX_SERVERS}"
            )));
        }
        let ports = (0..servers).map(|index| match options.port {
            0 => Some(0),
            first => first.checked_add(index),
        });
        let options = ports.map(|port| {
            Some(ServerOptions {
                port: port?,
                ..options.clone()
            })
        });
        let Some(options) = options.collect::<Option<Vec<_>>>() else {
            let error = "the ports would pass 65535; give a lower --port";
            return Err(bad_input(error.to_owned()));
        };
        Ok(Self {
            cluster: Cluster::start_with(options).await?,
        })
    }

    /// How servers behave that serve a contract: a descriptor set or proto source text. Without one
    /// it is what the servers know indeed: sessions, and the service `chronicle.reference.Echo`.
    ///
    /// # Errors
    /// [`ContractError`] where the bytes are no contract.
    pub fn model(contract: Option<&[u8]>, version: &str) -> Result<ModelConfig, ContractError> {
        match contract {
            Some(contract) => ModelConfig::serving(contract, version),
            None => {
                let own =
                    ModelConfig::default().schema + "\n" + include_str!("../protos/echo.proto");
                ModelConfig::serving(own.as_bytes(), version)
            }
        }
    }

    /// The string that connects to any of the servers.
    pub fn connection_string(&self) -> String {
        self.cluster.connection_string()
    }

    /// Does what each line of the input says, and answers it in the output, until quit or the end.
    /// `read` gives the content of a file.
    ///
    /// Waiting for a line blocks the thread, so the servers need others to run on.
    ///
    /// # Errors
    /// Where the input cannot be read, or the output not written.
    pub async fn obey(
        &mut self,
        input: impl BufRead,
        mut output: impl Write,
        read: impl Fn(&str) -> io::Result<Vec<u8>>,
    ) -> io::Result<()> {
        for line in input.split(b'\n') {
            let said = self.command(line?, &read).await;
            writeln!(output, "{said}")?;
            if said == Said::Quit {
                break;
            }
        }
        Ok(())
    }

    /// Does what a line says. `read` gives the content of a file.
    pub async fn command(
        &mut self,
        line: impl AsRef<[u8]>,
        read: impl Fn(&str) -> io::Result<Vec<u8>>,
    ) -> Said {
        let Ok(line) = str::from_utf8(line.as_ref()) else {
            return Said::Error("that line is not UTF-8; help lists the commands".to_owned());
        };
        let (name, rest) = split(line);
        let (index, rest) = split(rest);
        let server = index.parse().ok();
        let server = server.and_then(|index: usize| self.cluster.servers_mut().get_mut(index));
        let done = match (name, server) {
            ("", _) => Ok(String::new()),
            ("quit", _) => return Said::Quit,
            ("help", _) => Ok(HELP.to_owned()),
            ("status", _) => Ok(self.status()),
            (name, Some(server)) => match one(server, name, rest, read).await {
                Some(done) => done,
                None => Err(format!("{name:?} is no command; help lists them")),
            },
            (name, None) if COMMANDS.contains(&name) => {
                Err(format!("{index:?} is no server; status lists them"))
            }
            (name, None) => Err(format!("{name:?} is no command; help lists them")),
        };
        match done {
            Ok(text) => Said::Done(text),
            Err(text) => Said::Error(text),
        }
    }

    fn status(&self) -> String {
        let servers = self.cluster.servers().iter().enumerate();
        let line = |(index, server): (usize, &Server)| {
            let (stats, faults) = (server.stats(), server.faults().get());
            let state = match (server.is_up(), faults.model.silent) {
                (false, _) => "down",
                (true, true) => "silent",
                (true, false) => "up",
            };
            format!(
                "{index}  {}  {state}  version {}  clients: {}, connections: {}",
                server.endpoint(),
                faults.model.version,
                stats.clients.len(),
                stats.open,
            )
        };
        servers.map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A command for one server; `None` where there is none of this name.
async fn one(
    server: &mut Server,
    name: &str,
    rest: &str,
    read: impl Fn(&str) -> io::Result<Vec<u8>>,
) -> Option<Result<String, String>> {
    let faults = server.faults();
    let to_text = |error: io::Error| error.to_string();
    let done = match (name, rest) {
        ("kill", "") => {
            server.kill().await;
            Ok(())
        }
        ("restart", "") => server.restart().await.map_err(to_text),
        ("heal", "") => {
            faults.set(|faults| {
                let mut healed = Faults::default();
                healed.model = std::mem::take(&mut faults.model);
                healed.model.silent = false;
                *faults = healed;
            });
            match server.is_up() {
                true => Ok(()),
                false => server.restart().await.map_err(to_text),
            }
        }
        ("upgrade", rest) => upgrade(server, rest, read).await,
        ("silence", "") => {
            faults.set(|faults| faults.model.silent = true);
            Ok(())
        }
        ("speak", "") => {
            faults.set(|faults| faults.model.silent = false);
            Ok(())
        }
        ("goaway", "") => {
            faults.go_away();
            Ok(())
        }
        ("end", "") => {
            faults.end_streams(Code::Ok, "");
            Ok(())
        }
        ("hang", path) if path.starts_with('/') => {
            faults.set(|faults| faults.on(path).answer = Some(Answer::Hang));
            Ok(())
        }
        ("answer", path) if path.starts_with('/') => {
            faults.set(|faults| faults.on(path).answer = None);
            Ok(())
        }
        ("count", "") => return Some(Ok(server.stats().count.to_string())),
        (name, rest) if COMMANDS.contains(&name) => Err(format!(
            "{name} does not go with {rest:?}; help says how it goes"
        )),
        (_, _) => return None,
    };
    Some(done.map(|()| "ok".to_owned()))
}

/// Restarts a server as one of another version, with another contract where a file is named.
async fn upgrade(
    server: &mut Server,
    rest: &str,
    read: impl Fn(&str) -> io::Result<Vec<u8>>,
) -> Result<(), String> {
    let (version, file) = split(rest);
    if version.is_empty() {
        return Err(
            "upgrade takes a version, and the file of a contract if that changes".to_owned(),
        );
    }
    let version = self::version(version)?;
    let served = match file {
        "" => {
            let now = server.faults().get().model;
            ModelConfig::serving(now.schema.as_bytes(), &version).map_err(|error| error.to_string())
        }
        file => read(file)
            .map_err(|error| format!("{file}: {error}"))
            .and_then(|contract| {
                ModelConfig::serving(&contract, &version)
                    .map_err(|error| format!("{file}: {error}"))
            }),
    }?;
    server.faults().set(|faults| {
        let model = std::mem::take(&mut faults.model);
        faults.model = ModelConfig {
            age: served.age,
            verdict: served.verdict,
            version: served.version,
            schema: served.schema,
            protocol_version: served.protocol_version,
            ..model
        };
    });
    server.restart().await.map_err(|error| error.to_string())
}

/// Takes a version that can be told from others: one made of numbers, or `unknown`.
///
/// # Errors
/// What is wrong with the text, and how a version is written.
pub fn version(text: &str) -> Result<String, String> {
    match is_version(text) || text == UNKNOWN {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "{text:?} is no version; write numbers, such as 18.5.0, or {UNKNOWN}"
        )),
    }
}

/// The first word, and what stands behind it.
fn split(line: &str) -> (&str, &str) {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (word, rest.trim_start())
}

const UNKNOWN: &str = "unknown";
/// What a connection string holds.
const MAX_SERVERS: u16 = 64;

const COMMANDS: [&str; 11] = [
    "kill", "heal", "silence", "speak", "upgrade", "restart", "goaway", "end", "count", "hang",
    "answer",
];

const HELP: &str = "\
Servers are counted from 0, as status lists them.
  status                   how each server stands
  kill N                   takes it down at once: its port refuses, its connections are reset
  heal N                   undoes whatever was done to it, but for an upgrade
  silence N                sends no keep-alives any more, and leaves all connections open
  upgrade N VERSION [FILE] restarts it as this version, with the contract of this file
  restart N                takes it down and up again
  goaway N                 asks its clients to leave: GOAWAY on every connection
  end N                    ends every stream of keep-alives in good order
  hang N PATH              answers no requests to this path, until: answer N PATH
  speak N                  ends a silence
  count N                  how many clients it says it has
  quit                     ends all of them";
