//! Certificates, and clients that inspect them.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use crate::support::{Gateway, Site, eventually};

/// Writes `NAME.pem` and `NAME.key` for `names` into `folder`, and returns the certificate.
pub fn write_pair(folder: &Path, name: &str, names: &[&str]) -> CertificateDer<'static> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(names).expect("a certificate");
    fs::write(folder.join(format!("{name}.pem")), cert.pem()).expect("a file");
    fs::write(
        folder.join(format!("{name}.key")),
        signing_key.serialize_pem(),
    )
    .expect("a file");
    cert.der().clone()
}

/// Starts the program with a certificate for `a.test`; `server` is more of `[server]`, `rest` what comes after it.
pub fn gateway(server: &str, rest: &str) -> Gateway {
    let site = Site::new();
    write_pair(site.folder(), "a", &["a.test"]);
    site.write(&format!(
        "{server}\n[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n{rest}"
    ));
    started(site)
}

pub fn started(site: Site) -> Gateway {
    let gateway = Gateway::run(site);
    eventually("the gateway is ready", || {
        gateway
            .admin("/readyz")
            .is_some_and(|answer| answer.status == 200)
    });
    gateway
}

/// Accepts any certificate, and remembers it.
#[derive(Debug)]
struct Witness {
    provider: CryptoProvider,
    seen: Mutex<Option<CertificateDer<'static>>>,
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        cert: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.seen.lock().expect("no panic") = Some(cert.clone().into_owned());
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            cert,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            cert,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// A connection for `name` that offers `protocols`, and the certificate that was shown.
pub async fn connect(
    gateway: &Gateway,
    name: &str,
    protocols: &[&str],
) -> (TlsStream<TcpStream>, CertificateDer<'static>) {
    let witness = Arc::new(Witness {
        provider: ring::default_provider(),
        seen: Mutex::default(),
    });
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&witness) as Arc<dyn ServerCertVerifier>)
        .with_no_client_auth();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    let tcp = TcpStream::connect(gateway.address())
        .await
        .expect("a connection");
    tcp.set_nodelay(true).expect("no delay");
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let tls = TlsConnector::from(Arc::new(config))
        .connect(name, tcp)
        .await;
    let tls = tls.expect("a handshake");
    let seen = witness.seen.lock().expect("no panic").clone();
    (tls, seen.expect("a certificate"))
}
