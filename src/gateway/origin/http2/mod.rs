//! HTTP/2 connections to one server, shared by the requests of a worker.
//!
//! | module | content |
//! |---|---|
//! | `exchange` | one request on a stream |
//! | `ahead` | buffered bodies |
//! | `liveness` | detection of lost connections |
//! | `watched` | bounds on what a server sends |

mod ahead;
mod exchange;
mod liveness;
mod watched;

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use config::Origin;
use h2::client::{Builder, SendRequest};
use h2::{Ping, PingPong};
use limit::{Moment, ReuseLimits, Usage};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use self::ahead::Undelivered;
pub use self::exchange::Http2Exchange;
use self::liveness::{Finding, Liveness};
use self::watched::{Budget, Watched};
use super::stream::OriginStream;
use crate::time::clock;

/// Bytes of one response that the server may send before the client takes them.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Bytes of all responses of a connection that the server may send before the clients take them.
///
/// It is so large that it never ends before the windows of the streams. So a slow client does not
/// block others. Go's client has the same value.
const CONNECTION_WINDOW: u32 = 1 << 30;
/// Requests at once for which [`CONNECTION_WINDOW`] suffices, even if the server allows more.
const MAX_STREAMS: usize = (CONNECTION_WINDOW / STREAM_WINDOW) as usize;
/// Number of buffered bytes above which a connection takes no more requests.
const CONGESTED: usize = 16 * STREAM_WINDOW as usize;
/// Maximum number of bytes of a request's body that wait until the server reads them.
const MAX_UNSENT: usize = 64 * 1024;
/// Cancelled requests of a connection whose late frames are dropped for a second.
///
/// Late frames of further cancelled requests are each answered by a reset.
const MAX_CANCELLED: usize = 1024;
/// Value that stands for an unknown stream limit: the server has not sent its settings yet.
const UNKNOWN_STREAM_LIMIT: usize = u32::MAX as usize + 1;
/// Stream limit of a connection whose server never sends its settings.
///
/// RFC 9113, section 6.5.2, recommends at least this.
const DEFAULT_STREAM_LIMIT: usize = 100;
/// Time to wait for the server's stream limit before other requests share its connection.
const SETTINGS_TIMEOUT: Duration = Duration::from_secs(1);

/// Open connections to one server. Each is filled before the next is used.
#[derive(Debug, Default)]
pub(super) struct Http2Connections {
    open: RefCell<Vec<Rc<SharedConnection>>>,
    /// All connections, including the ones that take no more requests.
    running: RefCell<Vec<Weak<SharedConnection>>>,
    /// Maximum number of connections kept without requests.
    most_idle: Cell<usize>,
    /// Limits as of the last request.
    limits: Cell<ReuseLimits>,
    /// Whether the server chose HTTP/1 on its last connection.
    is_unused: Cell<bool>,
    is_opening: Cell<bool>,
    /// Notified when a connection opens or ends, and when its server sends its stream limit.
    opened: Notify,
}

/// HTTP/2 connection with its number of requests.
#[derive(Debug)]
struct SharedConnection {
    send: SendRequest<Bytes>,
    all: Weak<Http2Connections>,
    in_use: Cell<usize>,
    budget: Rc<Budget>,
    undelivered: Undelivered,
    usage: Cell<Usage>,
    /// Instant until which the connection may be used while it has no requests.
    usable_until: Cell<Moment>,
    /// Address of the server; `None` on a unix socket.
    address: Option<IpAddr>,
    liveness: RefCell<Liveness>,
    pings: RefCell<Option<PingPong>>,
    /// Task that moves the frames of the connection.
    task: OnceCell<AbortHandle>,
    /// Whether the server has not answered a ping yet.
    is_suspect: Cell<bool>,
    /// Whether the server has not sent its stream limit in time.
    has_default_limit: Cell<bool>,
    /// Whether the connection takes no more requests.
    is_leaving: Cell<bool>,
}

impl SharedConnection {
    /// Returns whether the server takes another request on this connection.
    fn has_room(&self) -> bool {
        let most = match self.send.current_max_send_streams() {
            UNKNOWN_STREAM_LIMIT if self.has_default_limit.get() => DEFAULT_STREAM_LIMIT,
            UNKNOWN_STREAM_LIMIT => 1,
            most => most.min(MAX_STREAMS),
        };
        self.in_use.get() < most
    }

