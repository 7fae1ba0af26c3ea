//! Connections, descriptors, local ports and the access log in the last second.

use crate::observe::access;
use crate::observe::connections::{ClientConnections, ConnectionCounts};
use crate::observe::metrics::{
    HandshakeFailure, ShortageWait, handshake_failures, handshakes, shortages,
};
use crate::status::views::{DescriptorSample, HandshakeSample, LocalPortSample, LogSample, Plain};

/// What the process had one second ago.
pub(super) struct Process {
    connections: ClientConnections,
    /// Waits for descriptors, of each kind.
    descriptors: [u64; DESCRIPTORS.len()],
    /// Waits for local ports, of each kind.
    local_ports: [u64; LOCAL_PORTS.len()],
    lost: u64,
    /// All of the process.
    handshakes: HandshakeSample,
}

const DESCRIPTORS: [ShortageWait; 3] = [
    ShortageWait::Descriptor,
    ShortageWait::DescriptorInVain,
    ShortageWait::ClientDescriptor,
];

const LOCAL_PORTS: [ShortageWait; 2] = [ShortageWait::LocalPort, ShortageWait::LocalPortInVain];

impl Process {
    pub(super) fn new(connections: ClientConnections) -> Self {
        Self {
            connections,
            descriptors: DESCRIPTORS.map(shortages),
            local_ports: LOCAL_PORTS.map(shortages),
            lost: access::lost_lines().count,
            handshakes: all_handshakes(),
        }
    }

    /// The TLS handshakes with clients of the last second.
    pub(super) fn handshakes(&mut self) -> HandshakeSample {
        let now = all_handshakes();
        let before = std::mem::replace(&mut self.handshakes, now);
        HandshakeSample {
            done: now.done.saturating_sub(before.done),
            failed: now.failed.saturating_sub(before.failed),
            refused: now.refused.saturating_sub(before.refused),
        }
    }

    pub(super) fn connections(&self) -> ConnectionCounts {
        let counts = self.connections.counts();
        ConnectionCounts {
            idle: counts.is_full.then(|| self.connections.idle()),
            ..counts
        }
    }

    /// What waited for file descriptors in the last second.
    pub(super) fn descriptors(&mut self) -> DescriptorSample {
        let [waited, in_vain, clients] = since(DESCRIPTORS, &mut self.descriptors);
        DescriptorSample {
            waited,
            in_vain,
            clients,
        }
    }

    /// What waited for local ports in the last second.
    pub(super) fn local_ports(&mut self) -> LocalPortSample {
        let [waited, in_vain] = since(LOCAL_PORTS, &mut self.local_ports);
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

/// The TLS handshakes with clients since the start.
fn all_handshakes() -> HandshakeSample {
    let refused = [HandshakeFailure::Expired, HandshakeFailure::Untrusted];
    HandshakeSample {
        done: handshakes(),
        failed: HandshakeFailure::ALL.map(handshake_failures).iter().sum(),
        refused: refused.map(handshake_failures).iter().sum(),
    }
}

/// Returns how many waits were counted since the last call, which left its counts in `before`.
fn since<const N: usize>(waits: [ShortageWait; N], before: &mut [u64; N]) -> [u64; N] {
    let now = waits.map(shortages);
    let before = std::mem::replace(before, now);
    std::array::from_fn(|nth| now[nth].saturating_sub(before[nth]))
}
