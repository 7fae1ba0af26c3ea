use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use super::answering::Answering;
use super::certificates::Certificates;
use super::patience::Patience;
use super::peer::Peer;
use super::socket::Socket;
use super::{http1, http2};

/// Encryption on the clients' side.
#[derive(Clone)]
pub struct Encryption(TlsAcceptor);

impl Encryption {
    /// TLS 1.2 and 1.3 with `certificates`; clients choose between HTTP/2 and HTTP/1.1.
    ///
    /// # Errors
    ///
    /// Where the cryptography at hand cannot do TLS.
    pub fn new(certificates: Arc<Certificates>) -> Result<Self, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(certificates);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Serves a connection to its end, in the protocol that its client chooses.
    pub async fn serve<A: Answering>(
        &self,
        socket: TcpStream,
        peer: Peer,
        patience: Patience,
        stopping: watch::Receiver<bool>,
        answering: Rc<A>,
    ) {
        // Whoever is slow to greet is as slow a client as one with a slow head.
        let Ok(Ok(socket)) = timeout(patience.head, self.0.accept(socket)).await else {
            return;
        };
        let peer = Peer {
            secure: true,
            ..peer
        };
        if socket.get_ref().1.alpn_protocol() == Some(b"h2") {
            http2::serve(socket, peer, patience, stopping, answering).await;
        } else {
            http1::serve(socket, peer, patience, stopping, answering).await;
        }
    }
}

impl Socket for TlsStream<TcpStream> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.get_ref().0.as_fd()
    }
}