    /// Returns whether the buffers are so full that further requests use another connection.
    fn is_congested(&self) -> bool {
        self.undelivered.get() >= CONGESTED
    }

    /// Returns whether the server may still send its stream limit.
    fn is_awaited(&self) -> bool {
        let is_limit_unknown = self.send.current_max_send_streams() == UNKNOWN_STREAM_LIMIT;
        is_limit_unknown && !self.has_default_limit.get() && !self.is_leaving.get()
    }

    /// Returns whether the connection still takes requests, now or later.
    fn is_open(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let ready = self.send.clone().poll_ready(&mut cx);
        !self.is_leaving.get() && !matches!(ready, Poll::Ready(Err(_)))
    }

    /// Returns whether the connection may carry another request, by its age and use.
    fn may_carry(&self, limits: &ReuseLimits, now: Moment) -> bool {
        let is_idle_for_long = self.in_use.get() == 0 && now >= self.usable_until.get();
        !is_idle_for_long && self.usage.get().may_carry(limits, now)
    }

    /// Checks whether the server still answers. Returns whether the connection is lost.
    ///
    /// All requests of a lost connection end with an error.
    fn check(&self, now: Moment) -> bool {
        let (received, in_use) = (self.budget.received(), self.in_use.get() > 0);
        let found = self.liveness.borrow_mut().look(received, in_use, now);
        self.is_suspect.set(found == Finding::Suspect);
        match found {
            Finding::Ping => {
                if let Some(pings) = &mut *self.pings.borrow_mut() {
                    // h2 sends no ping before the last answer was taken.
                    let mut cx = Context::from_waker(Waker::noop());
                    let _answered = pings.poll_pong(&mut cx);
                    let _ended = pings.send_ping(Ping::opaque());
                }
            }
            Finding::Lost => {
                self.is_leaving.set(true);
                self.task.get().inspect(|task| task.abort());
            }
            Finding::Alive | Finding::Suspect => {}
        }
        found == Finding::Lost
    }
}

/// Permit for one request on a connection. Dropping it gives the permit back.
struct StreamPermit {
    connection: Rc<SharedConnection>,
    is_reused: bool,
    /// Whether the whole response arrived and was taken.
    is_whole: bool,
}

impl StreamPermit {
    /// Takes a permit on this connection, and counts the request.
    fn on(connection: &Rc<SharedConnection>) -> Self {
        connection.in_use.update(|in_use| in_use + 1);
        connection.budget.begin();
        let mut usage = connection.usage.get();
        let is_reused = usage.has_carried();
        usage.count();
        connection.usage.set(usage);
        Self {
            connection: Rc::clone(connection),
            is_reused,
            is_whole: false,
        }
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let left = self.connection.in_use.get().saturating_sub(1);
        self.connection.in_use.set(left);
        self.connection.budget.end(self.is_whole, left);
        if left == 0
            && let Some(all) = self.connection.all.upgrade()
        {
            all.keep_idle(&self.connection);
        }
    }
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
    /// Takes a stream on an open connection that has room and is neither congested nor suspect.
    pub(super) fn take(&self, settings: &Origin, now: Moment) -> Option<Box<Http2Exchange>> {
        let suits = |it: &SharedConnection| !it.is_congested() && !it.is_suspect.get();
        self.take_if(settings, now, suits)
    }

    /// Takes a stream on any connection that has room.
    pub(super) fn take_any(&self, settings: &Origin, now: Moment) -> Option<Box<Http2Exchange>> {
        self.take_if(settings, now, |_| true)
    }

    /// Takes a stream on the first connection with room for which `suits` is true.
    fn take_if(
        &self,
        settings: &Origin,
        now: Moment,
        suits: impl Fn(&SharedConnection) -> bool,
    ) -> Option<Box<Http2Exchange>> {
        let mut open = self.open.borrow_mut();
        if open.is_empty() {
            return None;
        }
        let limits = settings.reuse_limits();
        self.limits.set(limits);
        open.retain(|connection| connection.is_open() && connection.may_carry(&limits, now));
        let mut with_room = open.iter().filter(|connection| connection.has_room());
        let found = with_room.find(|connection| suits(connection))?;
        Some(Http2Exchange::on(found))
    }

