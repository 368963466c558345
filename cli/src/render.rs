//! One line for each event, for people or for programs.

use chronicle_connection_tokio::{Endpoint, Event, Session, SrvRecord};
use serde_json::{Value, json};
use std::{
    io::{self, Write as _},
    time::{Duration, Instant},
};

/// Prints events with the time since the start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer {
    started: Instant,
    json: bool,
}

impl Printer {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            started: Instant::now(),
            json,
        }
    }

    /// Prints an event of the connection.
    ///
    /// # Errors
    /// Where standard output is gone.
    pub(crate) fn event(&self, event: &Event) -> io::Result<()> {
        self.line(&event.to_string(), json_of(event))
    }

    /// Prints what else happened.
    ///
    /// # Errors
    /// Where standard output is gone.
    pub(crate) fn note(&self, kind: &str, text: &str) -> io::Result<()> {
        self.line(text, json!({ "event": kind, "text": text }))
    }

    /// Prints servers in order.
    ///
    /// # Errors
    /// Where standard output is gone.
    pub(crate) fn servers(&self, servers: &[Endpoint]) -> io::Result<()> {
        let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
        let text = format!("servers: {}", servers.join(" "));
        self.line(&text, json!({ "event": "servers", "servers": servers }))
    }

    fn line(&self, text: &str, mut value: Value) -> io::Result<()> {
        let at = self.started.elapsed();
        let mut out = io::stdout().lock();
        if self.json {
            value["at_ms"] = millis(at);
            writeln!(out, "{value}")?;
        } else {
            writeln!(out, "{:9.3} s  {text}", at.as_secs_f64())?;
        }
        out.flush()
    }
}

fn json_of(event: &Event) -> Value {
    match event {
        Event::Resolving { attempt, name } => json!({
            "event": "resolving", "attempt": attempt, "name": name,
        }),
        Event::LookupTryFailed {
            server,
            transport,
            error,
            took,
        } => json!({
            "event": "lookup_try_failed",
            "name_server": server.to_string(),
            "transport": transport.to_string(),
            "cause": error.to_string(),
            "took_ms": millis(*took),
        }),
        Event::Resolved {
            server,
            transport,
            records,
            warnings,
            took,
        } => json!({
            "event": "resolved",
            "name_server": server.to_string(),
            "transport": transport.to_string(),
            "records": records.iter().map(record_json).collect::<Vec<_>>(),
            "warnings": warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "took_ms": millis(*took),
        }),
        Event::LastGoodListUsed { error } => json!({
            "event": "last_good_list_used", "cause": error.to_string(),
        }),
        Event::Connecting {
            attempt,
            candidates,
        } => json!({
            "event": "connecting",
            "attempt": attempt,
            "candidates": candidates.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }),
        Event::Selected { server, count } => json!({
            "event": "selected", "server": server.to_string(), "count": count,
        }),
        Event::ReserveFailed { server, cause } => json!({
            "event": "reserve_failed", "server": server.to_string(), "cause": cause.to_string(),
        }),
        Event::Compatible {
            server,
            server_version,
            missing_on_server,
        } => json!({
            "event": "compatible",
            "server": server.to_string(),
            "server_version": server_version,
            "missing_on_server": missing_on_server.iter().map(|one| &one.path).collect::<Vec<_>>(),
        }),
        Event::Token {
            generation,
            expires_in,
            error,
        } => json!({
            "event": "token",
            "generation": generation,
            "expires_in_ms": expires_in.map(millis),
            "cause": error.as_ref().map(ToString::to_string),
        }),
        Event::CandidateFailed { server, cause } => json!({
            "event": "candidate_failed", "server": server.to_string(), "cause": cause.to_string(),
        }),
        Event::BackingOff { error, wait } => json!({
            "event": "backing_off",
            "wait_ms": millis(*wait),
            "cause": error.as_ref().map(ToString::to_string),
        }),
        Event::Connected(session) => session_json("connected", session),
        Event::Disconnected {
            session,
            cause,
            lasted,
        } => {
            let mut value = session_json("disconnected", session);
            value["cause"] = json!(cause.to_string());
            value["lasted_ms"] = millis(*lasted);
            value
        }
        Event::Failed(error) => json!({ "event": "failed", "cause": error.to_string() }),
        Event::Closed => json!({ "event": "closed" }),
    }
}

fn record_json(record: &SrvRecord) -> Value {
    json!({
        "server": record.server.to_string(),
        "priority": record.priority,
        "weight": record.weight,
    })
}

fn session_json(event: &str, session: &Session) -> Value {
    json!({
        "event": event,
        "server": session.server.to_string(),
        "peer": session.peer.to_string(),
        "connection_id": session.connection_id.to_string(),
        "generation": session.generation,
    })
}

fn millis(duration: Duration) -> Value {
    json!((duration.as_secs_f64() * 1e6).round() / 1e3)
}
