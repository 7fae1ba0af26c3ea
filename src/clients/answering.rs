use std::cell::{OnceCell, RefCell};
use std::error::Error;
use std::pin::Pin;

use bytes::Bytes;
use http::HeaderValue;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};

use super::peer::Peer;

/// Whoever answers the requests of a connection.
pub trait Answering: 'static {
    /// What answers consist of.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin + 'static;

    /// Answers a request. Dropped before it is done where the client leaves.
    fn answer(
        &self,
        request: Request<Incoming>,
        visit: &Visit,
    ) -> impl Future<Output = Response<Self::Body>>;

    /// Takes note of a request that was refused before it could be read.
    fn refused(&self, status: u16, peer: &Peer);
}

/// What a client's connection is to whoever answers its requests.
pub struct Visit {
    peer: Peer,
    address: OnceCell<Option<HeaderValue>>,
    tunnel: RefCell<Option<Pin<Box<dyn Future<Output = ()>>>>>,
}

impl Visit {
    pub(super) fn new(peer: Peer) -> Self {
        Self {
            peer,
            address: OnceCell::new(),
            tunnel: RefCell::default(),
        }
    }

    /// Both ends of the connection.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The other end's address as fields tell it, written once for all requests; `None` on a unix socket.
    #[must_use]
    pub fn address(&self) -> Option<&HeaderValue> {
        let written = || {
            let address = self.peer.ip()?.to_string();
            HeaderValue::try_from(address).ok()
        };
        self.address.get_or_init(written).as_ref()
    }

    /// Goes on with `tunnel` once an answer with the status 101 is written. The connection counts as one until it ends.
    pub fn go_on_with(&self, tunnel: impl Future<Output = ()> + 'static) {
        self.tunnel.replace(Some(Box::pin(tunnel)));
    }

    pub(super) fn take_tunnel(&self) -> Option<Pin<Box<dyn Future<Output = ()>>>> {
        self.tunnel.take()
    }
}
