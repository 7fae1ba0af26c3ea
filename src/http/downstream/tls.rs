use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, ServerConfig};

use super::certificates::Certificates;

use super::peer::Peer;
use super::stop::StopSignal;
use super::stream::RequestService;
use super::timeouts::Timeouts;
use super::{http1, http2};

/// TLS for connections from clients.
#[derive(Clone)]
pub struct TlsServer(TlsAcceptor);

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
    pub async fn serve<A: RequestService>(
        self,
        socket: TcpStream,
        peer: Peer,
        timeouts: Timeouts,
        stop: Rc<StopSignal>,
        service: Rc<A>,
    ) {
        // A slow handshake counts as a slow head. Each step is boxed to keep this future small.
        let handshake = Box::pin(timeout(timeouts.header, self.0.accept(socket)));
        let Ok(Ok(socket)) = handshake.await else {
            return;
        };
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
    }
}
