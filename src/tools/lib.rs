//! Commands beside the gateway itself: they read logs, files and the admin port.
//!
//! | module | command |
//! |---|---|
//! | `advise` | `drip advise`, and `drip init` from a log |
//! | `demo`, `find`, `health`, `import`, `simulate`, `top` | the command of that name |
//! | `admin_client` | client of the admin port, for `find`, `health` and `top` |
//! | `trace` | reading of logs, for `advise` and `simulate` |
//! | `learned_costs` | a warning about costs that only a running gateway knows |
//! | `sample_file` | the sample file, for `demo` and `drip init` |
//! | `display`, `output` | formatting of numbers and keys; standard output and error |

pub(crate) mod admin_client;
pub mod advise;
pub mod demo;
pub(crate) mod display;
pub mod find;
pub mod health;
pub mod import;
mod learned_costs;
pub mod output;
pub mod sample_file;
pub mod simulate;
pub mod top;
pub mod trace;

pub use learned_costs::learned_costs;
