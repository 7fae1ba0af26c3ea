//! `drip top`, as somebody sees it who calls it: once into a pipe, and in a terminal.

mod fake;
mod piped;
mod pty;
mod real;
mod screen;
mod watched;
