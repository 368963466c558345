//! A running program, asked and answered line by line. It ends with the test at the latest.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

pub(crate) struct Program {
    child: Child,
    /// `None` where it has ended.
    input: Option<ChildStdin>,
    output: Receiver<String>,
}

impl Program {
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, output) = channel();
        // Ends with the program.
        thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Self {
            input: child.stdin.take(),
            output,
            child,
        }
    }

    /// Says a line, and gives the answer to it.
    pub(crate) fn say(&mut self, line: impl AsRef<[u8]>) -> String {
        let input = self.input.as_mut().unwrap();
        input.write_all(&[line.as_ref(), b"\n"].concat()).unwrap();
        self.read()
    }

    /// The next line.
    pub(crate) fn read(&mut self) -> String {
        self.output.recv_timeout(PATIENCE).unwrap()
    }

    /// Ends the input, and waits for the end of the program.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.input = None;
        self.child.wait().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What must come has this long on any machine.
const PATIENCE: Duration = Duration::from_secs(30);
