use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Request;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch};

use super::answering::{Answering, Visit};
use super::patience::Patience;
use super::peer::Peer;
use crate::clock;
use crate::limit::Moment;

/// Requests under way at once on one connection, as in nginx.
const MOST_STREAMS: u32 = 128;
/// Bytes of one request's body, and of all together, that a client may send before they are read.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Bytes of one answer that wait for the client to take them.
const MOST_UNSENT: usize = 64 * 1024;
/// How often a client that says nothing is asked whether it is there, and how long it has to say so.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked how the requests get on.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a connection that was told to end has for it while no request is under way.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves a connection of HTTP/2 to its end.
///
/// hyper sees to the protocol. What it does not see to: a connection on which nothing is asked ends after `keep_alive`,
/// and an answer that is taken no further ends after `body_timeout`, alone.
pub(super) async fn serve<S, A>(
    socket: S,
    peer: Peer,
    patience: Patience,
    mut stopping: watch::Receiver<bool>,
    answering: Rc<A>,
) where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    A: Answering,
{
    let (visit, streams) = (Rc::new(Visit::new(peer)), Rc::new(Streams::default()));
    streams.quiet_since.set(clock::now());
    let service = service_fn({
        let streams = Rc::clone(&streams);
        move |request: Request<Incoming>| {
            let (answering, visit) = (Rc::clone(&answering), Rc::clone(&visit));
            let offer = streams.begin();
            async move {
                let answer = answering.answer(request, &visit).await;
                Ok::<_, Infallible>(answer.map(|body| Watched { body, offer }))
            }
        }
    });
    let mut connection = pin!(
        http2::Builder::new(Runner(Rc::clone(&streams)))
            .timer(TokioTimer::new())
            .max_concurrent_streams(MOST_STREAMS)
            .max_header_list_size(u32::try_from(patience.max_header_size).unwrap_or(u32::MAX))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(MOST_UNSENT)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_PATIENCE)
            .serve_connection(TokioIo::new(socket), service)
    );
    tokio::select! {
        biased;
        _ended = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => {}
        () = streams.wear_out(patience) => {}
    }
    connection.as_mut().graceful_shutdown();
    let farewell = Patience {
        head: FAREWELL,
        idle: FAREWELL,
        ..patience
    };
    tokio::select! {
        biased;
        _ended = connection.as_mut() => {}
        () = streams.wear_out(farewell) => {}
    }
}

/// The requests under way on a connection.
#[derive(Debug, Default)]
struct Streams {
    under_way: RefCell<Vec<Weak<Offer>>>,
    any_yet: Cell<bool>,
    /// When the last of them ended; of a new connection, when that began.
    quiet_since: Cell<Moment>,
}

/// How one request's answer gets on.
#[derive(Debug)]
struct Offer {
    streams: Rc<Streams>,
    /// Since when the client has had a piece of the answer before it and not asked for the next.
    since: Cell<Option<Moment>>,
    given_up: Notify,
}

impl Drop for Offer {
    fn drop(&mut self) {
        self.streams.quiet_since.set(clock::now());
    }
}

impl Streams {
    fn begin(self: &Rc<Self>) -> Rc<Offer> {
        let offer = Rc::new(Offer {
            streams: Rc::clone(self),
            since: Cell::default(),
            given_up: Notify::new(),
        });
        let mut under_way = self.under_way.borrow_mut();
        under_way.retain(|offer| offer.strong_count() > 0);
        under_way.push(Rc::downgrade(&offer));
        self.any_yet.set(true);
        offer
    }

    /// Gives up answers that the client takes no further, until no request has been under way for too long.
    async fn wear_out(&self, patience: Patience) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = clock::now();
            let limit = if self.any_yet.get() {
                patience.idle
            } else {
                patience.head
            };
            let mut is_idle = true;
            for offer in self.under_way.borrow().iter().filter_map(Weak::upgrade) {
                is_idle = false;
                let since = offer.since.get();
                if since.is_some_and(|since| now.since(since) >= patience.body) {
                    offer.given_up.notify_one();
                }
            }
            if is_idle && now.since(self.quiet_since.get()) >= limit {
                return;
            }
        }
    }
}

/// An answer's body of which it is noticed that nobody takes it.
struct Watched<B> {
    body: B,
    offer: Rc<Offer>,
}

impl<B: Body + Unpin> Body for Watched<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        // hyper asks for the next piece once there is room for it.
        let offered = matches!(frame, Poll::Ready(Some(Ok(_))));
        self.offer.since.set(offered.then(clock::now));
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Runs requests on the thread of their connection, each until it is given up: then its stream is reset.
#[derive(Clone)]
struct Runner(Rc<Streams>);

impl<F: Future<Output = ()> + 'static> Executor<F> for Runner {
    fn execute(&self, request: F) {
        // hyper has just asked for the answer, and runs both together.
        let offer = self.0.under_way.borrow().last().and_then(Weak::upgrade);
        actix_rt::spawn(async move {
            let Some(offer) = offer else {
                return request.await;
            };
            tokio::select! {
                biased;
                () = request => {}
                () = offer.given_up.notified() => {}
            }
        });
    }
}
