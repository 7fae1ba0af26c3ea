//! The commands of the README, of docs/ and of its examples, run by a shell as they stand there.

mod commands;
mod examples;
mod sandbox;
