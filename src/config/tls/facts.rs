//! Reads facts from a certificate that the TLS library does not expose, such as its validity.

use std::time::Duration;

use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{CertificateError, Error};
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode;
use x509_cert::time::Time;

/// Period in which a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    /// `notBefore` of the certificate.
    pub from: i64,
    /// `notAfter` of the certificate.
    pub to: i64,
}

/// Returns the version of a certificate, from 1, and its validity; `None` if it is no certificate.
pub fn version_and_validity(certificate: &[u8]) -> Option<(u8, Validity)> {
    let read = CertificateInner::<Raw>::from_der(certificate).ok()?;
    let facts = read.tbs_certificate();
    let unix_time = |time: Time| i64::try_from(time.to_unix_duration().as_secs()).ok();
    let validity = facts.validity();
    let validity = Validity {
        from: unix_time(validity.not_before)?,
        to: unix_time(validity.not_after)?,
    };
    // In the encoding, version 1 has the number 0.
    Some((facts.version() as u8 + 1, validity))
}

/// Returns the validity of a certificate; `None` if it is no certificate.
pub fn validity(certificate: &[u8]) -> Option<Validity> {
    version_and_validity(certificate).map(|(_, validity)| validity)
}

/// Fails unless the certificate is valid at `now`.
pub fn verify_validity(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let Validity { from, to } = validity(certificate).ok_or(CertificateError::BadEncoding)?;
    let convert = |seconds: i64| {
        let seconds = u64::try_from(seconds).unwrap_or_default();
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    };
    let (not_before, not_after) = (convert(from), convert(to));
    let time = now;
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time, not_before }.into());
    }
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time, not_after }.into());
    }
    Ok(())
}

/// Returns whether a certificate names its own subject as its issuer.
pub fn is_self_issued(certificate: &CertificateDer<'_>) -> bool {
    let read = CertificateInner::<Raw>::from_der(certificate);
    read.is_ok_and(|read| {
        let facts = read.tbs_certificate();
        facts.issuer() == facts.subject()
    })
}

/// Returns why the gateway cannot present this certificate; `None` if it can.
pub fn flaw(certificate: &CertificateDer<'_>) -> Option<String> {
    // `..3`: versions 1 and 2.
    if let Some((version @ ..3, _)) = version_and_validity(certificate) {
        return Some(format!(
            "the certificate is of X.509 version {version}, and TLS needs version 3; openssl makes one with `req -x509`, or with `x509 -req` and -extfile"
        ));
    }
    let error = ParsedCertificate::try_from(certificate).err()?;
    Some(format!("the certificate cannot be read: {error}"))
}
