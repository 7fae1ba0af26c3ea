//! TLS settings for connections to servers, with verification of the server's certificate.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Once};

use rustls_native_certs::load_native_certs;
use tokio_rustls::rustls::client::WantsClientCert;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, ConfigBuilder, RootCertStore};

use super::verifier::Verifier;

/// Certificates in a file that connections trust: of authorities, or of the servers themselves.
#[derive(Clone, Debug)]
pub struct Authorities {
    /// Absolute path of the file.
    pub file: PathBuf,
    /// The certificates as authorities, which sign those of servers; never empty.
    pub roots: Arc<RootCertStore>,
    /// The same certificates. A server may present one of them as its own.
    pub certificates: Arc<[CertificateDer<'static>]>,
}

impl PartialEq for Authorities {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file && self.certificates == other.certificates
    }
}

impl Eq for Authorities {}

/// Begins TLS settings for connections that trust these authorities. The caller adds the
/// certificate of the gateway, if it has one.
///
/// `None`: the system's authorities, or those in `SSL_CERT_FILE` and `SSL_CERT_DIR`. The call may
/// block, because it reads the system's files.
pub fn client(
    authorities: Option<&Authorities>,
) -> io::Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    let (roots, pinned) = match authorities {
        None => (Arc::new(system_roots()?), Arc::default()),
        Some(ca) => (Arc::clone(&ca.roots), Arc::clone(&ca.certificates)),
    };
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new(roots, pinned, &provider).map_err(io::Error::other)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    // rustls calls every verifier other than its own dangerous.
    let builder = builder.dangerous();
    Ok(builder.with_custom_certificate_verifier(Arc::new(verifier)))
}

/// Loads the system's authorities. Logs unreadable ones once.
fn system_roots() -> io::Result<RootCertStore> {
    static WARNED: Once = Once::new();
    let found = load_native_certs();
    let mut roots = RootCertStore::empty();
    let (_, unfit) = roots.add_parsable_certificates(found.certs);
    let errors: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
    let errors = errors.join("; ");
    if roots.is_empty() {
        let reason = Some(&*errors).filter(|errors| !errors.is_empty());
        return Err(io::Error::other(format!(
            "no root certificates to verify servers with (from the system or SSL_CERT_FILE): {}",
            reason.unwrap_or("none found")
        )));
    }
    if unfit > 0 || !errors.is_empty() {
        WARNED.call_once(|| {
            tracing::warn!(
                unfit,
                errors,
                "some root certificates are left out; servers are verified with the others"
            );
        });
    }
    Ok(roots)
}
