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

use crate::config::Host;

/// TLS to the servers.
///
/// Each server needs a certificate for its host, signed by one of the system's roots.
#[derive(Debug, Default)]
pub(super) struct Tls(OnceCell<Configs>);

/// The same settings with two lists of protocols.
#[derive(Debug)]
struct Configs {
    http1: Arc<ClientConfig>,
    any: Arc<ClientConfig>,
}

impl Tls {
    /// Encrypts a new connection to `host`.
    ///
    /// `http2`: offers HTTP/2, too, which the server may choose by ALPN.
    pub(super) async fn connect(
        &self,
        host: &Host,
        tcp: TcpStream,
        http2: bool,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = match host {
            Host::Address(address) => ServerName::from(*address),
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(io::Error::other)?,
        };
        let configs = self.0.get_or_try_init(load).await?;
        let config = if http2 { &configs.any } else { &configs.http1 };
        TlsConnector::from(Arc::clone(config))
            .connect(name, tcp)
            .await
    }
}

/// Reads the roots, on a thread where this may block.
///
/// If it fails, the next connection tries again.
async fn load() -> io::Result<Configs> {
    tokio::task::spawn_blocking(|| config(roots()?))
        .await
        .map_err(io::Error::other)?
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

fn config(roots: RootCertStore) -> io::Result<Configs> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let http1 = Arc::new(config.clone());
    config.alpn_protocols.insert(0, b"h2".to_vec());
    let any = Arc::new(config);
    Ok(Configs { http1, any })
}
