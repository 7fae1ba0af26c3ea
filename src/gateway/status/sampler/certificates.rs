//! The certificates that the headline must know of.

use config::tls::{expiry, unix_now};

use crate::observe::certificates::{CertificateOf, known_certificates};
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
    let of_origins = origins.iter().flat_map(|origin| {
        let both = [
            (CertificateOf::Origin, origin.certificate_expires),
            (CertificateOf::ClientCert, origin.client_cert_expires),
        ];
        both.into_iter().filter_map(|(of, expires)| {
            Some(CertificateSample {
                of,
                name: origin.name.clone(),
                expires: expires?,
                ..CertificateSample::default()
            })
        })
    });
    let is_doubtful = |it: &CertificateSample| {
        it.problem.is_some() || it.from > unix || expiry(it.expires, unix).is_some()
    };
    known.chain(of_origins).filter(is_doubtful).collect()
}
