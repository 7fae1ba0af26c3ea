//! Facts of a certificate that is trusted itself: its validity, and whether it is self-issued.

use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::{CertificateError, Error};
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode;
use x509_cert::time::Time;

/// Fails unless the certificate is valid `now`.
pub(crate) fn verify_validity(
    certificate: &CertificateDer<'_>,
    now: UnixTime,
) -> Result<(), Error> {
    let read = CertificateInner::<Raw>::from_der(certificate);
    let read = read.map_err(|_| CertificateError::BadEncoding)?;
    let at = |time: Time| UnixTime::since_unix_epoch(time.to_unix_duration());
    let validity = read.tbs_certificate().validity();
    let (not_before, not_after) = (at(validity.not_before), at(validity.not_after));
    let time = now;
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time, not_before }.into());
    }
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time, not_after }.into());
    }
    Ok(())
}

/// Whether a certificate names its own subject as its issuer.
pub(crate) fn is_self_issued(certificate: &CertificateDer<'_>) -> bool {
    let read = CertificateInner::<Raw>::from_der(certificate);
    read.is_ok_and(|read| {
        let facts = read.tbs_certificate();
        facts.issuer() == facts.subject()
    })
}
