use std::error::Error;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::CONTENT_LENGTH;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::timeout;

use super::answering::{Answering, Visit};
use super::exchange::Exchange;
use super::framing::MOST_FIELDS;
use super::gate::{Gate, LOOK_EVERY};
use super::patience::Patience;
use super::peer::Peer;
use super::socket::{Socket, has_left};

/// Past it hyper stops to read before what it has was taken.
const MOST_BUFFERED: usize = 64 * 1024;
/// How long a connection that has asked for nothing yet may still do so after the gateway was told to stop.
const FIRST_REQUEST: Duration = Duration::from_millis(500);

/// The client left while its request was under way.
#[derive(Debug, Error)]
#[error("the client left")]
struct Gone;

/// Serves a connection of HTTP/1 to its end. Once `stopping` is true, requests under way are the last.
pub async fn serve<S: Socket, A: Answering>(
    socket: S,
    peer: Peer,
    patience: Patience,
    mut stopping: watch::Receiver<bool>,
    answering: Rc<A>,
) {
    let exchange = Arc::new(Exchange::default());
    let gate = Gate::new(socket, Arc::clone(&exchange), patience);
    let visit = Visit::new(peer);
    let service = service_fn(|request| answer(&*answering, request, &visit, &exchange));
    let mut connection = pin!(
        http1::Builder::new()
            // The gate notices who leaves.
            .half_close(true)
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
            let first_request = async {
                while !exchange.has_begun() {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            };
            // Boxed, as it comes once in a connection's life.
            let mut first_request = Box::pin(timeout(FIRST_REQUEST, first_request));
            let ended = tokio::select! {
                biased;
                ended = connection.as_mut() => Some(ended),
                // Its request may be on the way: whoever was let in is answered.
                _come = first_request.as_mut() => None,
            };
            if let Some(ended) = ended {
                ended
            } else {
                connection.as_mut().graceful_shutdown();
                connection.as_mut().await
            }
        }
    };
    let unreadable = ended.err().filter(hyper::Error::is_parse);
    let refused = exchange
        .refused()
        .or(unreadable.map(|error| if error.is_parse_too_large() { 431 } else { 400 }));
    if let Some(status) = refused {
        answering.refused(status, &peer);
    }
    if let Some(tunnel) = visit.take_tunnel() {
        tunnel.await;
    }
}

async fn answer<A: Answering>(
    answering: &A,
    request: Request<Incoming>,
    visit: &Visit,
    exchange: &Arc<Exchange>,
) -> Result<Response<Last<A::Body>>, Gone> {
    let version = request.version();
    // It stays where it is: moved into each place where it is awaited, it would take as much room again in each.
    let mut answer = pin!(answering.answer(request, visit));
    let answer = match exchange.take_socket() {
        None => answer.await,
        // While its body is not read, nobody but us notices that the client leaves.
        Some(socket) => tokio::select! {
            biased;
            answer = answer.as_mut() => answer,
            () = departure(socket) => return Err(Gone),
        },
    };
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        exchange.open_tunnel();
    }
    let told = answer.headers().contains_key(CONTENT_LENGTH);
    Ok(answer.map(|body| Last {
        endless: version == Version::HTTP_10 && !told && body.size_hint().exact().is_none(),
        body: Some(body),
        broken: None,
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
    /// `None` once it broke off.
    body: Option<B>,
    /// Why it broke off, until hyper is told.
    broken: Option<Box<dyn Error + Send + Sync>>,
    /// Whether it is one of HTTP/1.0 that ends with the connection.
    endless: bool,
    exchange: Arc<Exchange>,
}

impl<B> Drop for Last<B> {
    fn drop(&mut self) {
        self.exchange.end();
    }
}

impl<B: Body<Error: Into<Box<dyn Error + Send + Sync>>> + Unpin> Body for Last<B> {
    type Data = B::Data;
    type Error = Box<dyn Error + Send + Sync>;

    /// hyper drops a connection whose answer breaks off, with all that it has not written yet, which may be the whole of
    /// what came, head included: the client would see nothing but the end, as of a connection that had idled too long,
    /// and might ask again. So hyper is told last, once the gate has seen to the client.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let last = &mut *self;
        if let Some(body) = &mut last.body {
            match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Err(error)) => last.broken = Some(error.into()),
                Some(Ok(piece)) => return Poll::Ready(Some(Ok(piece))),
                None => return Poll::Ready(None),
            }
            last.body = None;
            last.exchange.break_off(last.endless);
            // The next time round hyper flushes, if it does not now; after that the gate wakes this task.
            cx.waker().wake_by_ref();
        }
        if last.exchange.is_breaking() {
            return Poll::Pending;
        }
        Poll::Ready(last.broken.take().map(Err))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_some_and(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(SizeHint::default, Body::size_hint)
    }
}
