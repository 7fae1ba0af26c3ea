//! TLS on the side of the clients, and the certificate of all proxies.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::client::connect_plain;

/// The name in the certificate.
const NAME: &str = "bench.test";

/// A certificate with its key, made once for each run.
#[derive(Debug)]
pub struct Identity {
    /// The certificate as PEM.
    pub certificate: String,
    /// The key as PEM.
    pub key: String,
    der: CertificateDer<'static>,
}

/// A certificate with ECDSA on P-256, as the usual authorities issue it.
pub fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
        Identity {
            certificate: cert.pem(),
            key: signing_key.serialize_pem(),
            der: cert.der().clone(),
        }
    })
}

/// The protocol that a client requests by ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    Http1,
    Http2,
}

/// Connects with TLS 1.3 and a full handshake. Fails if the server does not support the protocol.
pub async fn connect(to: SocketAddr, alpn: Alpn) -> io::Result<TlsStream<TcpStream>> {
    static HTTP1: OnceLock<TlsConnector> = OnceLock::new();
    static HTTP2: OnceLock<TlsConnector> = OnceLock::new();
    let (connector, name): (_, &[u8]) = match alpn {
        Alpn::Http1 => (&HTTP1, b"http/1.1"),
        Alpn::Http2 => (&HTTP2, b"h2"),
    };
    let connector = connector.get_or_init(|| connector_for(name).expect("TLS 1.3"));
    let server = ServerName::try_from(NAME).expect("a name");
    let stream = connector.connect(server, connect_plain(to).await?).await?;
    if stream.get_ref().1.alpn_protocol() == Some(name) {
        Ok(stream)
    } else {
        Err(io::Error::other("the server speaks another protocol"))
    }
}

fn connector_for(alpn: &[u8]) -> Result<TlsConnector, rustls::Error> {
    // A single cipher, so that all proxies do the same work.
    let provider = CryptoProvider {
        cipher_suites: vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256],
        ..ring::default_provider()
    };
    let mut roots = RootCertStore::empty();
    roots.add(identity().der.clone())?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    // A resumed connection sends no certificate.
    config.resumption = Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}
