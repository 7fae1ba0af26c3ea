//! Opens sockets to a Redis: TCP, TLS or Unix.

use std::io;
use std::sync::Arc;

use config::tls::{self, Authorities, RefusalContext};
use futures_util::future::select_ok;
use redis::ConnectionAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// Connected socket of any kind.
pub(super) type Socket = Box<dyn Stream>;

/// Stream of bytes in both directions.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects. If the host has several addresses, uses the first that answers.
///
/// `authorities` sign the certificate of the server; `None`: those of the system.
pub(super) async fn open(
    address: &ConnectionAddr,
    authorities: Option<&Authorities>,
) -> io::Result<Socket> {
    match address {
        ConnectionAddr::Tcp(host, port) => Ok(Box::new(connect_tcp(host, *port).await?)),
        ConnectionAddr::TcpTls {
            insecure: false,
            host,
            port,
            ..
        } => {
            let trusted = authorities.cloned();
            // Reading the authorities of the system takes long.
            let config = tokio::task::spawn_blocking(move || tls::client(trusted.as_ref()));
            let config = config.await.map_err(io::Error::other)??;
            let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
            let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
            let socket = connect_tcp(host, *port).await?;
            let connected = connector.connect(name, socket).await;
            let context = RefusalContext {
                owner: "server",
                field: "ca of [redis]",
                ca: authorities.map(|authorities| &*authorities.file),
                pinnable: "this very certificate",
                purpose: "serverAuth",
                name_remedy: "Write one of its names in url of [redis]",
            };
            let explain = |error| context.explain(error);
            Ok(Box::new(connected.map_err(explain)?))
        }
        ConnectionAddr::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the certificate of a Redis is always verified; remove #insecure from its URL",
        )),
    }
}

/// Connects to the first address of a host that answers.
async fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
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
