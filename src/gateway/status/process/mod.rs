//! Sample of connections, descriptors, local ports and the access log.

pub(crate) mod certificates;
pub(crate) mod file;
pub(crate) mod metrics;
pub(crate) mod rules;

use std::time::Duration;

use config::tls::{Validity, unix_now};
use config::{FileState, LostKeys};
use limit::Moment;

use super::growth::Growing;
use super::plain::Plain;
use super::sample::{
    CertificateSample, ChangeSample, DescriptorSample, HandshakeSample, LocalPortSample, LogSample,
    LostKeysSample, Sample,
};
use crate::observe::access;
use crate::observe::certificates::{CertificateOf, known_certificates};
use crate::observe::connections::{ClientConnections, ConnectionCounts};
use crate::observe::metrics::{
    DESCRIPTOR_WAITS, DescriptorWait, HandshakeFailure, LOCAL_PORT_WAITS, LocalPortWait,
    handshake_failures, handshakes,
};
use crate::origin::report::sample::OriginSample;

/// Counts of the process one second ago.
pub(crate) struct Process {
    connections: ClientConnections,
    before: Counted,
}

/// Waits for descriptors and for local ports, handshakes, and lost lines of the access log.
type Counted = ([u64; 3], [u64; 2], [u64; 3], u64);

impl Process {
    pub(crate) fn new(connections: ClientConnections) -> Self {
        Self {
            connections,
            before: counted(access::lost_lines().count),
        }
    }

    /// Adds the last second of the process to a sample.
    pub(crate) fn sample(&mut self, to: &mut Sample) {
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

/// Duration after a reload in which a new warning names the reload's changes.
const RECENT_CHANGE: Duration = Duration::from_secs(120);
/// Duration for which a plan that lost keys is shown.
const LOST_LATELY: Duration = Duration::from_secs(600);

/// Last change in force, if it is recent.
pub(crate) fn change(state: &FileState, now: Moment) -> Option<ChangeSample> {
    let change = state.last_change.as_ref()?;
    let ago = now.since(change.at);
    (ago <= RECENT_CHANGE).then(|| ChangeSample {
        ago: ago.as_secs_f64(),
        what: change.what.iter().map(|text| Plain::new(text)).collect(),
    })
}

/// Plans that lost keys in the last change, if it is recent.
pub(crate) fn lost_keys(state: &FileState, now: Moment) -> Vec<LostKeysSample> {
    let Some(change) = &state.last_change else {
        return Vec::new();
    };
    let ago = now.since(change.at);
    if ago > LOST_LATELY {
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

/// Certificates that are not valid, expire soon or have a problem: mostly none.
pub(crate) fn certificates(origins: &[OriginSample]) -> Vec<CertificateSample> {
    let unix = unix_now();
    let known = known_certificates()
        .into_iter()
        .map(|it| CertificateSample {
            of: it.of,
            name: Plain::new(&it.name),
            validity: it.validity,
            problem: it.problem.as_deref().map(Plain::new),
        });
    let of_origins = origins.iter().flat_map(|origin| {
        let shown = origin.certificate_expires;
        let shown = shown.map(|to| Validity { from: 0, to });
        let both = [
            (CertificateOf::Origin, shown),
            (CertificateOf::ClientCert, origin.client_cert),
        ];
        both.into_iter().filter_map(|(of, validity)| {
            Some(CertificateSample {
                of,
                name: origin.name.clone(),
                validity: validity?,
                problem: None,
            })
        })
    });
    let is_doubtful =
        |it: &CertificateSample| it.problem.is_some() || it.validity.doubt(unix).is_some();
    known.chain(of_origins).filter(is_doubtful).collect()
}
