//! Connections to one server over HTTP/2, which the requests of a worker share.

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
/// The same of all responses of a connection together: so many that it never ends before those of
/// its streams, and clients that take nothing hold up no others. Go's client has the same.
const CONNECTION_WINDOW: u32 = 1 << 30;
/// Requests at once for which [`CONNECTION_WINDOW`] suffices, whatever the server takes.
const MAX_STREAMS: usize = (CONNECTION_WINDOW / STREAM_WINDOW) as usize;
/// Bytes that wait for clients, from which a connection takes no more requests.
const CONGESTED: usize = 16 * STREAM_WINDOW as usize;
/// Maximum number of bytes of a request's body that wait until the server reads them.
const MAX_UNSENT: usize = 64 * 1024;
/// Cancelled requests of a connection whose late frames are dropped for a second. Those of others
/// are answered by a reset, each.
const MAX_CANCELLED: usize = 1024;
/// The number of requests at once that stands for: the server has not told its own yet.
const UNTOLD: usize = u32::MAX as usize + 1;
/// Requests at once on a connection whose server does not tell: the least that RFC 9113,
/// section 6.5.2, recommends.
const USUAL: usize = 100;
/// Time for a server to tell how many requests it takes at once, before others use its connection.
const SETTINGS_TIMEOUT: Duration = Duration::from_secs(1);

/// The open connections to one server. Each is filled before the next is used.
#[derive(Debug, Default)]
pub(super) struct Http2Connections {
    open: RefCell<Vec<Rc<SharedConnection>>>,
    /// All connections, also those that take no more requests.
    running: RefCell<Vec<Weak<SharedConnection>>>,
    /// Most connections that are kept without requests.
    most_idle: Cell<usize>,
    /// As of the last request.
    limits: Cell<ReuseLimits>,
    /// Whether the server chose HTTP/1 on its last connection.
    is_unused: Cell<bool>,
    is_opening: Cell<bool>,
    /// Told when a connection is open, when its server tells how many requests it takes, and when
    /// it ends.
    opened: Notify,
}

/// One connection, and how many requests it carries.
#[derive(Debug)]
struct SharedConnection {
    send: SendRequest<Bytes>,
    all: Weak<Http2Connections>,
    in_use: Cell<usize>,
    budget: Rc<Budget>,
    undelivered: Undelivered,
    usage: Cell<Usage>,
    /// Until when it may be used, while it has no requests.
    usable_until: Cell<Moment>,
    /// The address of the server; `None` on a unix socket.
    address: Option<IpAddr>,
    liveness: RefCell<Liveness>,
    pings: RefCell<Option<PingPong>>,
    /// The task that moves its frames.
    task: OnceCell<AbortHandle>,
    /// Whether the server has not answered a ping yet.
    is_suspect: Cell<bool>,
    /// Whether its server does not tell how many requests it takes.
    is_untelling: Cell<bool>,
    /// Whether it takes no more requests.
    is_leaving: Cell<bool>,
}

impl SharedConnection {
    /// Returns whether the server takes another request on this connection.
    fn has_room(&self) -> bool {
        let most = match self.send.current_max_send_streams() {
            UNTOLD if self.is_untelling.get() => USUAL,
            UNTOLD => 1,
            most => most.min(MAX_STREAMS),
        };
        self.in_use.get() < most
    }

    /// Returns whether so much waits for clients that further requests use another connection.
    fn is_congested(&self) -> bool {
        self.undelivered.bytes() >= CONGESTED
    }

    /// Returns whether the server may still tell how many requests it takes at once.
    fn is_awaited(&self) -> bool {
        let is_untold = self.send.current_max_send_streams() == UNTOLD;
        is_untold && !self.is_untelling.get() && !self.is_leaving.get()
    }

    /// Returns whether the connection still takes requests, now or later.
    fn is_open(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let ready = self.send.clone().poll_ready(&mut cx);
        !self.is_leaving.get() && !matches!(ready, Poll::Ready(Err(_)))
    }

    /// Returns whether the connection may carry another request, by its age and what it has done.
    fn may_carry(&self, limits: &ReuseLimits, now: Moment) -> bool {
        let is_idle_for_long = self.in_use.get() == 0 && now >= self.usable_until.get();
        !is_idle_for_long && self.usage.get().may_carry(limits, now)
    }

    /// Looks whether the server is still there. Returns whether the connection is lost.
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

/// The place of one request on a connection, until this is dropped.
struct StreamPlace {
    connection: Rc<SharedConnection>,
    is_reused: bool,
    /// Whether all of the response came and was taken.
    is_whole: bool,
}

impl StreamPlace {
    fn on(connection: &Rc<SharedConnection>) -> Self {
        connection.in_use.set(connection.in_use.get() + 1);
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

impl Drop for StreamPlace {
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

/// The right to open a connection, while others wait for it.
pub(super) struct Opening<'a>(&'a Http2Connections);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.is_opening.set(false);
        self.0.opened.notify_waiters();
    }
}

impl Http2Connections {
    /// Takes a place on an open connection, if one has room and is neither congested nor suspect.
    pub(super) fn take(&self, settings: &Origin, now: Moment) -> Option<Http2Exchange> {
        let suits = |it: &SharedConnection| !it.is_congested() && !it.is_suspect.get();
        self.take_if(settings, now, suits)
    }

