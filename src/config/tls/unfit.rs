//! Certificates that TLS cannot show, whatever their key is.

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::server::ParsedCertificate;

use super::version_and_validity;

/// What is wrong with a certificate that the gateway is to show; `None` if nothing is.
pub fn unfit(certificate: &CertificateDer<'_>) -> Option<String> {
    if let Some((version @ ..3, _)) = version_and_validity(certificate) {
        return Some(format!(
            "the certificate is of X.509 version {version}, and TLS needs version 3; openssl makes one with `req -x509`, or with `x509 -req` and -extfile"
        ));
    }
    let error = ParsedCertificate::try_from(certificate).err()?;
    Some(format!("the certificate cannot be read: {error}"))
}
