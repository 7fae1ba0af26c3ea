//! Life of the gateway's process: listening, accepting, reloading, stopping.
//!
//! | module | content |
//! |---|---|
//! | `serve` | the main task: start, events, stop |
//! | `load`, `reload`, `names` | the file at the start, its changes, DNS names in it |
//! | `listeners`, `acceptor`, `accept`, `tls` | listening sockets, accepting, serving a connection |
//! | `descriptors`, `full` | how many clients fit, and whether others wait in the kernel |
//! | `drain`, `state`, `rooms` | the stop, and what the next process continues from |
//! | `signals`, `notify`, `watchdog` | signals of operators, messages to the service manager |
//! | `memory`, `address` | unused memory, addresses for programs on this machine |

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
