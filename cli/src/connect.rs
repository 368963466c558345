//! `chronicle connect`

use crate::{
    ConnectArguments,
    embedded::{DOWN, Embedded, SESSION},
    render::Printer,
};
use chronicle_connection_tokio::{Client, ConnectionString, Event, Notice};
use std::{env, fmt::Display, future, io, process::ExitCode};
use tokio::time::{Instant, sleep_until};

const VARIABLE: &str = "CHRONICLE_CONNECTION_STRING";

/// Runs the command to its end.
pub(crate) fn run(arguments: &ConnectArguments) -> ExitCode {
    let ended = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(connect(arguments)),
        Err(error) => Err(Problem::GaveUp(format!("no runtime: {error}"))),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(Problem::BadInput(text)) => complain(2, &text),
        Err(Problem::GaveUp(text)) => complain(1, &text),
    }
}

fn complain(code: u8, text: &str) -> ExitCode {
    eprintln!("chronicle: {text}");
    ExitCode::from(code)
}

enum Problem {
    BadInput(String),
    GaveUp(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::GaveUp(error.to_string())
    }
}

fn bad_input(error: impl Display) -> Problem {
    Problem::BadInput(error.to_string())
}

async fn connect(arguments: &ConnectArguments) -> Result<(), Problem> {
    let printer = Printer::new(arguments.json);
    let (string, mut embedded) = match given_string(arguments)? {
        Some(string) => (string, None),
        None => {
            let embedded = Embedded::start().await?;
            let string = embedded.connection_string();
            printer.note("embedded", &format!("three embedded servers: {string}"))?;
            (string, Some(embedded))
        }
    };
    let string = ConnectionString::parse(&string).map_err(bad_input)?;
    let mut stop = Box::pin(interrupted());
    let (client, mut events) = Client::builder(string).start().map_err(bad_input)?;
    let mut down_at = None;
    let mut up_at = None;
    let mut sessions = 0;
    loop {
        tokio::select! {
            notice = events.next() => match notice {
                Some(Notice::Event(event)) => {
                    printer.event(&event)?;
                    match &event {
                        Event::Connected(session) => {
                            sessions += 1;
                            if arguments.once && sessions == 2 {
                                client.close().await;
                            } else {
                                down_at = Some((Instant::now() + SESSION, session.server.port));
                            }
                        }
                        Event::Failed(error) => return Err(Problem::GaveUp(error.to_string())),
                        _ => {}
                    }
                }
                Some(Notice::Lagged(missed)) => {
                    printer.note("lagged", &format!("{missed} events were missed"))?;
                }
                None => return Ok(()),
            },
            () = &mut stop => {
                client.close().await;
                stop = Box::pin(future::pending());
            }
            () = at(down_at.map(|(at, _)| at)), if embedded.is_some() => {
                if let (Some(embedded), Some((_, port))) = (&mut embedded, down_at.take()) {
                    embedded.take_down(port).await;
                    up_at = Some(Instant::now() + DOWN);
                    printer.note("server_down", &format!("embedded server 127.0.0.1:{port} goes down"))?;
                }
            }
            () = at(up_at), if embedded.is_some() => {
                up_at = None;
                if let Some(embedded) = &mut embedded && let Some(server) = embedded.bring_up().await? {
                    printer.note("server_up", &format!("embedded server {server} is up again"))?;
                }
            }
        }
    }
}
