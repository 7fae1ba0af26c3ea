//! TLS certificates, and clients that inspect them.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime,
};
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme,
};

use crate::support::{Answer, Gateway, Site, http2};

/// Writes `NAME.pem` and `NAME.key` for `names` into `folder`. Returns the certificate.
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

/// Returns TLS settings of a server with this certificate.
pub fn server_config(certificate: CertificateDer<'static>, key: &KeyPair) -> Arc<ServerConfig> {
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into());
    Arc::new(config.expect("a pair"))
}

/// Starts the program with a certificate for `a.test`.
///
/// `server`: further fields of `[server]`. `rest`: the text after them.
pub fn gateway(server: &str, rest: &str) -> Gateway {
    let site = Site::new();
    write_pair(site.folder(), "a", &["a.test"]);
    site.write(&format!(
        "{server}\n[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n{rest}"
    ));
    Gateway::start_at(site)
}

/// Accepts any certificate, and records it.
#[derive(Debug)]
struct Witness {
    provider: CryptoProvider,
    schemes: Vec<SignatureScheme>,
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
        self.schemes.clone()
    }
}

/// Connects for `name`, offering `protocols`. Also returns the certificate of the server.
pub async fn connect(
    gateway: &Gateway,
    name: &str,
    protocols: &[&str],
) -> (TlsStream<TcpStream>, CertificateDer<'static>) {
    let connected = connect_as(None, gateway.address(), name, protocols).await;
    connected.expect("a handshake")
}

/// Returns the certificate for `name` that a client gets if it accepts only `scheme`.
///
/// # Errors
///
/// Returns an error if the handshake fails.
pub fn certificate_for(
    gateway: &Gateway,
    name: &str,
    scheme: SignatureScheme,
) -> io::Result<CertificateDer<'static>> {
    http2::block_on(async {
        let connected = connect_with(vec![scheme], None, gateway.address(), name, &[]).await;
        connected.map(|(_, certificate)| certificate)
    })
}

/// Connects to any address, with a client certificate if one is given.
pub async fn connect_as(
    identity: Option<&Identity>,
    to: SocketAddr,
    name: &str,
    protocols: &[&str],
) -> io::Result<(TlsStream<TcpStream>, CertificateDer<'static>)> {
    let all = ring::default_provider().signature_verification_algorithms;
    connect_with(all.supported_schemes(), identity, to, name, protocols).await
}

async fn connect_with(
    schemes: Vec<SignatureScheme>,
    identity: Option<&Identity>,
    to: SocketAddr,
    name: &str,
    protocols: &[&str],
) -> io::Result<(TlsStream<TcpStream>, CertificateDer<'static>)> {
    let witness = Arc::new(Witness {
        provider: ring::default_provider(),
        schemes,
        seen: Mutex::default(),
    });
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&witness) as Arc<dyn ServerCertVerifier>);
    let mut config = match identity {
        Some(Identity { certificate, key }) => config
            .with_client_auth_cert(vec![certificate.clone()], key.clone_key())
            .expect("a certificate and its key"),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    let tcp = TcpStream::connect(to).await?;
    tcp.set_nodelay(true).expect("no delay");
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let tls = TlsConnector::from(Arc::new(config))
        .connect(name, tcp)
        .await?;
    let seen = witness.seen.lock().expect("no panic").clone();
    Ok((tls, seen.expect("a certificate")))
}

/// A client's certificate and its key.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads `NAME.pem` and `NAME.key`.
    pub fn read(folder: &Path, name: &str) -> Self {
        let certificate = CertificateDer::from_pem_file(folder.join(format!("{name}.pem")));
        let key = PrivateKeyDer::from_pem_file(folder.join(format!("{name}.key")));
        Self {
            certificate: certificate.expect("a certificate"),
            key: key.expect("a key"),
        }
    }
}

/// Sends a GET of `/` to an address, without a server name. `protocol`: `h2` or `http/1.1`.
///
/// # Errors
///
/// Returns an error if there is no connection or no response.
pub fn fetch(to: SocketAddr, protocol: &str, identity: Option<&Identity>) -> io::Result<Answer> {
    http2::block_on(async {
        let name = to.ip().to_string();
        let (mut tls, _) = connect_as(identity, to, &name, &[protocol]).await?;
        let agreed = tls.get_ref().1.alpn_protocol();
        assert_eq!(agreed, Some(protocol.as_bytes()));
        if protocol == "h2" {
            let request = http2::request("GET", &format!("https://{to}/"), &[]);
            let response = http2::exchange(tls, request, b"").await;
            return response.map(|it| it.answer).map_err(io::Error::other);
        }
        let request = format!("GET / HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n");
        tls.write_all(request.as_bytes()).await?;
        let mut came = Vec::new();
        tls.read_to_end(&mut came).await?;
        Answer::read(&mut &came[..])
    })
}
