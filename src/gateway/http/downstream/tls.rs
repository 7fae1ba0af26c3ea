//! TLS server: handshakes with clients, and the choice of HTTP/1 or HTTP/2.
//!
//! `certificates` has the server's certificates; `client_trust` verifies the certificates of
//! clients.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use config::ClientAuth;
use config::tls::RefusalContext;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use super::certificate_facts::ClientCertificate;
use super::certificates::{Certificates, follow_files};
use super::client_trust::TrustFiles;
use super::peer::Peer;
use super::stop::StopSignal;
use super::stream::RequestService;
use super::timeouts::Timeouts;
use super::{http1, http2};
use crate::observe::certificates::{CertificateOf, note_problem};
use crate::observe::metrics::count_handshake;

/// TLS for connections from clients.
#[derive(Clone)]
pub struct TlsServer(Arc<Inner>);

/// Shared state of all clones of a [`TlsServer`].
struct Inner {
    certificates: Arc<Certificates>,
    /// `None` if no client certificate is requested.
    clients: Option<Arc<Clients>>,
    /// Configuration of new handshakes. Replaced when the files of `clients` change.
    ///
    /// A new configuration has no sessions: a client cannot resume with a certificate that is no
    /// longer accepted.
    config: RwLock<Arc<ServerConfig>>,
}

/// Verification of client certificates.
struct Clients {
    auth: ClientAuth,
    /// Contents of the files in use.
    in_use: Mutex<TrustFiles>,
}

/// Reason why a TLS handshake failed.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// The client did not complete the handshake within `header_timeout`.
    #[error("it was not complete within header_timeout")]
    TimedOut,
    /// The client presented no certificate.
    #[error(
        "the client shows no certificate. Give it one of an authority in client_ca, or set client_auth = \"optional\""
    )]
    NoCertificate,
    /// The client's certificate is not accepted. The text says why, and what to do.
    #[error("{0}")]
    Certificate(String),
    /// Client and gateway could not agree, or the client does not speak TLS.
    #[error(transparent)]
    Tls(rustls::Error),
    /// The connection failed.
    #[error(transparent)]
    Connection(io::Error),
}

impl TlsServer {
    /// Accepts TLS 1.2 and 1.3 with `certificates`, and offers HTTP/2 and HTTP/1.1.
    ///
    /// `clients`: how client certificates are verified; `None`: no certificate is requested.
    ///
    /// # Errors
    ///
    /// Returns an error if the cryptography provider does not support these versions, or the files
    /// of `clients` cannot be used.
    pub fn new(certificates: Arc<Certificates>, clients: Option<ClientAuth>) -> io::Result<Self> {
        let (mut verifier, mut verification) = (None, None);
        if let Some(auth) = clients {
            let files = TrustFiles::read(&auth)?;
            verifier = Some(files.verifier(&auth)?);
            files.publish_validity(&auth);
            let in_use = Mutex::new(files);
            verification = Some(Arc::new(Clients { auth, in_use }));
        }
        let config = build_config(&certificates, verifier)?;
        Ok(Self(Arc::new(Inner {
            certificates,
            clients: verification,
            config: RwLock::new(Arc::new(config)),
        })))
    }

    /// Watches the files of `clients` and loads changed ones. Returns at once if there are none.
    pub async fn follow(self) {
        if let Some(clients) = self.0.clients.clone() {
            let consequence = "the current authorities and revocation lists stay in use";
            follow_files(consequence, move || self.renew(&clients)).await;
        }
    }

    /// Loads the files of `clients` if they changed, and publishes a problem.
    fn renew(&self, clients: &Clients) -> io::Result<()> {
        let renewed = self.renew_files(clients);
        let problem = renewed.as_ref().err().map(ToString::to_string);
        let file = clients.auth.ca.display().to_string();
        note_problem(CertificateOf::ClientCa, &file, problem.as_deref());
        renewed
    }

