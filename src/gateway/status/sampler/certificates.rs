//! The certificates that the headline must know of.

use config::tls::{Validity, unix_now};

use crate::observe::certificates::{CertificateOf, known_certificates};
use crate::status::views::{CertificateSample, OriginSample, Plain};

/// Those that are not valid, expire soon or have a problem: mostly none.
pub(super) fn certificates(origins: &[OriginSample]) -> Vec<CertificateSample> {
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
