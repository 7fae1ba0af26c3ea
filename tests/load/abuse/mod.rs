//! Tests of abuse that a gateway must withstand.
//!
//! The kinds are slow heads and bodies, very many connections, floods of keys, pipelined requests
//! and frames, and no file descriptors left. In each test a well-behaved client sends requests all
//! the time, and each gets 200 within [`BOUND`](crate::support::others::BOUND). Memory stays below
//! a bound computed from the number of abusers. Afterwards the gateway is as before.

mod connections;
mod crowd;
mod descriptors;
mod frames;
mod keys;
mod least_rate;
mod log;
mod pipelined;
mod slow;
mod stderr;

use crate::support::{Gateway, Origin, one_zone};

const KB: u64 = 1 << 10;
const MB: u64 = 1 << 20;

/// Number of additional descriptors: kept connections to the origin, and some of the admin port.
const MORE_DESCRIPTORS: usize = 12;

/// Starts a gateway whose limit is never reached. `server`: fields of `[server]`.
fn open_gateway(origin: &Origin, server: &str) -> Gateway {
    let zone = one_zone(origin, "1000r/s", "burst = 1000");
    // On a busy machine a request waits for longer than a second for a file descriptor.
    let patient = "keep_alive = 4\nconnect_timeout = \"30s\"\nservers =";
    let zone = zone.replace("servers =", patient);
    Gateway::start(&format!("workers = 2\n{server}\n{zone}"))
}
