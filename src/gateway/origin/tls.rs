//! TLS to the servers of an origin.

mod refused;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use config::tls::{self, is_nearly_soon, unix_now};
use config::{Host, OriginTls};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, HandshakeKind};

use self::refused::explained;
pub(super) use self::refused::explained_alert;
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// TLS to the servers of an origin.
///
/// Each server needs a certificate for its host, signed by one of the system's root certificates,
/// unless the settings say otherwise.
#[derive(Debug, Default)]
pub(super) struct Tls {
    settings: OriginTls,
    /// Configurations, created for the first connection.
    configs: OnceCell<Configs>,
    /// Expiry of the certificate that a server showed last, in Unix time; 0: none was shown.
    expires: AtomicI64,
    /// Limits the handshakes that resume no session.
    full_handshakes: Throttle,
}

/// Configurations with and without the resumption of sessions.
#[derive(Debug)]
struct Configs {
    resuming: Protocols,
    /// Configurations that resume no session.
    full: Protocols,
}

/// Configurations with HTTP/1 alone, and with both versions.
#[derive(Debug)]
struct Protocols {
    http1: Arc<ClientConfig>,
    any: Arc<ClientConfig>,
}

impl Tls {
    pub(super) fn new(settings: OriginTls) -> Self {
        Self {
            settings,
            configs: OnceCell::new(),
            expires: AtomicI64::new(0),
            full_handshakes: Throttle::new(),
        }
    }

    pub(super) fn settings(&self) -> &OriginTls {
        &self.settings
    }

    /// Encrypts a new connection to `host`.
    ///
    /// `http2`: whether to offer HTTP/2, too, which the server may choose by ALPN.
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
        let protocols = if self.needs_full_handshake() {
            &configs.full
        } else {
            &configs.resuming
        };
        let config = if http2 {
            &protocols.any
        } else {
            &protocols.http1
        };
        let connecting = TlsConnector::from(Arc::clone(config)).connect(name, tcp);
        let connected = connecting.await;
        let connected = connected.map_err(|error| explained(error, &self.settings))?;
        if let Some(expires) = shown_expiry(&connected) {
            self.expires.store(expires, Ordering::Relaxed);
        }
        Ok(connected)
    }

    /// Returns whether the next connection must resume no session, to see a renewed certificate.
    ///
    /// A resumed session has the certificate of its first connection. So while that certificate
    /// expires soon, one connection a second resumes no session.
    fn needs_full_handshake(&self) -> bool {
        let expires = self.expires.load(Ordering::Relaxed);
        expires != 0
            && is_nearly_soon(expires, unix_now())
            && self.full_handshakes.show(clock::now()).is_some()
    }

    /// Loads the configurations, on a thread where reading the root certificates may block.
    ///
    /// If it fails, the next connection tries again.
    async fn load(&self) -> io::Result<Configs> {
        let settings = self.settings.clone();
        tokio::task::spawn_blocking(move || config(&settings))
            .await
            .map_err(io::Error::other)?
    }
}

/// Returns the expiry of the certificate that the server has shown, in Unix time.
///
/// `None`: it has shown none, because a session was resumed.
pub(super) fn shown_expiry(stream: &TlsStream<TcpStream>) -> Option<i64> {
    let tls = stream.get_ref().1;
    if tls.handshake_kind() == Some(HandshakeKind::Resumed) {
        return None;
    }
    let shown = tls.peer_certificates()?.first()?;
    tls::validity(shown).map(|it| it.to)
}

/// Creates the configurations. Reads the root certificates, so it may block.
fn config(settings: &OriginTls) -> io::Result<Configs> {
    let builder = tls::client(settings.authorities.as_ref())?;
    let mut config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(identity.chain.to_vec(), identity.key.clone_key())
            .map_err(io::Error::other)?,
    };
    let resuming = protocols(config.clone());
    config.resumption = Resumption::disabled();
    let full = protocols(config);
    Ok(Configs { resuming, full })
}

/// Returns the configuration with each list of protocols.
fn protocols(mut config: ClientConfig) -> Protocols {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let http1 = Arc::new(config.clone());
    config.alpn_protocols.insert(0, b"h2".to_vec());
    let any = Arc::new(config);
    Protocols { http1, any }
}