    /// The same on any connection that has room.
    pub(super) fn take_any(&self, settings: &Origin, now: Moment) -> Option<Http2Exchange> {
        self.take_if(settings, now, |_| true)
    }

    fn take_if(
        &self,
        settings: &Origin,
        now: Moment,
        suits: impl Fn(&SharedConnection) -> bool,
    ) -> Option<Http2Exchange> {
        let mut open = self.open.borrow_mut();
        if open.is_empty() {
            return None;
        }
        let limits = settings.reuse_limits();
        self.limits.set(limits);
        open.retain(|connection| connection.is_open() && connection.may_carry(&limits, now));
        let mut with_room = open.iter().filter(|connection| connection.has_room());
        let found = with_room.find(|connection| suits(connection))?;
        Some(Http2Exchange::new(StreamPlace::on(found)))
    }

    /// Waits until nobody else opens a connection, unless the server chose HTTP/1 before.
    ///
    /// Also waits until the server has told how many requests it takes on a connection that is just
    /// open, but not for long. Returns `None` after a wait: there may be room now.
    pub(super) async fn opening(&self) -> Option<Opening<'_>> {
        let opened = self.opened.notified();
        if !self.is_unused.get() && self.is_opening.get() {
            opened.await;
            return None;
        }
        if self.any(SharedConnection::is_awaited) {
            if timeout(SETTINGS_TIMEOUT, opened).await.is_err() {
                let open = self.open.borrow();
                let awaited = open.iter().filter(|connection| connection.is_awaited());
                awaited.for_each(|connection| connection.is_untelling.set(true));
            }
            return None;
        }
        self.is_opening.set(true);
        Some(Opening(self))
    }

    fn any(&self, is_so: impl Fn(&SharedConnection) -> bool) -> bool {
        let open = self.open.borrow();
        open.iter().any(|connection| is_so(connection))
    }

    /// Notes that the server chose HTTP/1.
    pub(super) fn note_http1(&self) {
        self.is_unused.set(true);
    }

    /// Begins HTTP/2 on a new connection, and takes the first place on it.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails.
    pub(super) async fn begin(
        self: &Rc<Self>,
        stream: OriginStream,
        settings: &Origin,
    ) -> io::Result<Http2Exchange> {
        let shared = self.handshake(stream, settings).await?;
        self.is_unused.set(false);
        let first = Http2Exchange::new(StreamPlace::on(&shared));
        self.open.borrow_mut().push(shared);
        Ok(first)
    }

    /// The same on a connection that no other request uses. It ends with this one.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails.
    pub(super) async fn begin_own(
        self: &Rc<Self>,
        stream: OriginStream,
        settings: &Origin,
    ) -> io::Result<Http2Exchange> {
        let own = self.handshake(stream, settings).await?;
        Ok(Http2Exchange::new(StreamPlace::on(&own)))
    }

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
            .initial_max_send_streams(UNTOLD)
            .max_send_buffer_size(MAX_UNSENT)
            // h2 counts small pieces of bodies, also those that come late for a cancelled request,
            // which it never gives back. `Watched` bounds them.
            .data_frame_budget(usize::MAX)
            // What is on the way when a client cancels is no error of the server: h2 would count it
            // and end the connection after 1024 such frames.
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
            is_untelling: Cell::new(false),
            is_leaving: Cell::new(false),
        });
        // It ends by itself when the server closes it, or when no request can use it any more.
        let task = actix_rt::spawn(drive(connection, Rc::downgrade(&shared)));
        let _first = shared.task.set(task.abort_handle());
        self.running.borrow_mut().push(Rc::downgrade(&shared));
        Ok(shared)
    }

    /// Returns whether no connection is open.
    pub(super) fn is_empty(&self) -> bool {
        self.running.borrow().is_empty()
    }

    /// Gives no more requests to connections that are too old or idle, or whose address `has_left`
    /// the server's name, and ends those whose server is silent. Returns how many of these.
    pub(super) fn sweep(&self, now: Moment, has_left: impl Fn(IpAddr) -> bool) -> usize {
        let limits = self.limits.get();
        let mut running = self.running.borrow_mut();
        running.retain(|connection| connection.strong_count() > 0);
        let lost = running.iter().filter_map(Weak::upgrade);
        let lost = lost.filter(|connection| connection.check(now)).count();
        self.open.borrow_mut().retain(|connection| {
            let is_left = connection.address.is_some_and(&has_left);
            !is_left && connection.is_open() && connection.may_carry(&limits, now)
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
    let tell = || {
        let all = shared.upgrade().and_then(|shared| shared.all.upgrade());
        all.inspect(|all| all.opened.notify_waiters());
    };
    let mut connection = pin!(connection);
    let mut is_awaited = true;
    poll_fn(|cx| {
        let ended = connection.as_mut().poll(cx);
        if is_awaited && !shared.upgrade().is_some_and(|shared| shared.is_awaited()) {
            is_awaited = false;
            tell();
        }
        ended
    })
    .await;
    if let Some(shared) = shared.upgrade() {
        shared.is_leaving.set(true);
    }
    tell();
}

fn into_io(error: h2::Error) -> io::Error {
    if error.is_io() {
        let io = error.into_io();
        return io.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
    }
    io::Error::other(error)
}
