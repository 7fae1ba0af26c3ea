//! HTTP/2 connections to one server, shared by the requests of a worker.
//!
//! Each request has a *stream* of a connection. A *window* is the number of bytes that the server
//! may send before it gets a new window. The crate `h2` has the protocol.
//!
//! | module | content |
//! |---|---|
//! | `shared_connection` | one connection, and the permit of a request on it |
//! | `exchange` | one request on a stream |
//! | `read_ahead` | buffers for bodies that clients have not read yet |
//! | `liveness` | detection of lost connections |
//! | `watched_stream` | bounds on what a server sends |

mod exchange;
mod liveness;
mod read_ahead;
mod shared_connection;
mod watched_stream;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

use config::Origin;
use h2::client::Builder;
use limit::{Moment, ReuseLimits};
use tokio::sync::Notify;
use tokio::time::timeout;

pub use self::exchange::Http2Exchange;
use self::shared_connection::{SharedConnection, UNKNOWN_STREAM_LIMIT};
use self::watched_stream::{Budget, WatchedStream};
use super::stream::OriginStream;
use crate::time::clock;

/// Bytes of one response that the server may send before the client takes them.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Bytes of all responses of a connection that the server may send before the clients take them.
///
/// It is so large that it never ends before the windows of the streams. So a slow client does not
/// block others. Go's client has the same value.
const CONNECTION_WINDOW: u32 = 1 << 30;
/// Maximum number of bytes of a request's body that wait until the server reads them.
const MAX_UNSENT: usize = 64 * 1024;
/// Cancelled requests of a connection whose late frames are dropped for a second.
///
/// Late frames of further cancelled requests are each answered by a reset.
const MAX_CANCELLED: usize = 1024;
/// Time to wait for the server's stream limit before other requests share its connection.
const SETTINGS_TIMEOUT: Duration = Duration::from_secs(1);

/// Open connections to one server. Each is filled before the next is used.
#[derive(Debug, Default)]
pub(super) struct Http2Connections {
    open: RefCell<Vec<Rc<SharedConnection>>>,
    /// All connections, including the ones that take no more requests.
    running: RefCell<Vec<Weak<SharedConnection>>>,
    /// Maximum number of connections kept without requests.
    max_idle: Cell<usize>,
    /// Limits of reuse in the settings of the last request.
    limits: Cell<ReuseLimits>,
    /// Whether the server chose HTTP/1 on its last connection.
    chose_http1: Cell<bool>,
    /// Whether a request holds the right to open a connection.
    is_opening: Cell<bool>,
    /// Notified when a connection opens or ends, and when its server sends its stream limit.
    opened: Notify,
}

/// Exclusive right to open a connection, while other requests wait for it.
pub(super) struct Opening<'a>(&'a Http2Connections);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.is_opening.set(false);
        self.0.opened.notify_waiters();
    }
}

impl Http2Connections {
    /// Takes a stream on the first open connection that has a free one.
    ///
    /// `takes_any`: whether a congested or suspect connection will do.
    pub(super) fn take(
        &self,
        settings: &Origin,
        now: Moment,
        takes_any: bool,
    ) -> Option<Box<Http2Exchange>> {
        let mut open = self.open.borrow_mut();
        if open.is_empty() {
            return None;
        }
        let limits = settings.reuse_limits();
        self.limits.set(limits);
        open.retain(|connection| connection.is_open() && connection.may_carry(&limits, now));
        let is_good = |it: &SharedConnection| !it.is_congested() && !it.is_suspect.get();
        let mut with_free_stream = open.iter().filter(|it| it.has_free_stream());
        let found = with_free_stream.find(|connection| takes_any || is_good(connection))?;
        Some(Http2Exchange::open(found))
    }

