//! Connections, descriptors, local ports and the access log in the last second.

use super::growth::Growing;
use crate::observe::access;
use crate::observe::connections::{ClientConnections, ConnectionCounts};
use crate::observe::metrics::{
    DESCRIPTOR_WAITS, DescriptorWait, HandshakeFailure, LOCAL_PORT_WAITS, LocalPortWait,
    handshake_failures, handshakes,
};
use crate::status::views::{
    DescriptorSample, HandshakeSample, LocalPortSample, LogSample, Plain, Sample,
};

/// What the process had one second ago.
pub(super) struct Process {
    connections: ClientConnections,
    before: Counted,
}

/// Waits for descriptors and for local ports, handshakes, and lost lines of the access log, since the start.
type Counted = ([u64; 3], [u64; 2], [u64; 3], u64);

impl Process {
    pub(super) fn new(connections: ClientConnections) -> Self {
        Self {
            connections,
            before: counted(access::lost_lines().count),
        }
    }

    /// Adds the last second of the process to a sample.
    pub(super) fn sample(&mut self, to: &mut Sample) {
        let counts = self.connections.counts();
        to.connections = ConnectionCounts {
            idle: counts.is_full.then(|| self.connections.idle()),
            ..counts
        };
        let log = access::lost_lines();
        let now = counted(log.count);
        let (descriptors, local_ports, [done, failed, refused], lost) = now.since(&self.before);
        self.before = now;
        let [waited, in_vain, clients] = descriptors;
        to.descriptors = DescriptorSample {
            waited,
            in_vain,
            clients,
        };
        let [waited, in_vain] = local_ports;
        to.local_ports = LocalPortSample { waited, in_vain };
        to.handshakes = HandshakeSample {
            done,
            failed,
            refused,
        };
        to.log = LogSample {
            lost,
            error: log.error.as_deref().map(Plain::new),
        };
    }
}

fn counted(lost: u64) -> Counted {
    let failures = handshake_failures();
    let failed = failures.each().map(|(_, count)| count).sum();
    let refused = [HandshakeFailure::Expired, HandshakeFailure::Untrusted];
    let refused = refused.map(|why| failures.get(why)).iter().sum();
    (
        DescriptorWait::ALL.map(|it| DESCRIPTOR_WAITS.get(it)),
        LocalPortWait::ALL.map(|it| LOCAL_PORT_WAITS.get(it)),
        [handshakes(), failed, refused],
        lost,
    )
}
