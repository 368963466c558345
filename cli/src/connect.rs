//! `chronicle connect`

use crate::{
    ConnectArguments, credentials,
    embedded::{DOWN, Embedded, SESSION},
    problem::{self, Problem, bad_input},
    render::Printer,
    signals::interrupted,
};
use chronicle_connection_tokio::{Client, Config, ConnectionString, Event, Notice};
use futures_util::FutureExt as _;
use std::{future, pin::pin, process::ExitCode};
use tokio::time::{Instant, sleep_until};

/// Runs the command to its end.
pub(crate) fn run(arguments: &ConnectArguments) -> ExitCode {
    problem::run(connect(arguments))
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
    let advice = credentials::advice(&string);
    let mut stop = pin!(interrupted()?.fuse());
    let client = Client::builder(string)
        .connect_timeout(Some(Config::DEFAULT_CONNECT_TIMEOUT))
        .start()
        .map_err(bad_input)?;
    let mut events = client.events();
    let mut down_at = None;
    let mut up_at = None;
    let mut sessions = 0;
    loop {
        tokio::select! {
            notice = events.next() => match notice {
                Some(Notice::Event(event)) => {
                    let printed = printer.event(&event);
                    if let Event::Failed(error) = &event {
                        return problem::told(printed, Err(credentials::gave_up(error, &advice)));
                    }
                    printed?;
                    if let Event::Connected(session) = &event {
                        sessions += 1;
                        if arguments.once && sessions == 2 {
                            client.close().await;
                        } else {
                            down_at = Some((Instant::now() + SESSION, session.server.port));
                        }
                    }
                }
                Some(lagged @ Notice::Lagged(_)) => printer.note("lagged", &lagged.to_string())?,
                None => return Ok(()),
            },
            () = &mut stop => client.close().await,
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

/// The connection string; `None` asks for embedded servers.
fn given_string(arguments: &ConnectArguments) -> Result<Option<String>, Problem> {
    if arguments.embedded {
        return Ok(None);
    }
    problem::connection_string(arguments.connection_string.as_ref())
}

/// Completes at an instant, or never.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => future::pending().await,
    }
}
