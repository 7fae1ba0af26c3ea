use crate::observe::access;
use crate::observe::connections::{ClientConnections, ConnectionCounts};
use crate::observe::metrics::{DescriptorWait, LocalPortWait, descriptor_waits, local_port_waits};
use crate::status::views::{DescriptorSample, LocalPortSample, LogSample, Plain};

/// What the process had one second ago.
pub(super) struct Process {
    connections: ClientConnections,
    /// Waits for descriptors, of each kind.
    waits: [u64; WAITS.len()],
    /// Waits for local ports, of each kind.
    port_waits: [u64; PORT_WAITS.len()],
    lost: u64,
}

const PORT_WAITS: [LocalPortWait; 2] = [LocalPortWait::Origin, LocalPortWait::InVain];

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
            port_waits: PORT_WAITS.map(local_port_waits),
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

    /// What waited for local ports in the last second.
    pub(super) fn local_ports(&mut self) -> LocalPortSample {
        let now = PORT_WAITS.map(local_port_waits);
        let before = std::mem::replace(&mut self.port_waits, now);
        let [waited, in_vain] = std::array::from_fn(|nth| now[nth].saturating_sub(before[nth]));
        LocalPortSample { waited, in_vain }
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
