//! The life of the gateway's process: listening, accepting, reloading, stopping.

mod accept;
mod acceptor;
mod address;
mod descriptors;
mod drain;
mod full;
mod kernel_queue;
mod listeners;
mod load;
mod logs;
mod memory;
mod names;
mod notify;
mod proxy_protocol;
mod reload;
mod rooms;
mod serve;
pub(crate) mod signals;
mod state;
#[cfg(test)]
mod tests;
mod tls;
mod watchdog;

pub(crate) use address::{live_page, reachable};
pub(crate) use descriptors::check_limit;
pub(crate) use load::{Loaded, load, load_to_start};
pub(crate) use serve::serve;
