use std::sync::atomic::{AtomicU64, Ordering};

use ::metrics::counter;

use super::DESCRIPTOR_WAITS;

/// What waited for a file descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorWait {
    /// A request, for its connection to an origin.
    Origin,
    /// The same for all of `connect_timeout`: it gets 503.
    InVain,
    /// A new client: a try to accept it failed.
    Client,
}

/// The counts so far, which the admin port reads each second.
static COUNTS: [AtomicU64; DescriptorWait::ALL.len()] =
    [const { AtomicU64::new(0) }; DescriptorWait::ALL.len()];

impl DescriptorWait {
    const ALL: [Self; 3] = [Self::Origin, Self::InVain, Self::Client];

    /// The value of the label `for`.
    fn label(self) -> &'static str {
        match self {
            Self::Origin => "origin",
            Self::InVain => "in_vain",
            Self::Client => "client",
        }
    }
}

/// Counts something that waits for a descriptor.
pub fn count_descriptor_wait(wait: DescriptorWait) {
    COUNTS[wait as usize].fetch_add(1, Ordering::Relaxed);
    counter!(DESCRIPTOR_WAITS, "for" => wait.label()).increment(1);
}

/// How often that happened so far.
#[must_use]
pub fn descriptor_waits(wait: DescriptorWait) -> u64 {
    COUNTS[wait as usize].load(Ordering::Relaxed)
}

/// Shows the series, also while they are zero.
pub(super) fn show() {
    for wait in DescriptorWait::ALL {
        counter!(DESCRIPTOR_WAITS, "for" => wait.label()).increment(0);
    }
}
