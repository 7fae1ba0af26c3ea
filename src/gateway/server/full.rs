//! Checks each second whether all client connections are in use and new clients wait in the kernel.
//!
//! The headline reports when that begins and ends. The log line is for gateways without an admin
//! port.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::num::NonZeroU64;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::listeners::Listener;
use crate::observe::connections::{ClientConnections, ConnectionCounts};
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Interval of the checks.
const EVERY: Duration = Duration::from_secs(1);
/// Minimum interval of log lines, in seconds.
const LOG_EVERY: NonZeroU64 = NonZeroU64::new(600).expect("it is not zero");

/// Checks each second whether clients wait for a connection. Never ends.
pub(super) async fn watch(connections: ClientConnections, queue: KernelQueue) {
    let throttle = Throttle::every(LOG_EVERY);
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let was_blocked = connections.take_blocked();
        let waiting = was_blocked.then(|| queue.len()).flatten();
        // A listener also waits for a permit before it knows whether it has another client.
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
const LISTENS: &str = "0A";

/// Inodes of the listening sockets whose queue lengths are read.
///
/// `None`: one of the sockets has no count.
pub(super) struct KernelQueue(Option<Vec<u64>>);

impl KernelQueue {
    /// Collects the queues of all listeners.
    ///
    /// Linux counts those of TCP only.
    pub(super) fn of(listeners: &[Listener]) -> Self {
        Self(listeners.iter().map(Listener::tcp_inode).collect())
    }

    /// Number of clients that wait now; `None` if it is unknown.
    pub(super) fn len(&self) -> Option<usize> {
        let mut inodes = self.0.clone()?;
        let mut waiting = 0;
        for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
            // Without IPv6 there is no such file.
            if let Ok(file) = File::open(file) {
                waiting += waiting_at(&mut inodes, BufReader::new(file)).ok()?;
            }
        }
        inodes.is_empty().then_some(waiting)
    }
}

/// Sums the queue lengths of the sockets with these inodes, and removes the inodes found.
///
/// `table` is a table of sockets as in `/proc/net/tcp`. Listening sockets come first, so the
/// reading ends early, however many connections follow.
fn waiting_at(inodes: &mut Vec<u64>, table: impl BufRead) -> io::Result<usize> {
    let mut waiting = 0;
    for line in table.lines().skip(1) {
        let line = line?;
        let mut words = line.split_whitespace();
        if inodes.is_empty() || words.nth(3) != Some(LISTENS) {
            break;
        }
        let queues = words.next().unwrap_or_default();
        let inode = words.nth(4).and_then(|inode| inode.parse::<u64>().ok());
        let Some(found) = inodes.iter().position(|it| Some(*it) == inode) else {
            continue;
        };
        inodes.swap_remove(found);
        let (_, queue) = queues.split_once(':').unwrap_or_default();
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        waiting += usize::from_str_radix(queue, 16).map_err(invalid)?;
    }
    Ok(waiting)
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
        let sum = |mut inodes: Vec<u64>| {
            let waiting = waiting_at(&mut inodes, TABLE.as_bytes()).unwrap();
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
        assert!(waiting_at(&mut vec![4711], broken.as_bytes()).is_err());
        assert_eq!(waiting_at(&mut vec![4711], &b""[..]).unwrap(), 0);
    }
}
