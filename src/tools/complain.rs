//! How a command says that something is wrong.

use std::fmt::Display;
use std::io::{self, Write};

use gateway::observe::escape::in_lines;

/// Prints a line on standard error. What is not printable is escaped: it may quote a file or a log.
///
/// It may be a pipe whose reader has gone; that must not end the program, as `eprintln!` would.
pub fn complain(what: impl Display) {
    let _closed = writeln!(io::stderr(), "{}", in_lines(what.to_string()));
}
