//! Tests that run the commands of the README, of docs/ and of the examples in a shell.

mod commands;
mod examples;
mod sandbox;
