//! Trust in client certificates: authorities and revocation lists, reloaded when the files change.
//!
//! `client_ca` names the file with certificates of authorities (CA), `client_crl` the file with
//! revocation lists (CRL). `pinned_clients` verifies the certificates; `tls` uses both.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use config::tls::{Validity, validity};
use config::{ClientAuth, read_regular};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};

use super::certificates::TlsFileError;
use super::pinned_clients::PinnedClients;
use crate::observe::certificates::{CertificateOf, note_certificate};

/// Maximum size of a file with authorities or revocation lists, in bytes.
const MAX_FILE_SIZE: u64 = 32 << 20;

/// Contents of the files that decide which client certificates are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TrustFiles {
    ca: Vec<u8>,
    crl: Option<Vec<u8>>,
}

impl TrustFiles {
    /// Reads the files.
    pub(super) fn read(auth: &ClientAuth) -> Result<Self, TlsFileError> {
        let read = |file: &Path| read_regular(file, MAX_FILE_SIZE);
        let read_crl = |crl: &Path| read(crl).map_err(|error| wrong_crl(crl, &error));
        Ok(Self {
            ca: read(&auth.ca).map_err(|error| wrong_ca(auth, &error))?,
            crl: auth.crl.as_deref().map(read_crl).transpose()?,
        })
    }

    /// Returns the validity period of the authority that expires first, if it can be read.
    fn validity(&self) -> Option<Validity> {
        let certificates = CertificateDer::pem_slice_iter(&self.ca).filter_map(Result::ok);
        let validities = certificates.filter_map(|certificate| validity(&certificate));
        validities.min_by_key(|validity| validity.to)
    }

    /// Publishes the validity of the authorities to the headline, the metrics and the log.
    pub(super) fn publish_validity(&self, auth: &ClientAuth) {
        if let Some(validity) = self.validity() {
            let file = auth.ca.display().to_string();
            note_certificate(CertificateOf::ClientCa, &file, validity);
        }
    }

    /// Builds the verifier of client certificates from these files.
    ///
    /// With revocation lists, each authority of a chain needs a list, and an expired list rejects
    /// all certificates. nginx does the same.
    pub(super) fn verifier(
        &self,
        auth: &ClientAuth,
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsFileError> {
        let (mut roots, mut ca_certs) = (RootCertStore::empty(), Vec::new());
        for certificate in CertificateDer::pem_slice_iter(&self.ca) {
            let certificate = certificate.map_err(|error| wrong_ca(auth, &error))?;
            let added = roots.add(certificate.clone());
            added.map_err(|error| wrong_ca(auth, &error))?;
            ca_certs.push(certificate);
        }
        if roots.is_empty() {
            return Err(wrong_ca(auth, &"no certificate in PEM"));
        }
        let provider = Arc::new(ring::default_provider());
        let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        if let (Some(file), Some(crl)) = (&auth.crl, &self.crl) {
            let lists: Result<Vec<_>, pem::Error> =
                CertificateRevocationListDer::pem_slice_iter(crl).collect();
            let lists = lists.map_err(|error| wrong_crl(file, &error))?;
            if lists.is_empty() {
                return Err(wrong_crl(file, &"no revocation list in PEM"));
            }
            builder = builder.with_crls(lists).enforce_revocation_expiration();
        }
        if !auth.is_required {
            builder = builder.allow_unauthenticated();
        }
        let chain_verifier = builder.build().map_err(|error| match (&error, &auth.crl) {
            (VerifierBuilderError::InvalidCrl(_), Some(file)) => wrong_crl(file, &error),
            _ => wrong_ca(auth, &error),
        })?;
        Ok(Arc::new(PinnedClients::new(chain_verifier, ca_certs)))
    }
}

/// Checks the files for client certificates.
///
/// Returns the validity period of the authority that expires first.
///
/// # Errors
///
/// Returns an error if a file cannot be read or has the wrong contents.
pub fn check_client_trust(auth: &ClientAuth) -> Result<Option<Validity>, TlsFileError> {
    let files = TrustFiles::read(auth)?;
    files.verifier(auth)?;
    Ok(files.validity())
}

/// Builds the error of the file with authorities, `client_ca`.
fn wrong_ca(auth: &ClientAuth, why: &dyn Display) -> TlsFileError {
    TlsFileError::new(&auth.ca, why, false)
}

/// Builds the error of the file with revocation lists, `client_crl`.
fn wrong_crl(file: &Path, why: &dyn Display) -> TlsFileError {
    TlsFileError::new(file, why, true)
}
