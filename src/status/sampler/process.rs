use crate::observe::access;
use crate::observe::connections::{ClientConnections, ConnectionCounts};
use crate::observe::metrics::{DescriptorWait, descriptor_waits};
use crate::status::views::{DescriptorSample, LogSample, Plain};

/// What the process had one second ago.
pub(super) struct Process {
    connections: ClientConnections,
    /// Waits for descriptors, of each kind.
    waits: [u64; WAITS.len()],
    lost: u64,
}

const WAITS: [DescriptorWait; 3] = [
    DescriptorWait::Origin,
    DescriptorWait::InVain,
    DescriptorWait::Client,
];

impl Process {
    pub(super) fn new(connections: ClientConnections) -> Self {
        Self {
            connections,
            waits: WAITS.map(descriptor_waits),
            lost: access::lost_lines().count,
        }
    }

    pub(super) fn connections(&self) -> ConnectionCounts {
        self.connections.counts()
    }

    /// What waited for file descriptors in the last second.
    pub(super) fn descriptors(&mut self) -> DescriptorSample {
        let now = WAITS.map(descriptor_waits);
        let before = std::mem::replace(&mut self.waits, now);
        let [waited, in_vain, clients] =
            std::array::from_fn(|nth| now[nth].saturating_sub(before[nth]));
        DescriptorSample {
            waited,
            in_vain,
            clients,
        }
    }

    /// What the access log lost in the last second.
    pub(super) fn log(&mut self) -> LogSample {
        let now = access::lost_lines();
        let before = std::mem::replace(&mut self.lost, now.count);
        LogSample {
            lost: now.count.saturating_sub(before),
            error: now.error.as_deref().map(Plain::new),
        }
    }
}
