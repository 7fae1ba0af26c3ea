use std::fmt::Display;
use std::io::{self, Write};

/// Prints a line on standard error.
///
/// It may be a pipe whose reader has gone; that must not end the program, as `eprintln!` would.
pub(crate) fn complain(what: impl Display) {
    let _closed = writeln!(io::stderr(), "{what}");
}
