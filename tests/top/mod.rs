//! Tests of `drip top`, run as a user runs it: into a pipe, and in a terminal.

mod fake;
mod piped;
pub mod pty;
mod real;
mod screen;
mod watched;
