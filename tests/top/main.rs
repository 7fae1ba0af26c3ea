//! `drip top`, run as a user runs it: into a pipe, and in a terminal.

mod fake;
mod piped;
mod pty;
mod real;
mod screen;
// Shared with the other tests, which use the rest of it.
#[allow(dead_code, unused_imports)]
#[path = "../gateway/support/mod.rs"]
mod support;
mod watched;
