//! Clients that wait in the kernel: their connections are made, and not accepted yet.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use super::listeners::Listener;

/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// The sockets whose queues are counted.
#[derive(Debug)]
pub(super) struct KernelQueue {
    /// Their inodes; `None` if one of them has no count.
    inodes: Option<Vec<u64>>,
}

impl KernelQueue {
    /// The queues of all listeners.
    ///
    /// Linux counts those of TCP only.
    pub(super) fn of(listeners: &[Listener]) -> Self {
        Self {
            inodes: listeners.iter().map(Listener::tcp_inode).collect(),
        }
    }

    /// How many clients wait now. `None` if that cannot be found out.
    pub(super) fn len(&self) -> Option<usize> {
        let mut wanted = self.inodes.clone()?;
        let mut waiting = 0;
        for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
            // Without IPv6 there is no file for it.
            if let Ok(file) = File::open(file) {
                waiting += waiting_at(&mut wanted, BufReader::new(file)).ok()?;
            }
        }
        wanted.is_empty().then_some(waiting)
    }
}

/// Sums the queues of the sockets with these inodes in a table of sockets, and removes those that
/// it has.
///
/// Sockets that listen come first, so it ends early, however many connections follow.
fn waiting_at(wanted: &mut Vec<u64>, table: impl BufRead) -> io::Result<usize> {
    let mut waiting = 0;
    for line in table.lines().skip(1) {
        let line = line?;
        let mut words = line.split_whitespace();
        if wanted.is_empty() || words.nth(3) != Some(LISTENS) {
            break;
        }
        let queues = words.next().unwrap_or_default();
        let inode = words.nth(4).and_then(|inode| inode.parse::<u64>().ok());
        let Some(found) = wanted.iter().position(|it| Some(*it) == inode) else {
            continue;
        };
        wanted.swap_remove(found);
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
        let sum = |mut wanted: Vec<u64>| {
            let waiting = waiting_at(&mut wanted, TABLE.as_bytes()).unwrap();
            (waiting, wanted)
        };
        assert_eq!(sum(vec![4711]), (551, vec![]));
        assert_eq!(sum(vec![4711, 4712]), (552, vec![]));
        // A connection is no queue.
        assert_eq!(sum(vec![4712, 4713]), (1, vec![4713]));
        assert_eq!(sum(vec![]), (0, vec![]));
    }

    #[test]
    fn what_is_no_table_has_no_count() {
        let broken = TABLE.replace(":00000227", ":what");
        assert!(waiting_at(&mut vec![4711], broken.as_bytes()).is_err());
        assert_eq!(waiting_at(&mut vec![4711], &b""[..]).unwrap(), 0);
    }
}
