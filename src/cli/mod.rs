//! The subcommands of the program. Each takes its arguments and returns an exit code.

pub mod advise;
pub mod check;
pub mod import;
pub mod init;
pub mod run;
pub mod schema;

// The other subcommands are in `tools`.
pub use tools::{demo, find, health, simulate, top};
