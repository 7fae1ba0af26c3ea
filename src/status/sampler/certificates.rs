//! The certificates that the headline must know of.

use crate::observe::certificates::{CertificateOf, expiry, known_certificates, unix_now};
use crate::status::views::{CertificateSample, OriginSample, Plain};

/// Those that expire soon, have expired, are not valid yet or have a problem: mostly none.
pub(super) fn certificates(origins: &[OriginSample]) -> Vec<CertificateSample> {
    let unix = unix_now();
    let known = known_certificates()
        .into_iter()
        .map(|it| CertificateSample {
            of: it.of,
            name: Plain::new(&it.name),
            from: it.validity.from,
            expires: it.validity.to,
            problem: it.problem.as_deref().map(Plain::new),
        });
    let shown = origins.iter().filter_map(|origin| {
        Some(CertificateSample {
            of: CertificateOf::Origin,
            name: origin.name.clone(),
            expires: origin.certificate_expires?,
            ..CertificateSample::default()
        })
    });
    let is_doubtful = |it: &CertificateSample| {
        it.problem.is_some() || it.from > unix || expiry(it.expires, unix).is_some()
    };
    known.chain(shown).filter(is_doubtful).collect()
}