    /// Returns the right to open a connection, unless another request is opening one.
    ///
    /// Returns `None` after a wait: there may be room now. Waits while another request opens a
    /// connection, unless the server chose HTTP/1 before. Waits up to [`SETTINGS_TIMEOUT`] for the
    /// stream limit of a new connection.
    pub(super) async fn opening(&self) -> Option<Opening<'_>> {
        let opened = self.opened.notified();
        if !self.is_unused.get() && self.is_opening.get() {
            opened.await;
            return None;
        }
        let is_awaited = |it: &Rc<SharedConnection>| it.is_awaited();
        if self.open.borrow().iter().any(is_awaited) {
            if timeout(SETTINGS_TIMEOUT, opened).await.is_err() {
                for connection in self.open.borrow().iter().filter(|it| it.is_awaited()) {
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
        self.is_unused.set(true);
    }

    /// Begins HTTP/2 on a new connection, and takes its first stream.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails.
    pub(super) async fn begin(
        self: &Rc<Self>,
        stream: OriginStream,
        settings: &Origin,
    ) -> io::Result<Box<Http2Exchange>> {
        let shared = self.handshake(stream, settings).await?;
        self.is_unused.set(false);
        let first = Http2Exchange::on(&shared);
        self.open.borrow_mut().push(shared);
        Ok(first)
    }

    /// Begins HTTP/2 on a connection for one request alone. It ends with the request.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails.
    pub(super) async fn begin_own(
        self: &Rc<Self>,
        stream: OriginStream,
        settings: &Origin,
    ) -> io::Result<Box<Http2Exchange>> {
        let own = self.handshake(stream, settings).await?;
        Ok(Http2Exchange::on(&own))
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
            // never reduces that count. `Watched` limits them instead.
            .data_frame_budget(usize::MAX)
            // Frames in transit when a client cancels are not the server's fault. h2 would count
            // them as errors and end the connection after 1024 of them.
            .max_concurrent_reset_streams(MAX_CANCELLED)
            .max_local_error_reset_streams(None)
            .handshake(Watched::new(stream, Rc::clone(&budget)))
            .await;
        let (send, mut connection) = handshake.map_err(into_io)?;
        let now = clock::now();
        self.most_idle.set(settings.keep_alive);
        self.limits.set(limits);
        let shared = Rc::new(SharedConnection {
            send,
            all: Rc::downgrade(self),
            in_use: Cell::new(0),
            budget,
            undelivered: Undelivered::default(),
            usage: Cell::new(Usage::new(&limits, now)),
            usable_until: Cell::new(now),
            address,
            liveness: RefCell::new(Liveness::new(now)),
            pings: RefCell::new(connection.ping_pong()),
            task: OnceCell::new(),
            is_suspect: Cell::new(false),
            has_default_limit: Cell::new(false),
            is_leaving: Cell::new(false),
        });
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

    /// Keeps a connection without requests, unless it takes no more or enough are kept.
    fn keep_idle(&self, connection: &Rc<SharedConnection>) {
        let mut open = self.open.borrow_mut();
        let idle = open.iter().filter(|other| other.in_use.get() == 0).count();
        let now = clock::coarse_now();
        let until = connection.usage.get().idle_until(&self.limits.get(), now);
        connection.usable_until.set(until.unwrap_or_default());
        let is_useless = connection.is_leaving.get() || !connection.has_room() || until.is_none();
        if is_useless || idle > self.most_idle.get() {
            open.retain(|other| !Rc::ptr_eq(other, connection));
        }
    }
}

/// Moves the frames of a connection until it ends.
async fn drive<F: Future>(connection: F, shared: Weak<SharedConnection>) {
    let notify = || {
        let all = shared.upgrade().and_then(|shared| shared.all.upgrade());
        all.inspect(|all| all.opened.notify_waiters());
    };
    let mut connection = pin!(connection);
    let mut is_awaited = true;
    poll_fn(|cx| {
        let ended = connection.as_mut().poll(cx);
        if is_awaited && !shared.upgrade().is_some_and(|shared| shared.is_awaited()) {
            is_awaited = false;
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

fn into_io(error: h2::Error) -> io::Error {
    if error.is_io() {
        let io = error.into_io();
        return io.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
    }
    io::Error::other(error)
}
