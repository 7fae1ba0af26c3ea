//! Certificate authorities from a file.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// Certificates of authorities from a file, or of the servers themselves.
#[derive(Clone, Debug)]
pub struct Authorities {
    /// Absolute path.
    pub file: PathBuf,
    /// Never empty.
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
