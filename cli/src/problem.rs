//! How commands end, and what they are told to do.

use std::{
    env,
    fmt::Display,
    future::Future,
    io::{self, Write as _},
    process::ExitCode,
};

/// Why a command did not do what it was asked to.
pub(crate) enum Problem {
    /// What the user gave is wrong: exit code 2.
    BadInput(String),
    /// What the user gave is right, and did not work: exit code 1.
    GaveUp(String),
    /// The output says already what is not as it should be: exit code 1.
    Found,
    /// Nobody reads the output any more, as after `| head`.
    Unread,
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::GaveUp(error.to_string()),
        }
    }
}

pub(crate) fn bad_input(error: impl Display) -> Problem {
    Problem::BadInput(error.to_string())
}

/// Runs a command to its end.
pub(crate) fn run(command: impl Future<Output = Result<(), Problem>>) -> ExitCode {
    let ended = match tokio::runtime::Runtime::new() {
        Ok(runtime) => {
            let ended = runtime.block_on(command);
            // A name that is just being looked up would hold up the exit for seconds.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(Problem::GaveUp(format!("no runtime: {error}"))),
    };
    end(ended)
}

/// The exit code of a command that has ended, after a complaint where it needs one.
pub(crate) fn end(ended: Result<(), Problem>) -> ExitCode {
    match ended {
        Ok(()) | Err(Problem::Unread) => ExitCode::SUCCESS,
        Err(Problem::BadInput(text)) => complain(2, &text),
        Err(Problem::GaveUp(text)) => complain(1, &text),
        Err(Problem::Found) => ExitCode::from(1),
    }
}

/// How a command ends that has a verdict and told it: a bad one is none the better for not being read.
pub(crate) fn told(printed: io::Result<()>, verdict: Result<(), Problem>) -> Result<(), Problem> {
    verdict.and(printed.map_err(Problem::from))
}

/// The connection string of the command line, or else of the environment.
pub(crate) fn connection_string(given: Option<&String>) -> Result<Option<String>, Problem> {
    if let Some(string) = given {
        return Ok(Some(string.clone()));
    }
    match env::var(VARIABLE) {
        Ok(string) => Ok(Some(string)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(bad_input(format!("{VARIABLE} is not UTF-8"))),
    }
}

fn complain(code: u8, text: &str) -> ExitCode {
    // Where that is gone as well, the code has to do.
    let _ = writeln!(io::stderr(), "chronicle: {text}");
    ExitCode::from(code)
}

pub(crate) const VARIABLE: &str = "CHRONICLE_CONNECTION_STRING";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_good_verdict_gives_way_to_a_reader_that_is_gone() {
        let gone = || Err(io::ErrorKind::BrokenPipe.into());
        assert!(told(Ok(()), Ok(())).is_ok());
        assert!(matches!(told(gone(), Ok(())), Err(Problem::Unread)));
        assert!(matches!(
            told(gone(), Err(Problem::Found)),
            Err(Problem::Found)
        ));
        let full = told(Err(io::ErrorKind::StorageFull.into()), Ok(()));
        assert!(matches!(full, Err(Problem::GaveUp(_))));
    }
}
