//! Notes each second whether all client connections are in use, so that new clients wait in the kernel.
//!
//! The headline reports when that begins and ends. The line of the log is for gateways without an admin port.

use std::num::NonZeroU64;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::kernel_queue::KernelQueue;
use crate::observe::connections::{ClientConnections, ConnectionCounts};
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Interval between looks.
const EVERY: Duration = Duration::from_secs(1);
/// The log gets at most one line in so many seconds.
const LOG_EVERY: NonZeroU64 = NonZeroU64::new(600).expect("it is not zero");

/// Notes each second whether clients wait for a connection. Never ends.
pub(super) async fn watch(connections: ClientConnections, queue: KernelQueue) {
    let throttle = Throttle::every(LOG_EVERY);
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let was_blocked = connections.take_blocked();
        let waiting = was_blocked.then(|| queue.len()).flatten();
        // A listener also waits for a place before it knows whether it has another client.
        let is_full = was_blocked && waiting != Some(0);
        connections.note(is_full, waiting);
        if is_full && throttle.show(clock::now()).is_some() {
            warn(connections.counts());
        }
    }
}

/// Logs that all connections are in use.
fn warn(connections: ConnectionCounts) {
    let ConnectionCounts {
        max: max_connections,
        few_descriptors,
        waiting,
        ..
    } = connections;
    let remedy = if few_descriptors {
        "raise the limit of file descriptors (LimitNOFILE in systemd, ulimit -n)"
    } else {
        "raise server.max_connections, or lower server.keep_alive"
    };
    tracing::warn!(
        max_connections,
        waiting,
        "all client connections are in use, and new clients wait in the kernel; {remedy}"
    );
}
