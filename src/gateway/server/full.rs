//! Checks each second whether all client connections are in use and new clients wait in the kernel.
//!
//! The result goes to the headline. The log line is for gateways without an admin port.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::num::NonZeroU64;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::listeners::Listener;
use crate::observe::connections::{ClientConnections, ConnectionCounts};
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Interval of the checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum interval of log lines, in seconds.
const LOG_INTERVAL: NonZeroU64 = NonZeroU64::new(600).expect("it is not zero");

/// Checks each second whether clients wait for a connection. Never ends.
pub(super) async fn watch(connections: ClientConnections, queue: KernelQueue) {
    let throttle = Throttle::every(LOG_INTERVAL);
    let mut ticks = interval(CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let was_blocked = connections.take_blocked();
        let waiting = was_blocked.then(|| queue.len()).flatten();
        // The acceptor can also be blocked for a moment without a waiting client. If the number of
        // waiting clients is unknown (`None`), being blocked counts.
        let is_full = was_blocked && waiting != Some(0);
        connections.note(is_full, waiting);
        if is_full && throttle.show(clock::now()).is_some() {
            warn(connections.counts());
        }
    }
}

/// Logs that all connections are in use.
fn warn(connections: ConnectionCounts) {
    let (max_connections, waiting) = (connections.max, connections.waiting);
    let remedy = if connections.few_descriptors {
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

/// State of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// Inodes of the listening sockets, by which their queue lengths are found.
///
/// `None`: one of the sockets is not TCP, and Linux shows no queue length for it.
pub(super) struct KernelQueue(Option<Vec<u64>>);

impl KernelQueue {
    /// Collects the queues of all listeners.
    pub(super) fn of_listeners(listeners: &[Listener]) -> Self {
        Self(listeners.iter().map(Listener::tcp_inode).collect())
    }

    /// Returns the number of clients that wait now; `None` if it is unknown.
    pub(super) fn len(&self) -> Option<usize> {
        let mut inodes = self.0.clone()?;
        let mut waiting = 0;
        for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
            // Without IPv6 there is no such file.
            if let Ok(file) = File::open(file) {
                waiting += sum_queues(&mut inodes, BufReader::new(file))?;
            }
        }
        inodes.is_empty().then_some(waiting)
    }
}

/// Sums the queue lengths of the sockets with these inodes, and removes the inodes found.
///
/// `table` is a table of sockets as in `/proc/net/tcp`. Listening sockets come first, so the
/// connections that follow are not read.
///
/// Returns `None` if the table cannot be read.
fn sum_queues(inodes: &mut Vec<u64>, table: impl BufRead) -> Option<usize> {
    let mut waiting = 0;
    for line in table.lines().skip(1) {
        let line = line.ok()?;
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, _, _, state, queues, _, _, _, _, inode, ..] = words[..] else {
            break;
        };
        if state != LISTENING || inodes.is_empty() {
            break;
        }
        let inode = inode.parse::<u64>().ok();
        let Some(found) = inodes.iter().position(|own| Some(*own) == inode) else {
            continue;
        };
        inodes.swap_remove(found);
        // Of a listening socket, `rx_queue` is the number of connections that are not accepted yet.
        let (_tx_queue, rx_queue) = queues.split_once(':').unwrap_or_default();
        waiting += usize::from_str_radix(rx_queue, 16).ok()?;
    }
    Some(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000227 00:00000000 00000000  1000        0 4711 1 0000000000000000 100 0 0 10 0
   1: 00000000:0016 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 815 1 0000000000000000 100 0 0 10 0
   2: 0100007F:1F91 00000000:0000 0A 00000000:00000001 00:00000000 00000000  1000        0 4712 1 0000000000000000 100 0 0 10 0
   3: 0100007F:1F90 0100007F:A1B2 01 00000000:00000005 00:00000000 00000000  1000        0 4713 1 0000000000000000 20 4 30 10 -1
";

    #[test]
    fn the_queues_of_own_sockets_that_listen_are_summed() {
        // Returns the number of waiting clients, and the inodes that were not found.
        let sum = |mut inodes: Vec<u64>| {
            let waiting = sum_queues(&mut inodes, TABLE.as_bytes()).unwrap();
            (waiting, inodes)
        };
        assert_eq!(sum(vec![4711]), (551, vec![]));
        assert_eq!(sum(vec![4711, 4712]), (552, vec![]));
        // A connection is no queue.
        assert_eq!(sum(vec![4712, 4713]), (1, vec![4713]));
        assert_eq!(sum(vec![]), (0, vec![]));
    }

    #[test]
    fn an_invalid_socket_table_has_no_count() {
        let broken = TABLE.replace(":00000227", ":what");
        assert!(sum_queues(&mut vec![4711], broken.as_bytes()).is_none());
        assert_eq!(sum_queues(&mut vec![4711], &b""[..]).unwrap(), 0);
    }
}
