//! One client connection over HTTP/2, with a task for each of its requests.
//!
//! h2 handles the protocol. This module adds timeouts. A connection without requests ends after
//! `keep_alive`. A connection whose client has silently vanished ends after an unanswered ping. A
//! response that the client does not read ends after `body_timeout`, and only that one. So does one
//! that it reads more slowly than its share of `min_body_rate`.

mod keep_alive;
mod linger;
mod stream;
mod tunnel;

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Builder, SendResponse};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use self::keep_alive::KeepAlive;
use self::linger::linger;
use self::stream::Http2Stream;
use super::context::ConnectionContext;
use super::peer::Peer;
use super::stop::StopSignal;
use super::stream::{Aborted, RequestService};
use super::timeouts::Timeouts;
use crate::http::http2::{CONNECTION_WINDOW, MAX_UNSENT, STREAM_WINDOW};
use crate::http::message::RequestHead;
use crate::time::deadline::Deadline;
use crate::time::pacer::Priority;

/// Maximum number of streams that a client reset before their requests were taken.
///
/// More of them at once end the connection: nobody means them (CVE-2023-44487).
const MAX_EARLY_RESETS: usize = 20;
/// Maximum number of streams of a connection that a client's errors reset. More end it.
const MAX_ERRORS: usize = 1024;
/// Maximum number of streams that were reset here, and whose late frames are still ignored.
const MAX_RESETS: usize = 50;
/// Time that a connection without requests gets to close after it is told to end.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves an HTTP/2 connection to its end.
pub(super) async fn serve<S, A>(
    socket: S,
    peer: Peer,
    timeouts: Timeouts,
    stop: Rc<StopSignal>,
    service: Rc<A>,
) where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    A: RequestService,
{
    let handshake = Builder::new()
        .max_concurrent_streams(timeouts.max_concurrent_streams)
        .max_header_list_size(timeouts.max_header_size)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(MAX_UNSENT)
        .max_pending_accept_reset_streams(MAX_EARLY_RESETS)
        .max_local_error_reset_streams(Some(MAX_ERRORS))
        .max_concurrent_reset_streams(MAX_RESETS)
        .enable_connect_protocol()
        .handshake(socket);
    let Ok(Ok(mut connection)) = timeout(timeouts.header, handshake).await else {
        return;
    };
    let context = Rc::new(ConnectionContext::new(peer));
    let under_way = Rc::new(Cell::new(0));
    let mut keep_alive = KeepAlive::new(connection.ping_pong());
    let (mut idle, mut any_yet, mut is_ending) = (Deadline::default(), false, false);
    let sleeper = stop.sleeper();
    poll_fn(|cx| {
        loop {
            if !is_ending && sleeper.poll_stopping(cx).is_ready() {
                is_ending = true;
                idle.stop();
                connection.graceful_shutdown();
            }
            match connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    any_yet = true;
                    let stream = (request, respond, UnderWay::new(&under_way));
                    let (context, service) = (Rc::clone(&context), Rc::clone(&service));
                    actix_rt::spawn(serve_stream(stream, timeouts, context, service));
                    continue;
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {}
            }
            if keep_alive.poll_lost(cx).is_ready() {
                return Poll::Ready(());
            }
            if under_way.get() > 0 {
                idle.stop();
                return Poll::Pending;
            }
            idle.start(match (is_ending, any_yet) {
                (true, _) => FAREWELL,
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

/// One request of a connection, counted until this is dropped.
struct UnderWay(Rc<Cell<usize>>);

impl UnderWay {
    fn new(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

async fn serve_stream<A: RequestService>(
    (request, respond, under_way): (Request<RecvStream>, SendResponse<Bytes>, UnderWay),
    timeouts: Timeouts,
    context: Rc<ConnectionContext>,
    service: Rc<A>,
) {
    let mut priority = Priority::default();
    let began = poll_fn(|cx| service.poll_admission(&mut priority, cx)).await;
    let (head, body) = request.into_parts();
    let parsed = RequestHead::of_http2(&head, !body.is_end_stream());
    drop(head);
    let mut stream = Http2Stream::new(body, respond, timeouts, Rc::clone(&under_way.0));
    match parsed {
        Ok(head) => {
            stream.set_kind(&head);
            let served = service.serve(&head, began, &mut stream, &context).await;
            if served == Err(Aborted::AnswerBroken) {
                // A reset discards bytes that are not written yet, so the connection's task writes
                // them first.
                let _gone = stream.send_head(false);
                tokio::task::yield_now().await;
                stream.break_off();
            }
        }
        Err(refusal) => {
            service.refused(refusal.status(), &context);
            stream
                .refuse(refusal.status(), &refusal.to_string(), began)
                .await;
        }
    }
    if let Some(unread) = stream.into_unread() {
        linger(unread).await;
    }
}
