//! Verifies a client certificate: by its chain, or because `client_ca` contains this certificate.
//!
//! `client_trust` reads the files. The same for servers is in `config::tls`.

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
    /// Verifier of chains.
    chains: Arc<dyn ClientCertVerifier>,
    /// Self-signed certificates in `client_ca`.
    pinned: Vec<CertificateDer<'static>>,
}

impl PinnedClients {
    /// Creates the verifier. `listed`: the certificates in `client_ca`.
    pub(super) fn new(
        chains: Arc<dyn ClientCertVerifier>,
        mut listed: Vec<CertificateDer<'static>>,
    ) -> Self {
        listed.retain(|it| is_self_issued(it));
        Self {
            chains,
            pinned: listed,
        }
    }
}

impl ClientCertVerifier for PinnedClients {
    fn offer_client_auth(&self) -> bool {
        self.chains.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.chains.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chains.root_hint_subjects()
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
        (self.chains).verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        (self.chains).verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        (self.chains).verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}
