//! Prints results and error messages of commands.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use gateway::observe::escape::in_lines;

/// Prints a line on standard error, with non-printable characters escaped.
///
/// The message may quote a file or a log. If standard error is a closed pipe, the message is lost.
/// `eprintln!` would panic then.
pub fn complain(message: impl Display) {
    let _closed = writeln!(io::stderr(), "{}", in_lines(message.to_string()));
}

/// Prints the result of a command on standard output.
pub fn print(text: &str) -> ExitCode {
    exit_code("drip", write(text))
}

/// Writes a text to standard output and flushes it.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Returns the exit code of a command. Prints an error under the command's name.
///
/// A closed pipe is no error: the reader has read enough.
pub fn exit_code(command: &str, result: io::Result<()>) -> ExitCode {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(format_args!("{command}: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
