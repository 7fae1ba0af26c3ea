//! One client connection over HTTP/2, with a task for each of its requests.
//!
//! h2 handles the protocol. This module adds [windows] that grow when a body is read, and these
//! timeouts:
//! - A connection without requests ends after `keep_alive`.
//! - A connection whose client has vanished ends after an unanswered ping.
//! - A response ends after `body_timeout` if the client reads nothing. The other responses of the
//!   connection continue.
//! - A response also ends if the client reads it more slowly than its share of `min_body_rate`.

mod body;
mod keep_alive;
mod socket;
mod stream;
mod tunnel;
mod windows;

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::server::{Builder, SendResponse};
use http::header::{CONTENT_LENGTH, EXPECT};
use http::{Method, Request};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use self::body::{Body, linger, take_arrived_during};
use self::keep_alive::KeepAlive;
use self::socket::WindowedSocket;
use self::stream::Http2Stream;
use self::windows::{CONNECTION_WINDOW, STREAM_WINDOW, Windows};
use super::context::ConnectionContext;
use super::peer::Peer;
use super::stop::StopSignal;
use super::stream::{Aborted, RequestService, refuse};
use super::timeouts::Timeouts;
use crate::http::http2::MAX_UNSENT;
use crate::http::message::RequestHead;
use crate::time::clock;
use crate::time::deadline::Deadline;
use crate::time::pacer::Priority;

/// Maximum number of streams that the client reset before the gateway accepted their requests.
///
/// More of them at once end the connection: no useful client does this (CVE-2023-44487).
const MAX_EARLY_RESETS: usize = 20;
/// Maximum number of streams that h2 resets for the client's errors. More end the connection.
const MAX_ERRORS: usize = 1024;
/// Maximum number of streams reset by the gateway whose late frames are still ignored.
const MAX_RESETS: usize = 50;
/// Maximum duration of a connection without requests after `GOAWAY` announced its end.
const MAX_FAREWELL: Duration = Duration::from_secs(5);

/// Maximum wait for the first byte or the end of a body that is probably empty.
const MAX_WAIT_FOR_END: Duration = Duration::from_secs(1);

/// Serves an HTTP/2 connection to its end. `first`: bytes that were already read from it.
pub async fn serve<S, A>(
    first: Vec<u8>,
    socket: S,
    peer: Peer,
    timeouts: Rc<Timeouts>,
    stop: Rc<StopSignal>,
    service: Rc<A>,
) where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    A: RequestService,
{
    let windows = Rc::<Windows>::default();
    let socket = WindowedSocket::new(first, socket, Rc::clone(&windows));
    let handshake = builder(&timeouts).handshake(socket);
    let Ok(Ok(mut connection)) = timeout(timeouts.header, handshake).await else {
        return;
    };
    let context = Rc::new(ConnectionContext::new(peer, timeouts.usage()));
    // Each active request holds a clone, so the number of clones tells how many are active.
    let active_requests = Rc::new(());
    let mut keep_alive = KeepAlive::new(connection.ping_pong());
    // `is_ending`: GOAWAY was sent, so the client opens no further stream.
    let (mut idle, mut has_had_request, mut is_ending) = (Deadline::default(), false, false);
    let sleeper = stop.sleeper();
    poll_fn(|cx| {
        windows.register(cx);
        loop {
            if !is_ending && sleeper.poll_stopping(cx).is_ready() {
                is_ending = true;
                idle.stop();
                connection.graceful_shutdown();
            }
            match connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    has_had_request = true;
                    let may_carry_more = context.count_request(&timeouts.reuse, clock::coarse_now);
                    if !may_carry_more && !is_ending {
                        is_ending = true;
                        connection.graceful_shutdown();
                    }
                    let request = request.map(|body| Body::new(body, Rc::clone(&windows)));
                    let stream = (request, respond, Rc::clone(&active_requests));
                    let (context, service) = (Rc::clone(&context), Rc::clone(&service));
                    let timeouts = Rc::clone(&timeouts);
                    actix_rt::spawn(serve_stream(stream, timeouts, context, service));
                    continue;
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {}
            }
            // No request has arrived: checks that the client is alive, and ends an idle connection.
            if keep_alive.poll_lost(cx).is_ready() {
                return Poll::Ready(());
            }
            if count_requests(&active_requests) > 0 {
                idle.stop();
                return Poll::Pending;
            }
            idle.start(match (is_ending, has_had_request) {
                (true, _) => MAX_FAREWELL,
                (false, true) => timeouts.keep_alive,
                (false, false) => timeouts.header,
            });
            ready!(idle.poll(cx));
            if is_ending {
                return Poll::Ready(());
            }
            is_ending = true;
            idle.stop();
            connection.graceful_shutdown();
        }
    })
    .await;
}

