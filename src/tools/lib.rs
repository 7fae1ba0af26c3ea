//! Commands beside the gateway itself: they read logs, files and the admin port.

pub(crate) mod admin_client;
pub mod advise;
pub mod complain;
pub mod demo;
pub mod find;
pub mod import;
mod learned_costs;
pub(crate) mod shown;
pub mod simulate;
pub mod starter;
pub mod top;
pub mod trace;

pub use learned_costs::learned_costs;
