//! Life of the gateway's process: listening, accepting, reloading, stopping.

mod accept;
mod acceptor;
mod address;
mod descriptors;
mod drain;
mod full;
mod listeners;
mod load;
mod memory;
mod names;
mod notify;
mod reload;
mod rooms;
mod serve;
pub mod signals;
mod state;
#[cfg(test)]
mod tests;
mod tls;
mod watchdog;

pub use address::{live_page, reachable};
pub use descriptors::check_limit;
pub use load::{Loaded, load};
pub use serve::{file_name, serve};