    /// Reads the files, and replaces the configuration of handshakes if they changed.
    fn renew_files(&self, Clients { auth, in_use }: &Clients) -> io::Result<()> {
        let files = TrustFiles::read(auth)?;
        let mut in_use = in_use.lock().unwrap_or_else(PoisonError::into_inner);
        if *in_use == files {
            return Ok(());
        }
        let verifier = files.verifier(auth)?;
        let config = build_config(&self.0.certificates, Some(verifier))?;
        let current = self.0.config.write();
        *current.unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        files.publish_validity(auth);
        *in_use = files;
        tracing::info!(client_ca = %auth.ca.display(), "client authorities reloaded: new handshakes use them");
        Ok(())
    }

    /// Returns the reason for a failed handshake, if the client's certificate caused it.
    fn refusal(&self, error: &rustls::Error) -> Option<HandshakeError> {
        let auth = &self.0.clients.as_ref()?.auth;
        let refused = RefusalContext {
            owner: "client",
            field: "client_ca",
            ca: Some(&auth.ca),
            pinnable: "this very certificate if it is self-signed",
            purpose: "clientAuth",
            name_remedy: "",
        };
        match error {
            rustls::Error::InvalidCertificate(why) => {
                refused.why(why).map(HandshakeError::Certificate)
            }
            rustls::Error::NoCertificatesPresented => Some(HandshakeError::NoCertificate),
            _ => None,
        }
    }

    /// Returns an acceptor with the current configuration.
    fn acceptor(&self) -> TlsAcceptor {
        let config = self.0.config.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&config))
    }

    /// Serves a connection to its end, in the protocol that the client chooses.
    ///
    /// # Errors
    ///
    /// Returns an error if the handshake fails.
    pub async fn serve<A: RequestService>(
        self,
        socket: TcpStream,
        mut peer: Peer,
        timeouts: Rc<Timeouts>,
        stop: Rc<StopSignal>,
        service: Rc<A>,
    ) -> Result<(), HandshakeError> {
        // A handshake has the timeout of a head. Each step is boxed to keep this future small.
        let socket = Box::pin(self.handshake(socket, timeouts.header)).await?;
        count_handshake();
        peer.is_encrypted = true;
        let (_, session) = socket.get_ref();
        if let Some(first) = session.peer_certificates().and_then(<[_]>::first) {
            peer.set_certificate(ClientCertificate::of(first));
        }
        let is_http2 = session.alpn_protocol() == Some(b"h2");
        // The socket moves into the box before the await: otherwise this future would keep space
        // for it, too.
        let serving: Pin<Box<dyn Future<Output = ()>>> = if is_http2 {
            // No byte was read from the socket yet.
            let first = Vec::new();
            Box::pin(http2::serve(first, socket, peer, timeouts, stop, service))
        } else {
            Box::pin(http1::serve(socket, peer, timeouts, &stop, service))
        };
        serving.await;
        Ok(())
    }

    /// Performs the handshake, at most for `limit`.
    async fn handshake(
        self,
        socket: TcpStream,
        limit: Duration,
    ) -> Result<TlsStream<TcpStream>, HandshakeError> {
        let accepted = timeout(limit, self.acceptor().accept(socket)).await;
        let error = match accepted.map_err(|_elapsed| HandshakeError::TimedOut)? {
            Ok(socket) => return Ok(socket),
            Err(error) => error,
        };
        let error = error.downcast::<rustls::Error>();
        let error = error.map_err(HandshakeError::Connection)?;
        let refusal = self.refusal(&error);
        Err(refusal.unwrap_or(HandshakeError::Tls(error)))
    }
}

/// Builds the configuration of handshakes. `clients`: verifier of client certificates.
fn build_config(
    certificates: &Arc<Certificates>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> io::Result<ServerConfig> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(verifier),
    };
    let mut config = builder.with_cert_resolver(Arc::<Certificates>::clone(certificates));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