    /// Returns the right to open a connection; `None` after a wait: a stream may be free now.
    ///
    /// Waits while another request opens a connection, unless the server chose HTTP/1 before. Waits
    /// up to [`SETTINGS_TIMEOUT`] for the stream limit of a new connection.
    pub(super) async fn opening(&self) -> Option<Opening<'_>> {
        let opened = self.opened.notified();
        if !self.chose_http1.get() && self.is_opening.get() {
            opened.await;
            return None;
        }
        let awaits_limit = |it: &Rc<SharedConnection>| it.awaits_limit();
        if self.open.borrow().iter().any(awaits_limit) {
            if timeout(SETTINGS_TIMEOUT, opened).await.is_err() {
                for connection in self.open.borrow().iter().filter(|it| it.awaits_limit()) {
                    connection.has_default_limit.set(true);
                }
            }
            return None;
        }
        self.is_opening.set(true);
        Some(Opening(self))
    }

    /// Records that the server chose HTTP/1.
    pub(super) fn note_http1(&self) {
        self.chose_http1.set(true);
    }

    /// Begins HTTP/2 on a new connection, and takes its first stream.
    ///
    /// `is_shared`: whether other requests may use the connection, too. If not, it ends with the
    /// request.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails.
    pub(super) async fn begin(
        self: &Rc<Self>,
        stream: OriginStream,
        settings: &Origin,
        is_shared: bool,
    ) -> io::Result<Box<Http2Exchange>> {
        let connection = self.handshake(stream, settings).await?;
        let first = Http2Exchange::open(&connection);
        if is_shared {
            self.chose_http1.set(false);
            self.open.borrow_mut().push(connection);
        }
        Ok(first)
    }

    /// Begins HTTP/2 on a stream, and starts the task that moves its frames.
    async fn handshake(
        self: &Rc<Self>,
        stream: OriginStream,
        settings: &Origin,
    ) -> io::Result<Rc<SharedConnection>> {
        let (address, limits) = (stream.peer(), settings.reuse_limits());
        let budget = Rc::<Budget>::default();
        let handshake = Builder::new()
            .enable_push(false)
            .max_header_list_size(u32::try_from(settings.max_header_size).unwrap_or(u32::MAX))
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_max_send_streams(UNKNOWN_STREAM_LIMIT)
            .max_send_buffer_size(MAX_UNSENT)
            // h2 counts small pieces of bodies, including late ones of cancelled requests, and
            // never reduces that count. `WatchedStream` limits them instead.
            .data_frame_budget(usize::MAX)
            // Frames in transit when a client cancels are not the server's fault. h2 would count
            // them as errors and end the connection after 1024 of them.
            .max_concurrent_reset_streams(MAX_CANCELLED)
            .max_local_error_reset_streams(None)
            .handshake(WatchedStream::new(stream, Rc::clone(&budget)))
            .await;
        let (send, mut connection) = handshake.map_err(into_io)?;
        self.max_idle.set(settings.keep_alive);
        self.limits.set(limits);
        let pings = connection.ping_pong();
        let siblings = Rc::downgrade(self);
        let shared = SharedConnection::new(send, pings, siblings, budget, address, &limits);
        let shared = Rc::new(shared);
        // The task ends when the server closes the connection, or when no request can use it any
        // more.
        let task = actix_rt::spawn(drive(connection, Rc::downgrade(&shared)));
        let _first = shared.task.set(task.abort_handle());
        self.running.borrow_mut().push(Rc::downgrade(&shared));
        Ok(shared)
    }

    /// Returns whether no connection is open.
    pub(super) fn is_empty(&self) -> bool {
        self.running.borrow().is_empty()
    }

    /// Retires unsuitable connections and ends lost ones. Returns the number of lost connections.
    ///
    /// A connection gets no more requests if it is too old, idle for too long, or `is_outdated` is
    /// true for its address: the server's name has dropped it. A connection is lost if its server
    /// is silent.
    pub(super) fn sweep(&self, now: Moment, is_outdated: impl Fn(IpAddr) -> bool) -> usize {
        let limits = self.limits.get();
        let mut running = self.running.borrow_mut();
        running.retain(|connection| connection.strong_count() > 0);
        let lost = running.iter().filter_map(Weak::upgrade);
        let lost = lost.filter(|connection| connection.check(now)).count();
        self.open.borrow_mut().retain(|connection| {
            let goes_to_outdated = connection.address.is_some_and(&is_outdated);
            !goes_to_outdated && connection.is_open() && connection.may_carry(&limits, now)
        });
        lost
    }

    /// Keeps a connection whose last request has ended, unless it takes no more or enough are kept.
    fn keep_idle(&self, connection: &Rc<SharedConnection>) {
        let mut open = self.open.borrow_mut();
        // Includes this connection.
        let idle = open.iter().filter(|other| other.in_use.get() == 0).count();
        let now = clock::coarse_now();
        let until = connection.usage.get().idle_until(&self.limits.get(), now);
        connection.usable_until.set(until.unwrap_or_default());
        let is_useless =
            connection.is_leaving.get() || !connection.has_free_stream() || until.is_none();
        if is_useless || idle > self.max_idle.get() {
            open.retain(|other| !Rc::ptr_eq(other, connection));
        }
    }
}

/// Moves the frames of a connection until it ends.
///
/// Notifies waiting requests when the server has sent its stream limit, and at the end.
async fn drive<F: Future>(connection: F, shared: Weak<SharedConnection>) {
    let notify = || {
        let siblings = shared.upgrade().and_then(|it| it.siblings.upgrade());
        siblings.inspect(|siblings| siblings.opened.notify_waiters());
    };
    let mut connection = pin!(connection);
    let mut awaited_limit = true;
    poll_fn(|cx| {
        let ended = connection.as_mut().poll(cx);
        if awaited_limit && !shared.upgrade().is_some_and(|shared| shared.awaits_limit()) {
            awaited_limit = false;
            notify();
        }
        ended
    })
    .await;
    if let Some(shared) = shared.upgrade() {
        shared.is_leaving.set(true);
    }
    notify();
}

/// Converts an error of h2.
fn into_io(error: h2::Error) -> io::Error {
    if error.is_io() {
        let io = error.into_io();
        return io.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
    }
    io::Error::other(error)
}
