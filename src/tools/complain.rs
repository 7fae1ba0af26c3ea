//! What a command prints, and how it says that something is wrong.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use gateway::observe::escape::in_lines;

/// Prints a line on standard error. What is not printable is escaped: it may quote a file or a log.
///
/// It may be a pipe whose reader has gone; that must not end the program, as `eprintln!` would.
pub fn complain(what: impl Display) {
    let _closed = writeln!(io::stderr(), "{}", in_lines(what.to_string()));
}

/// Prints the result of a command on standard output.
pub fn print(text: &str) -> ExitCode {
    ended("drip", io::stdout().write_all(text.as_bytes()))
}

/// The exit code of a command. Complains about an error in its name.
///
/// A reader that closes the pipe has read enough, which is no error.
pub fn ended(command: &str, result: io::Result<()>) -> ExitCode {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(format_args!("{command}: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
