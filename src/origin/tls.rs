//! TLS to the servers of an origin.

mod refused;
mod verifier;

use std::io;
use std::sync::Arc;

use rustls_native_certs::load_native_certs;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::config::{Host, OriginTls};
use verifier::Verifier;

/// TLS to the servers.
///
/// Each server needs a certificate for its host, signed by one of the system's roots, unless the
/// settings say otherwise.
#[derive(Debug, Default)]
pub(super) struct Tls {
    settings: OriginTls,
    /// Made for the first connection.
    configs: OnceCell<Configs>,
}

/// The same settings with two lists of protocols.
#[derive(Debug)]
struct Configs {
    http1: Arc<ClientConfig>,
    any: Arc<ClientConfig>,
}

impl Tls {
    pub(super) fn new(settings: OriginTls) -> Self {
        Self {
            settings,
            configs: OnceCell::new(),
        }
    }

    pub(super) fn settings(&self) -> &OriginTls {
        &self.settings
    }

    /// Encrypts a new connection to `host`.
    ///
    /// `http2`: offers HTTP/2, too, which the server may choose by ALPN.
    pub(super) async fn connect(
        &self,
        host: &Host,
        tcp: TcpStream,
        http2: bool,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = match (&self.settings.server_name, host) {
            (Some(name), _) => name.clone(),
            (None, Host::Address(address)) => ServerName::from(*address),
            (None, Host::Name(name)) => {
                ServerName::try_from(name.clone()).map_err(io::Error::other)?
            }
        };
        let configs = self.configs.get_or_try_init(|| self.load()).await?;
        let config = if http2 { &configs.any } else { &configs.http1 };
        let connecting = TlsConnector::from(Arc::clone(config)).connect(name, tcp);
        let connected = connecting.await;
        connected.map_err(|error| refused::explained(error, &self.settings))
    }

    /// Reads the system's roots, on a thread where this may block, if they are needed.
    ///
    /// If it fails, the next connection tries again.
    async fn load(&self) -> io::Result<Configs> {
        let settings = self.settings.clone();
        tokio::task::spawn_blocking(move || config(&settings))
            .await
            .map_err(io::Error::other)?
    }
}

/// Returns the system's roots, or those in `SSL_CERT_FILE` and `SSL_CERT_DIR`.
fn roots() -> io::Result<RootCertStore> {
    let found = load_native_certs();
    let mut roots = RootCertStore::empty();
    let (_, unfit) = roots.add_parsable_certificates(found.certs);
    let errors: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
    let errors = errors.join("; ");
    if roots.is_empty() {
        return Err(io::Error::other(format!(
            "no root certificates to verify servers with (from the system or SSL_CERT_FILE): {}",
            if errors.is_empty() {
                "none found"
            } else {
                &errors
            }
        )));
    }
    if unfit > 0 || !errors.is_empty() {
        tracing::warn!(
            unfit,
            errors,
            "some root certificates are left out; servers are verified with the others"
        );
    }
    Ok(roots)
}

fn config(settings: &OriginTls) -> io::Result<Configs> {
    let (roots, pinned) = match &settings.authorities {
        None => (Arc::new(roots()?), Arc::default()),
        Some(it) => (Arc::clone(&it.roots), Arc::clone(&it.certificates)),
    };
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new(roots, pinned, &provider).map_err(io::Error::other)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(identity.chain.to_vec(), identity.key.clone_key())
            .map_err(io::Error::other)?,
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let http1 = Arc::new(config.clone());
    config.alpn_protocols.insert(0, b"h2".to_vec());
    let any = Arc::new(config);
    Ok(Configs { http1, any })
}