/// Configures h2 with limits that bound the memory of a connection.
fn builder(timeouts: &Timeouts) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(timeouts.max_concurrent_streams)
        .max_header_list_size(timeouts.max_header_size)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(MAX_UNSENT)
        .max_pending_accept_reset_streams(MAX_EARLY_RESETS)
        .max_local_error_reset_streams(Some(MAX_ERRORS))
        .max_concurrent_reset_streams(MAX_RESETS)
        // h2 never gives back this budget for streams that have ended, so the limit is off. Our
        // tasks take frames out of h2 at once, which bounds its memory.
        .data_frame_budget(usize::MAX)
        .enable_connect_protocol();
    builder
}

/// Returns the number of active requests: each holds a clone beside that of the connection.
fn count_requests(active_requests: &Rc<()>) -> usize {
    Rc::strong_count(active_requests) - 1
}

/// Returns whether a request probably has no body, although its head does not end the stream.
///
/// The end then comes in an empty frame after the head. An HTTP/1 server may reject such a request
/// if it gets a body, even an empty one.
fn is_likely_empty(head: &http::request::Parts) -> bool {
    let has_usual_method = matches!(
        head.method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::DELETE | Method::TRACE
    );
    let fields = &head.headers;
    has_usual_method && !fields.contains_key(CONTENT_LENGTH) && !fields.contains_key(EXPECT)
}

/// Serves one request of a connection, in its own task.
async fn serve_stream<A: RequestService>(
    (request, respond, active_requests): (Request<Body>, SendResponse<Bytes>, Rc<()>),
    timeouts: Rc<Timeouts>,
    context: Rc<ConnectionContext>,
    service: Rc<A>,
) {
    let mut priority = Priority::default();
    let began = poll_fn(|cx| service.poll_admission(&mut priority, cx)).await;
    let (head, mut body) = request.into_parts();
    if !body.is_over() && is_likely_empty(&head) {
        // Boxed: few requests need it.
        let known = Box::pin(timeout(MAX_WAIT_FOR_END, poll_fn(|cx| body.poll_start(cx))));
        // After a timeout the request is treated as one with a body.
        let _timed_out = known.await.is_err();
    }
    let parsed = RequestHead::of_http2(&head, !body.is_over());
    drop(head);
    let body = RefCell::new(body);
    let mut stream = Http2Stream::new(&body, respond, timeouts, &active_requests);
    match parsed {
        Ok(head) => {
            stream.adapt_to(&head);
            let served = {
                let serving = pin!(service.serve(head, began, &mut stream, &context));
                take_arrived_during(&body, serving).await
            };
            match served {
                Err(Aborted::AnswerBroken) => {
                    // A reset discards unwritten bytes. Yield first, so that the connection's task
                    // writes them.
                    // `false`: the head is not the end of the response.
                    let _disconnected = stream.send_head(false);
                    tokio::task::yield_now().await;
                    stream.reset(Reason::INTERNAL_ERROR);
                }
                Err(Aborted::ClientDisconnected) if body.borrow().is_overrun() => {
                    stream.reset(Reason::FLOW_CONTROL_ERROR);
                }
                _ => {}
            }
        }
        Err(refusal) => {
            service.record_refused(refusal.status(), &context);
            let refusing = pin!(refuse(&mut stream, refusal, began));
            // An error means that the client has already disconnected.
            let _disconnected = take_arrived_during(&body, refusing).await;
        }
    }
    let is_unread = stream.is_unread();
    drop(stream);
    if is_unread {
        linger(&body).await;
    }
}
