//! TLS to the servers of an origin.

mod refused;

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::config::{Host, OriginTls};
use crate::tls;

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

fn config(settings: &OriginTls) -> io::Result<Configs> {
    let builder = tls::client(settings.authorities.as_ref())?;
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
