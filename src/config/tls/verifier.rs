//! Verifies the certificate of a server: by its chain to an authority, or because it is pinned.
//!
//! A pinned certificate is in the configured file itself, so it is trusted without an authority.

use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{
    VerifierBuilderError, WebPkiServerVerifier, verify_server_name,
};
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::verify_validity;

/// Verifies chains as rustls does, and accepts pinned certificates without a chain.
///
/// A server that presents a pinned certificate proves with its signature of the handshake that it
/// has the key. Then neither the issuer of the certificate matters, nor whether it claims to be an
/// authority (`CA:TRUE`), as a certificate of `openssl req -x509` does. Its name and its validity
/// are still checked.
#[derive(Debug)]
pub(super) struct Verifier {
    /// Verifier of the TLS library.
    chains: Arc<WebPkiServerVerifier>,
    pinned: Arc<[CertificateDer<'static>]>,
}

impl Verifier {
    /// Makes a verifier. `roots`: authorities of chains; must not be empty.
    pub(super) fn new(
        roots: Arc<RootCertStore>,
        pinned: Arc<[CertificateDer<'static>]>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let builder = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider));
        let chains = builder.build()?;
        Ok(Self { chains, pinned })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.pinned.iter().any(|pinned| pinned == end_entity) {
            verify_validity(end_entity, now)?;
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        (self.chains).verify_server_cert(end_entity, intermediates, name, ocsp, now)
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
