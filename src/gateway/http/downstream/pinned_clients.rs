//! Verifies a client certificate: by its chain, or because `client_ca` contains this certificate.
//!
//! `client_ca` names the file with trusted certificates, which `client_trust` reads. `config::tls`
//! does the same for certificates of origin servers.

use std::sync::Arc;

use config::tls::{is_self_issued, verify_validity};
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// Verifies chains as rustls does, and accepts pinned certificates without a chain.
///
/// A certificate is pinned if it is self-signed and `client_ca` contains it. The client proves with
/// the signature of the handshake that it has the key.
///
/// `CA:TRUE` (set by `openssl req -x509`) does not matter for a pinned certificate. Its validity
/// period is checked. Revocation lists do not apply: to reject it, remove it from `client_ca`.
#[derive(Debug)]
pub(super) struct PinnedClients {
    /// Verifies a certificate by its chain, up to an authority in `client_ca`.
    chain_verifier: Arc<dyn ClientCertVerifier>,
    /// Self-signed certificates in `client_ca`.
    pinned: Vec<CertificateDer<'static>>,
}

impl PinnedClients {
    /// Creates the verifier. `ca_certs`: the certificates in `client_ca`.
    pub(super) fn new(
        chain_verifier: Arc<dyn ClientCertVerifier>,
        mut ca_certs: Vec<CertificateDer<'static>>,
    ) -> Self {
        ca_certs.retain(|it| is_self_issued(it));
        Self {
            chain_verifier,
            pinned: ca_certs,
        }
    }
}

impl ClientCertVerifier for PinnedClients {
    fn offer_client_auth(&self) -> bool {
        self.chain_verifier.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.chain_verifier.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain_verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if self.pinned.iter().any(|it| it == end_entity) {
            verify_validity(end_entity, now)?;
            return Ok(ClientCertVerified::assertion());
        }
        (self.chain_verifier).verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        (self.chain_verifier).verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        (self.chain_verifier).verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain_verifier.supported_verify_schemes()
    }
}
