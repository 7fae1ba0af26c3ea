//! Commands beside the gateway itself: they read logs, files and the admin port.
//!
//! | module | command |
//! |---|---|
//! | `advise` | `drip advise`, and `drip init` from a log |
//! | `demo`, `find`, `health`, `import`, `simulate`, `top` | the command of that name |
//! | `admin_client`, `learned_costs`, `output`, `shown`, `starter`, `trace` | what commands share |

pub(crate) mod admin_client;
pub mod advise;
pub mod demo;
pub mod find;
pub mod health;
pub mod import;
mod learned_costs;
pub mod output;
pub(crate) mod shown;
pub mod simulate;
pub mod starter;
pub mod top;
pub mod trace;

pub use learned_costs::learned_costs;
