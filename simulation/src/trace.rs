//! What happened, one line each.

use chronicle_connection::{Call, Input, Output, Reply};
use std::{fmt::Write as _, time::Duration};

/// A record of every input and output: the same seed gives the same bytes.
///
/// `   1.250000 c3 > Open #7 s1:35000`: seconds of virtual time, whose, in (`<`) or out (`>`), what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    text: String,
    is_off: bool,
}

impl Trace {
    /// Whether anything is recorded from here on. It is, unless told otherwise.
    pub fn set_recording(&mut self, is_on: bool) {
        self.is_off = !is_on;
    }

    /// All lines.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The last lines, for the text of a failure.
    pub fn tail(&self, lines: usize) -> &str {
        let cut = self.text.rmatch_indices('\n').nth(lines);
        cut.map_or(self.text.as_str(), |(at, _)| &self.text[at + 1..])
    }

    pub(crate) fn input(&mut self, at: Duration, whose: &str, input: &Input) {
        if !self.is_off {
            self.line(at, whose, '<', &render_input(input));
        }
    }

    pub(crate) fn output(&mut self, at: Duration, whose: &str, output: &Output) {
        if !self.is_off {
            self.line(at, whose, '>', &render_output(output));
        }
    }

    /// Something that is done to the world.
    pub(crate) fn note(&mut self, at: Duration, whose: &str, what: &str) {
        if !self.is_off {
            self.line(at, whose, '!', what);
        }
    }

    fn line(&mut self, at: Duration, whose: &str, way: char, what: &str) {
        let (seconds, micros) = (at.as_secs(), at.subsec_micros());
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.text, "{seconds:>4}.{micros:06} {whose} {way} {what}");
    }
}

/// An input in one line, without instants and secrets.
pub(crate) fn render_input(input: &Input) -> String {
    match input {
        Input::Command(command) => format!("{command:?}"),
        Input::Reply { id, reply } => format!("{id} {}", render_reply(reply)),
    }
}

/// An output in one line, without instants and secrets.
pub(crate) fn render_output(output: &Output) -> String {
    match output {
        Output::NameServers { id } => format!("NameServers {id}"),
        Output::Dns {
            id,
            server,
            transport,
            message,
            ..
        } => format!("Dns {id} {server} {transport} ({} bytes)", message.len()),
        Output::Open { id, to } => format!("Open {id} {to}"),
        Output::Http {
            id, on, request, ..
        } => format!("Http {id} on {on} {} {}", request.method(), request.uri()),
        Output::Unary(call) => format!("Unary {}", render_call(call)),
        Output::ServerStream(call) => format!("ServerStream {}", render_call(call)),
        Output::Cancel(id) => format!("Cancel {id}"),
        Output::Close(id) => format!("Close {id}"),
        Output::Event(event) => format!("Event {event:?}"),
    }
}

fn render_call(call: &Call) -> String {
    let method = call.path.rsplit('/').next().unwrap_or(call.path);
    let (id, on, length) = (call.id, call.on, call.message.len());
    format!("{id} on {on} {method} ({length} bytes)")
}

fn render_reply(reply: &Reply) -> String {
    match reply {
        Reply::NameServers(servers) => format!("NameServers ({})", servers.len()),
        Reply::Opened { peer } => format!("Opened {peer}"),
        Reply::GoingAway { code } => format!("GoingAway {code}"),
        Reply::Closed(failure) => format!("Closed: {failure}"),
        Reply::Http(response) => {
            let (status, length) = (response.status().as_u16(), response.body().len());
            format!("Http {status} ({length} bytes)")
        }
        Reply::Message(message) => format!("Message ({} bytes)", message.len()),
        Reply::Finished(status) => format!("Finished {status}"),
        Reply::Failed(failure) => format!("Failed: {failure}"),
    }
}
