use std::sync::atomic::{AtomicU64, Ordering};

use ::metrics::counter;

use super::LOCAL_PORT_WAITS;

/// What became of a request that waited for a local port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalPortWait {
    /// It began to wait.
    Origin,
    /// It waited for all of `connect_timeout`: it gets 503.
    InVain,
}

/// The counts so far, which the admin port reads each second.
static COUNTS: [AtomicU64; LocalPortWait::ALL.len()] =
    [const { AtomicU64::new(0) }; LocalPortWait::ALL.len()];

impl LocalPortWait {
    const ALL: [Self; 2] = [Self::Origin, Self::InVain];

    /// The value of the label `for`.
    fn label(self) -> &'static str {
        match self {
            Self::Origin => "origin",
            Self::InVain => "in_vain",
        }
    }
}

/// Counts a request that waits for a local port.
pub fn count_local_port_wait(wait: LocalPortWait) {
    COUNTS[wait as usize].fetch_add(1, Ordering::Relaxed);
    counter!(LOCAL_PORT_WAITS, "for" => wait.label()).increment(1);
}

/// How often that happened so far.
#[must_use]
pub fn local_port_waits(wait: LocalPortWait) -> u64 {
    COUNTS[wait as usize].load(Ordering::Relaxed)
}

/// Shows the series, also while they are zero.
pub(super) fn show() {
    for wait in LocalPortWait::ALL {
        counter!(LOCAL_PORT_WAITS, "for" => wait.label()).increment(0);
    }
}
