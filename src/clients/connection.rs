use std::cell::RefCell;
use std::error::Error;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::sync::watch;

use super::exchange::Exchange;
use super::framing::MOST_FIELDS;
use super::gate::{Gate, LOOK_EVERY};
use super::patience::Patience;
use super::peer::Peer;
use super::socket::{Socket, has_left};

/// Past it hyper stops to read before what it has was taken.
const MOST_BUFFERED: usize = 64 * 1024;

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
#[derive(Default)]
pub struct Visit {
    peer: Peer,
    tunnel: RefCell<Option<Pin<Box<dyn Future<Output = ()>>>>>,
}

impl Visit {
    /// Both ends of the connection.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Goes on with `tunnel` once an answer with the status 101 is written. The connection counts as one until it ends.
    pub fn go_on_with(&self, tunnel: impl Future<Output = ()> + 'static) {
        self.tunnel.replace(Some(Box::pin(tunnel)));
    }
}

/// The client left while its request was under way.
#[derive(Debug, Error)]
#[error("the client left")]
struct Gone;

/// Serves a connection to its end. Once `stopping` is true, requests under way are the last.
pub async fn serve<S: Socket, A: Answering>(
    socket: S,
    peer: Peer,
    patience: Patience,
    mut stopping: watch::Receiver<bool>,
    answering: Rc<A>,
) {
    let exchange = Arc::new(Exchange::default());
    let gate = Gate::new(socket, Arc::clone(&exchange), patience);
    let visit = Visit {
        peer,
        tunnel: RefCell::default(),
    };
    let service = service_fn(|request| answer(&*answering, request, &visit, &exchange));
    let mut connection = pin!(
        http1::Builder::new()
            .half_close(false)
            .keep_alive(!patience.idle.is_zero())
            .max_headers(MOST_FIELDS)
            .max_buf_size(MOST_BUFFERED.max(2 * patience.max_header_size))
            .serve_connection(TokioIo::new(gate), service)
            .with_upgrades()
    );
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        _ = stopping.wait_for(|stopping| *stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    let unreadable = ended.err().filter(hyper::Error::is_parse);
    let refused = exchange
        .refused()
        .or(unreadable.map(|error| if error.is_parse_too_large() { 431 } else { 400 }));
    if let Some(status) = refused {
        answering.refused(status, &peer);
    }
    let tunnel = visit.tunnel.take();
    if let Some(tunnel) = tunnel {
        tunnel.await;
    }
}

async fn answer<A: Answering>(
    answering: &A,
    request: Request<Incoming>,
    visit: &Visit,
    exchange: &Arc<Exchange>,
) -> Result<Response<Last<A::Body>>, Gone> {
    let answer = answering.answer(request, visit);
    let answer = match exchange.take_socket() {
        None => answer.await,
        // While its body is not read, nobody but us notices that the client leaves.
        Some(socket) => tokio::select! {
            biased;
            answer = answer => answer,
            () = departure(socket) => return Err(Gone),
        },
    };
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        exchange.open_tunnel();
    }
    Ok(answer.map(|body| Last {
        body,
        exchange: Arc::clone(exchange),
    }))
}

async fn departure(socket: OwnedFd) {
    while !has_left(&socket) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// An answer's body. With its end the next request may come.
struct Last<B> {
    body: B,
    exchange: Arc<Exchange>,
}

impl<B> Drop for Last<B> {
    fn drop(&mut self) {
        self.exchange.end();
    }
}

impl<B: Body + Unpin> Body for Last<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
