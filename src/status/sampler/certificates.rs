//! The certificates that the headline must know of.

use crate::http::gateway::Gateway;
use crate::observe::certificates::{CertificateOf, expiry, known_certificates, unix_now};
use crate::status::views::{CertificateSample, Plain};
use crate::time::clock;

/// Those that expire soon, have expired, are not valid yet or have a problem: mostly none.
pub(super) fn certificates(gateway: &Gateway) -> Vec<CertificateSample> {
    let (now, unix) = (clock::now(), unix_now());
    let known = known_certificates()
        .into_iter()
        .map(|it| CertificateSample {
            of: it.of,
            name: Plain::new(&it.name),
            from: it.validity.from,
            expires: it.validity.to,
            problem: it.problem.as_deref().map(Plain::new),
        });
    let shown = gateway.origins().iter().filter_map(|origin| {
        let servers = origin.servers(now);
        let first = servers.filter_map(|it| it.certificate_expires).min();
        first.map(|expires| CertificateSample {
            of: CertificateOf::Origin,
            name: Plain::new(&origin.settings().name),
            expires,
            ..CertificateSample::default()
        })
    });
    let is_doubtful = |it: &CertificateSample| {
        it.problem.is_some() || it.from > unix || expiry(it.expires, unix).is_some()
    };
    known.chain(shown).filter(is_doubtful).collect()
}
