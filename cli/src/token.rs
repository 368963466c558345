//! `chronicle token`

use crate::credentials;
use chronicle_connection_tokio::{
    Authentication, Client, Config, ConnectionString, Event, FatalError, Notice, Session,
};
use clap::Args;
use std::{
    error::Error,
    io::{self, Write as _},
    process::ExitCode,
    time::Duration,
};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to connect, with client credentials: chronicle://id:secret@host:port/?options.
    connection_string: String,

    /// Print the token itself, too. Whoever sees it can act as this client.
    #[arg(long)]
    reveal: bool,
}

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  there is a token, and the server takes it
  1  there is none, or the server does not take it
  2  bad input: the connection string or an option is wrong";

/// Runs the command to its end.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let string = match parse(&arguments.connection_string) {
        Ok(string) => string,
        Err(error) => return complain(2, &*error),
    };
    let shown = tokio::runtime::Runtime::new()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(show(string, arguments.reveal)));
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(1, &*error),
    }
}

fn complain(code: u8, error: &dyn Error) -> ExitCode {
    // Where nobody reads that, the code has to do.
    let _ = writeln!(io::stderr(), "chronicle: {error}");
    ExitCode::from(code)
}

fn parse(text: &str) -> Result<ConnectionString, Problem> {
    let string: ConnectionString = text.parse()?;
    match string.authentication() {
        Authentication::ClientCredentials { .. } => Ok(string),
        Authentication::ApiKey(_) => {
            Err("an apiKey is sent as it is; only client credentials get tokens".into())
        }
        Authentication::None => Err(
            "the connection string has no client credentials; give them as in \
             chronicle://id:secret@host"
                .into(),
        ),
    }
}

async fn show(string: ConnectionString, reveal: bool) -> Result<(), Problem> {
    let advice = credentials::advice(&string);
    let client = Client::builder(string)
        .connect_timeout(Some(Config::DEFAULT_CONNECT_TIMEOUT))
        .start()?;
    let (session, life) = match connected(&client).await {
        Ok(connected) => connected,
        Err(error @ FatalError::Credentials { .. }) => {
            return Err(format!("{error}; {advice}").into());
        }
        Err(error) => return Err(error.into()),
    };
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{} gave a token, valid for {} s, and takes it",
        session.server,
        life.as_secs_f64().round()
    )?;
    let metadata = client.call_metadata().filter(|_| reveal);
    if let Some(value) = metadata
        .as_ref()
        .and_then(|all| all.headers.get("authorization"))
    {
        writeln!(out, "{}", value.to_str()?.trim_start_matches("Bearer "))?;
    }
    drop(out);
    client.close().await;
    Ok(())
}

/// The first session, and how long its token lives.
async fn connected(client: &Client) -> Result<(Session, Duration), FatalError> {
    let mut events = client.events();
    let mut life = Duration::ZERO;
    loop {
        match events.next().await {
            Some(Notice::Event(Event::Token {
                expires_in: Some(left),
                ..
            })) => life = left,
            Some(Notice::Event(Event::Connected(session))) => return Ok((session, life)),
            Some(Notice::Event(Event::Failed(error))) => return Err(error),
            // The subscription ends after the last of these at the earliest.
            Some(Notice::Event(_) | Notice::Lagged(_)) => {}
            None => std::future::pending().await,
        }
    }
}

type Problem = Box<dyn Error>;
