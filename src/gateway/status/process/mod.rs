//! Sample of the process in one second: connections, descriptors, local ports, access log.
//!
//! The rules of the headline about the process, its file and its certificates are here, too.

pub(crate) mod certificates;
pub(crate) mod file;
pub(crate) mod metrics;
pub(crate) mod rules;

use std::time::Duration;

use config::tls::{Validity, unix_now};
use config::{FileState, LostKeys};
use limit::Moment;

use super::growth::{Growing, growing_fields};
use super::plain::Plain;
use super::sample::{
    ChangeSample, DescriptorSample, HandshakeSample, LocalPortSample, LostKeysSample, Sample,
};
use crate::observe::access;
use crate::observe::certificates::{Certificate, CertificateOf, known_certificates};
use crate::observe::connections::{ClientConnections, ConnectionCounts};
use crate::observe::metrics::{
    DESCRIPTOR_WAITS, DescriptorWait, HandshakeFailure, LOCAL_PORT_WAITS, LocalPortWait,
    handshake_failures, handshakes,
};
use crate::origin::report::sample::OriginSample;

/// Takes the sample of the process.
pub(crate) struct Process {
    connections: ClientConnections,
    /// Total counts one second ago.
    before: Counted,
}

/// Total counts: descriptors, local ports, handshakes, lost lines of the access log.
type Counted = (DescriptorSample, LocalPortSample, HandshakeSample, u64);

growing_fields!(DescriptorSample: waited, in_vain, clients);
growing_fields!(LocalPortSample: waited, in_vain);
growing_fields!(HandshakeSample: done, failed, refused);

impl Process {
    pub(crate) fn new(connections: ClientConnections) -> Self {
        Self {
            connections,
            before: count_all(access::lost_lines().count),
        }
    }

    /// Adds the last second of the process to a sample.
    pub(crate) fn sample(&mut self, to: &mut Sample) {
        let counts = self.connections.counts();
        to.connections = ConnectionCounts {
            // Counting the idle ones is slow: it looks at each connection.
            idle: counts.is_full.then(|| self.connections.idle()),
            ..counts
        };
        let log = access::lost_lines();
        // `since` of `Growing`: the growth of each count.
        let now = count_all(log.count);
        (to.descriptors, to.local_ports, to.handshakes, to.log.lost) = now.since(&self.before);
        self.before = now;
        to.log.error = log.error.as_deref().map(Plain::new);
    }
}

/// Returns the total counts. `lost_lines`: lost lines of the access log.
fn count_all(lost_lines: u64) -> Counted {
    let descriptors = DescriptorSample {
        waited: DESCRIPTOR_WAITS.get(DescriptorWait::Origin),
        in_vain: DESCRIPTOR_WAITS.get(DescriptorWait::InVain),
        clients: DESCRIPTOR_WAITS.get(DescriptorWait::Client),
    };
    let local_ports = LocalPortSample {
        waited: LOCAL_PORT_WAITS.get(LocalPortWait::Origin),
        in_vain: LOCAL_PORT_WAITS.get(LocalPortWait::InVain),
    };
    let failures = handshake_failures();
    let expired = failures.get(HandshakeFailure::Expired);
    let handshakes = HandshakeSample {
        done: handshakes(),
        failed: failures.each().map(|(_, count)| count).sum(),
        refused: expired + failures.get(HandshakeFailure::Untrusted),
    };
    (descriptors, local_ports, handshakes, lost_lines)
}

/// Duration after a reload in which a new warning names the reload's changes.
const RECENT_CHANGE: Duration = Duration::from_secs(120);
/// Duration for which a plan that lost keys is shown.
const SHOW_LOST_KEYS_FOR: Duration = Duration::from_secs(600);

/// Returns the last change in force, if it is recent.
pub(crate) fn change(state: &FileState, now: Moment) -> Option<ChangeSample> {
    let change = state.last_change.as_ref()?;
    let ago = now.since(change.at);
    (ago <= RECENT_CHANGE).then(|| ChangeSample {
        ago: ago.as_secs_f64(),
        what: change.what.iter().map(|text| Plain::new(text)).collect(),
    })
}

/// Returns the plans that lost keys in the last change, if it is recent.
pub(crate) fn lost_keys(state: &FileState, now: Moment) -> Vec<LostKeysSample> {
    let Some(change) = &state.last_change else {
        return Vec::new();
    };
    let ago = now.since(change.at);
    if ago > SHOW_LOST_KEYS_FOR {
        return Vec::new();
    }
    let sample = |keys: &LostKeys| LostKeysSample {
        zone: Plain::new(&keys.zone),
        plan: Plain::new(&keys.plan),
        file: keys.file.as_deref().map(Plain::new),
        lost: keys.lost as u64,
        had: keys.had as u64,
        ago: ago.as_secs_f64(),
    };
    change.lost_keys.iter().map(sample).collect()
}

/// Returns the certificates that are not valid, expire soon or have a problem: mostly none.
pub(crate) fn certificates(origins: &[OriginSample]) -> Vec<Certificate> {
    let unix = unix_now();
    let known = known_certificates().into_iter();
    let of_origins = origins.iter().flat_map(|origin| {
        // `shown` is the certificate that the origin shows to the gateway, of which only the expiry
        // is known. `client_cert` is the certificate that the gateway shows to the origin.
        let expires = origin.certificate_expires;
        let shown = expires.map(|to| Validity { from: 0, to });
        let certificates = [
            (CertificateOf::Origin, shown),
            (CertificateOf::ClientCert, origin.client_cert),
        ];
        certificates.into_iter().filter_map(|(of, validity)| {
            Some(Certificate {
                of,
                name: origin.name.to_string(),
                validity: validity?,
                problem: None,
            })
        })
    });
    let is_doubtful =
        |it: &Certificate| it.problem.is_some() || it.validity.describe_problem(unix).is_some();
    known.chain(of_origins).filter(is_doubtful).collect()
}
