//! Waits for a resource of this host: a file descriptor, or a local port.

use std::sync::atomic::{AtomicU64, Ordering};

use ::metrics::counter;

use super::{DESCRIPTOR_WAITS, LOCAL_PORT_WAITS};

/// Who waited, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortageWait {
    /// A request, for a file descriptor for its connection to an origin.
    Descriptor,
    /// The same for all of `connect_timeout`: it gets 503.
    DescriptorInVain,
    /// A new client: a try to accept it failed.
    ClientDescriptor,
    /// A request, for a local port for its connection to an origin.
    LocalPort,
    /// The same for all of `connect_timeout`: it gets 503.
    LocalPortInVain,
}

/// The counts so far, which the admin port reads each second.
static COUNTS: [AtomicU64; ShortageWait::ALL.len()] =
    [const { AtomicU64::new(0) }; ShortageWait::ALL.len()];

impl ShortageWait {
    const ALL: [Self; 5] = [
        Self::Descriptor,
        Self::DescriptorInVain,
        Self::ClientDescriptor,
        Self::LocalPort,
        Self::LocalPortInVain,
    ];

    /// The name of the metric, and the value of its label `for`.
    fn series(self) -> (&'static str, &'static str) {
        match self {
            Self::Descriptor => (DESCRIPTOR_WAITS, "origin"),
            Self::DescriptorInVain => (DESCRIPTOR_WAITS, "in_vain"),
            Self::ClientDescriptor => (DESCRIPTOR_WAITS, "client"),
            Self::LocalPort => (LOCAL_PORT_WAITS, "origin"),
            Self::LocalPortInVain => (LOCAL_PORT_WAITS, "in_vain"),
        }
    }

    fn increment(self, count: u64) {
        let (name, label) = self.series();
        counter!(name, "for" => label).increment(count);
    }
}

/// Counts one wait.
pub fn count_shortage(wait: ShortageWait) {
    COUNTS[wait as usize].fetch_add(1, Ordering::Relaxed);
    wait.increment(1);
}

/// Number of such waits so far.
#[must_use]
pub fn shortages(wait: ShortageWait) -> u64 {
    COUNTS[wait as usize].load(Ordering::Relaxed)
}

/// Shows the series, also while they are zero.
pub(super) fn show() {
    for wait in ShortageWait::ALL {
        wait.increment(0);
    }
}
