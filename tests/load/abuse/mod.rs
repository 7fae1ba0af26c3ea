//! Every kind of abuse that a gateway must withstand: slow heads, bodies and readers, very many connections, floods of
//! keys, heads, pipelined requests and frames, and no file descriptors left.
//!
//! In each test a well-behaved client sends requests all the time, and each gets 200 within [`BOUND`](crate::support::others::BOUND). Memory
//! stays below a bound computed from the number of abusers. When they have gone, the gateway is as it was before.

mod connections;
mod crowd;
mod descriptors;
mod frames;
mod heads;
mod keys;
mod least_rate;
mod log;
mod memory;
mod pipelined;
mod slow;
mod stderr;
mod uploads;

use std::time::Duration;

use crate::support::{Gateway, Origin, now, one_zone};

const KB: u64 = 1 << 10;
const MB: u64 = 1 << 20;

/// How many more descriptors may be open than before: kept connections to the origin, and one or two of the admin port.
const MORE_DESCRIPTORS: usize = 12;

/// A gateway on this origin whose limit is never reached; `server` are fields of `[server]`.
fn open_gateway(origin: &Origin, server: &str) -> Gateway {
    let zone = one_zone(origin, "1000r/s", "burst = 1000");
    let zone = zone.replace("servers =", "keep_alive = 4\nservers =");
    Gateway::start(&format!("workers = 2\n{server}\n{zone}"))
}

/// Waits until `is_so`, much longer than it may take, and returns how long it took.
fn long_until(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    /// With 30 other programs' threads on two cores, ten thousand requests have taken more than 15 s.
    const PATIENCE: Duration = Duration::from_secs(60);
    let began = now();
    while !is_so() {
        assert!(
            began.elapsed() < PATIENCE,
            "waited {PATIENCE:?} in vain for this: {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    began.elapsed()
}
