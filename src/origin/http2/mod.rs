//! Connections to one server over HTTP/2, which the requests of a worker share.

mod ahead;
mod exchange;
mod watched;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use tokio::sync::Notify;
use tokio::time::timeout;

use self::ahead::Undelivered;
pub use self::exchange::Http2Exchange;
use self::watched::{Budget, Watched};
use super::stream::OriginStream;

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
    /// Most connections that are kept without requests.
    most_idle: Cell<usize>,
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
    has_carried: Cell<bool>,
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
}

/// The place of one request on a connection, until this is dropped.
#[derive(Debug)]
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
        Self {
            connection: Rc::clone(connection),
            is_reused: connection.has_carried.replace(true),
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
    /// Takes a place on an open connection, if one has room and is not congested.
    pub(super) fn take(&self) -> Option<Http2Exchange> {
        self.take_if(|connection| !connection.is_congested())
    }

    /// The same on any connection that has room.
    pub(super) fn take_any(&self) -> Option<Http2Exchange> {
        self.take_if(|_| true)
    }

    fn take_if(&self, suits: impl Fn(&SharedConnection) -> bool) -> Option<Http2Exchange> {
        let mut open = self.open.borrow_mut();
        if open.is_empty() {
            return None;
        }
        open.retain(|connection| connection.is_open());
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
    /// `max_header_size`: most bytes of a response's head, as HTTP/2 counts them. `most_idle`: how
    /// many connections are kept without requests.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails.
    pub(super) async fn begin(
        self: &Rc<Self>,
        stream: OriginStream,
        max_header_size: usize,
        most_idle: usize,
    ) -> io::Result<Http2Exchange> {
        let shared = self.handshake(stream, max_header_size).await?;
        self.is_unused.set(false);
        self.most_idle.set(most_idle);
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
        max_header_size: usize,
    ) -> io::Result<Http2Exchange> {
        let own = self.handshake(stream, max_header_size).await?;
        Ok(Http2Exchange::new(StreamPlace::on(&own)))
    }

    async fn handshake(
        self: &Rc<Self>,
        stream: OriginStream,
        max_header_size: usize,
    ) -> io::Result<Rc<SharedConnection>> {
        let budget = Rc::<Budget>::default();
        let handshake = Builder::new()
            .enable_push(false)
            .max_header_list_size(u32::try_from(max_header_size).unwrap_or(u32::MAX))
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
        let (send, connection) = handshake.map_err(into_io)?;
        let shared = Rc::new(SharedConnection {
            send,
            all: Rc::downgrade(self),
            in_use: Cell::new(0),
            budget,
            undelivered: Undelivered::default(),
            has_carried: Cell::new(false),
            is_untelling: Cell::new(false),
            is_leaving: Cell::new(false),
        });
        // It ends by itself when the server closes it, or when no request can use it any more.
        actix_rt::spawn(drive(connection, Rc::downgrade(&shared)));
        Ok(shared)
    }

    /// Keeps a connection without requests, unless it takes no more or enough are kept.
    fn keep_idle(&self, connection: &Rc<SharedConnection>) {
        let mut open = self.open.borrow_mut();
        let idle = open.iter().filter(|other| other.in_use.get() == 0).count();
        let is_useless = connection.is_leaving.get() || !connection.has_room();
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
