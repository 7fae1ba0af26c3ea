//! Certificates that TLS cannot present, whatever their key is.

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::server::ParsedCertificate;

use super::version_and_validity;

/// Returns what is wrong with a certificate of the gateway; `None` if it can be presented.
pub fn unfit(certificate: &CertificateDer<'_>) -> Option<String> {
    if let Some((version @ ..3, _)) = version_and_validity(certificate) {
        return Some(format!(
            "the certificate is of X.509 version {version}, and TLS needs version 3; openssl makes one with `req -x509`, or with `x509 -req` and -extfile"
        ));
    }
    let error = ParsedCertificate::try_from(certificate).err()?;
    Some(format!("the certificate cannot be read: {error}"))
}
