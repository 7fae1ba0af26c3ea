//! Code that the measuring programs share.
//!
//! It has an origin that records what arrives, clients, processes on their own processor, and the
//! pages for the results.

pub mod answers;
pub mod arguments;
pub mod client;
pub mod crowd;
pub mod crowd_clients;
pub mod figures;
pub mod http2;
pub mod machine;
pub mod origin;
pub mod page;
pub mod placement;
#[allow(unused_imports, reason = "some of the programs draw nothing")]
pub mod plot;
pub mod process;
pub mod tls;
pub mod usage;

use std::time::Duration;

/// Waits at most `limit` until `is_done` returns true. Returns whether it did.
pub fn wait_until(limit: Duration, mut is_done: impl FnMut() -> bool) -> bool {
    let deadline = gateway::time::clock::now() + limit;
    loop {
        if is_done() {
            return true;
        }
        if gateway::time::clock::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
