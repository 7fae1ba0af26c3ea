use std::path::PathBuf;
use std::sync::Arc;

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// Authorities from a file, or the servers' own certificates.
#[derive(Clone, Debug)]
pub struct Authorities {
    /// The absolute path.
    pub file: PathBuf,
    /// At least one.
    pub roots: Arc<RootCertStore>,
    /// The same certificates. A server may show one of them as its own.
    pub certificates: Arc<[CertificateDer<'static>]>,
}

impl PartialEq for Authorities {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file && self.certificates == other.certificates
    }
}

impl Eq for Authorities {}
