use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use super::certificates::Certificates;
use super::client_hello::invalid_name;
use super::peek::Peek;
use super::peer::Peer;
use super::stop::StopSignal;
use super::stream::RequestService;
use super::timeouts::Timeouts;
use super::{http1, http2};

/// TLS for connections from clients.
#[derive(Clone)]
pub struct TlsServer(TlsAcceptor);

/// Why a TLS handshake failed.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// The client did not complete it within `header_timeout`.
    #[error("it was not complete within header_timeout")]
    TimedOut,
    /// The client asked for this server name, which TLS does not allow (RFC 6066, section 3).
    #[error("the server name is no DNS name")]
    InvalidName(Vec<u8>),
    /// The client and the gateway did not agree, or the client does not speak TLS.
    #[error(transparent)]
    Tls(rustls::Error),
    /// The connection broke.
    #[error(transparent)]
    Connection(io::Error),
}

/// Largest part of a client's first message in which its server name is looked for.
const HELLO: usize = 4096;

impl TlsServer {
    /// Accepts TLS 1.2 and 1.3 with `certificates`, and offers HTTP/2 and HTTP/1.1.
    ///
    /// # Errors
    ///
    /// Returns an error if the cryptography provider does not support these versions.
    pub fn new(certificates: Arc<Certificates>) -> Result<Self, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(certificates);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Serves a connection to its end, in the protocol that the client chooses.
    ///
    /// # Errors
    ///
    /// Returns an error if the handshake fails.
    pub async fn serve<A: RequestService>(
        self,
        socket: TcpStream,
        peer: Peer,
        timeouts: Rc<Timeouts>,
        stop: Rc<StopSignal>,
        service: Rc<A>,
    ) -> Result<(), HandshakeError> {
        // A slow handshake counts as a slow head. Each step is boxed to keep this future small.
        let socket = Box::pin(self.handshake(socket, timeouts.header)).await?;
        let peer = Peer {
            secure: true,
            ..peer
        };
        // Moved before the wait: else this future would keep room for the socket too.
        let serving: Pin<Box<dyn Future<Output = ()>>> =
            if socket.get_ref().1.alpn_protocol() == Some(b"h2") {
                Box::pin(http2::serve(socket, peer, timeouts, stop, service))
            } else {
                Box::pin(http1::serve(socket, peer, timeouts, &stop, service))
            };
        serving.await;
        Ok(())
    }

    async fn handshake(
        self,
        socket: TcpStream,
        limit: Duration,
    ) -> Result<TlsStream<TcpStream>, HandshakeError> {
        let mut invalid = None;
        let accepting = async {
            socket.readable().await?;
            // rustls refuses such a name, and does not say which it was.
            invalid = invalid_name_waiting_in(&socket);
            self.0.accept(socket).await
        };
        let accepted = timeout(limit, accepting).await;
        let error = match accepted {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(error)) => error,
            Err(_elapsed) => return Err(HandshakeError::TimedOut),
        };
        let error = match error.downcast::<rustls::Error>() {
            Ok(error) => error,
            Err(error) => return Err(HandshakeError::Connection(error)),
        };
        Err(match invalid {
            Some(name) => HandshakeError::InvalidName(name),
            None => HandshakeError::Tls(error),
        })
    }
}

/// The server name in a client's first message that is not read yet, if it is not allowed.
fn invalid_name_waiting_in(socket: &TcpStream) -> Option<Vec<u8>> {
    let mut bytes = [0; HELLO];
    let count = socket.peek_now(&mut bytes).ok()?;
    invalid_name(&bytes[..count]).map(<[u8]>::to_vec)
}
