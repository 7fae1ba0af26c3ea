//! TLS to the servers of an origin.
//!
//! A session of an earlier connection can be *resumed*: a shorter handshake, in which the server
//! shows no certificate. `refused` explains certificates that one side refuses.

mod refused;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use config::tls::{self, is_expiry_near, unix_now};
use config::{Host, OriginTls};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::HandshakeKind;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::ServerName;

pub(super) use self::refused::explain_alert;
use self::refused::explain_handshake;
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// TLS to the servers of an origin.
///
/// Each server needs a certificate for its host, signed by one of the system's root certificates,
/// unless the settings say otherwise.
#[derive(Default)]
pub(super) struct Tls {
    pub(super) settings: OriginTls,
    /// Configurations with and without resumption of sessions, created for the first connection.
    configs: OnceCell<Configs>,
    /// Expiry of the certificate that a server showed last, in Unix time; 0: none was shown.
    expires: AtomicI64,
    /// Limits the handshakes that resume no session.
    full_handshakes: Throttle,
}

/// Connector that resumes sessions, and one that does not.
struct Configs {
    resuming: TlsConnector,
    full: TlsConnector,
}

impl Tls {
    pub(super) fn new(settings: OriginTls) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Encrypts a new connection to `host`.
    ///
    /// `offers_http2`: whether to offer HTTP/2, too, which the server may choose by ALPN.
    pub(super) async fn connect(
        &self,
        host: &Host,
        tcp: TcpStream,
        offers_http2: bool,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = match (&self.settings.server_name, host) {
            (Some(name), _) => name.clone(),
            (None, Host::Address(address)) => ServerName::from(*address),
            (None, Host::Name(name)) => {
                ServerName::try_from(name.clone()).map_err(io::Error::other)?
            }
        };
        // If it fails, the next connection tries again.
        let configs = self.configs.get_or_try_init(|| load(self.settings.clone()));
        let configs = configs.await?;
        let connector = if self.needs_full_handshake() {
            &configs.full
        } else {
            &configs.resuming
        };
        let mut protocols = vec![b"http/1.1".to_vec()];
        if offers_http2 {
            protocols.insert(0, b"h2".to_vec());
        }
        let connected = connector.with_alpn(protocols).connect(name, tcp).await;
        let connected = connected.map_err(|error| explain_handshake(error, &self.settings))?;
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
            && is_expiry_near(expires, unix_now())
            && self.full_handshakes.show(clock::now()).is_some()
    }
}

/// Loads the configurations, on a thread where reading the root certificates may block.
async fn load(settings: OriginTls) -> io::Result<Configs> {
    let loaded = tokio::task::spawn_blocking(move || create_configs(&settings)).await;
    loaded.map_err(io::Error::other)?
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
fn create_configs(settings: &OriginTls) -> io::Result<Configs> {
    let builder = tls::client(settings.authorities.as_ref())?;
    let mut config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(identity.chain.to_vec(), identity.key.clone_key())
            .map_err(io::Error::other)?,
    };
    let resuming = Arc::new(config.clone()).into();
    config.resumption = Resumption::disabled();
    let full = Arc::new(config).into();
    Ok(Configs { resuming, full })
}
