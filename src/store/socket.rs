//! Opens the sockets to a Redis.

use std::io;
use std::sync::Arc;

use futures_util::future::select_ok;
use redis::ConnectionAddr;
use rustls_native_certs::load_native_certs;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A connected socket of any kind.
pub(super) type Socket = Box<dyn Stream>;

/// Bytes in both directions.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects. Of several addresses of a host, the first that answers.
pub(super) async fn open(address: &ConnectionAddr) -> io::Result<Socket> {
    match address {
        ConnectionAddr::Tcp(host, port) => Ok(Box::new(tcp(host, *port).await?)),
        ConnectionAddr::TcpTls {
            insecure: false,
            host,
            port,
            ..
        } => {
            let config = tokio::task::spawn_blocking(config);
            let config = config.await.map_err(io::Error::other)??;
            let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
            let socket = tcp(host, *port).await?;
            Ok(Box::new(
                TlsConnector::from(config).connect(name, socket).await?,
            ))
        }
        ConnectionAddr::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the certificate of a Redis is always verified; remove #insecure from its URL",
        )),
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses = lookup_host((host, port)).await?;
    let connecting: Vec<_> = addresses
        .map(|address| Box::pin(TcpStream::connect(address)))
        .collect();
    if connecting.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the host has no address",
        ));
    }
    select_ok(connecting).await.map(|(socket, _)| socket)
}

/// TLS with the system's roots, or those in `SSL_CERT_FILE` and `SSL_CERT_DIR`.
fn config() -> io::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    let found = load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if let Some(error) = found.errors.into_iter().next().filter(|_| roots.is_empty()) {
        return Err(io::Error::other(error));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
