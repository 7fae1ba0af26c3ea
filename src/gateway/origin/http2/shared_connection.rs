//! One HTTP/2 connection to a server, and the permit of a request on it.
//!
//! Each request has a *stream* of the connection. The server limits their number. The connections
//! of one server are in the parent module.

use std::cell::{Cell, OnceCell, RefCell};
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Ping, PingPong};
use limit::{Moment, ReuseLimits, Usage};
use tokio::task::AbortHandle;

use super::liveness::{Finding, Liveness};
use super::read_ahead::UnreadBytes;
use super::watched_stream::Budget;
use super::{CONNECTION_WINDOW, Http2Connections, STREAM_WINDOW};
use crate::time::clock;

/// Requests at once for which [`CONNECTION_WINDOW`] suffices, even if the server allows more.
const MAX_STREAMS: usize = (CONNECTION_WINDOW / STREAM_WINDOW) as usize;
/// Number of buffered bytes above which a connection takes no more requests.
const CONGESTED: usize = 16 * STREAM_WINDOW as usize;
/// Value that stands for an unknown stream limit: the server has not sent its settings yet.
pub(super) const UNKNOWN_STREAM_LIMIT: usize = u32::MAX as usize + 1;
/// Stream limit of a connection whose server never sends its settings.
///
/// RFC 9113, section 6.5.2, recommends at least this.
const DEFAULT_STREAM_LIMIT: usize = 100;

/// HTTP/2 connection with its number of requests.
#[derive(Debug)]
pub(super) struct SharedConnection {
    /// Handle of h2 that opens streams.
    pub(super) send: SendRequest<Bytes>,
    /// Connections to the same server, including this one.
    pub(super) siblings: Weak<Http2Connections>,
    /// Number of requests on the connection.
    pub(super) in_use: Cell<usize>,
    /// Amount that the server may still send.
    pub(super) budget: Rc<Budget>,
    /// Number of received bytes that clients have not read yet.
    pub(super) unread: UnreadBytes,
    /// Age and number of requests, which limit the reuse.
    pub(super) usage: Cell<Usage>,
    /// Instant until which the connection may be used while it has no requests.
    pub(super) usable_until: Cell<Moment>,
    /// Address of the server; `None` on a unix socket.
    pub(super) address: Option<IpAddr>,
    /// State of the check whether the server still answers.
    liveness: RefCell<Liveness>,
    /// Handle of h2 that sends pings.
    pings: RefCell<Option<PingPong>>,
    /// Task that moves the frames of the connection.
    pub(super) task: OnceCell<AbortHandle>,
    /// Whether the server has not answered a ping yet.
    pub(super) is_suspect: Cell<bool>,
    /// Whether the server has not sent its stream limit in time.
    pub(super) has_default_limit: Cell<bool>,
    /// Whether the connection takes no more requests.
    pub(super) is_leaving: Cell<bool>,
}

impl SharedConnection {
    /// Creates a new connection without requests.
    pub(super) fn new(
        send: SendRequest<Bytes>,
        pings: Option<PingPong>,
        siblings: Weak<Http2Connections>,
        budget: Rc<Budget>,
        address: Option<IpAddr>,
        limits: &ReuseLimits,
    ) -> Self {
        let now = clock::now();
        Self {
            send,
            siblings,
            in_use: Cell::new(0),
            budget,
            unread: UnreadBytes::default(),
            usage: Cell::new(Usage::new(limits, now)),
            usable_until: Cell::new(now),
            address,
            liveness: RefCell::new(Liveness::new(now)),
            pings: RefCell::new(pings),
            task: OnceCell::new(),
            is_suspect: Cell::new(false),
            has_default_limit: Cell::new(false),
            is_leaving: Cell::new(false),
        }
    }

    /// Returns whether the server takes another request on this connection.
    pub(super) fn has_free_stream(&self) -> bool {
        let limit = match self.send.current_max_send_streams() {
            UNKNOWN_STREAM_LIMIT if self.has_default_limit.get() => DEFAULT_STREAM_LIMIT,
            // Until the server has sent its limit, one request uses the connection.
            UNKNOWN_STREAM_LIMIT => 1,
            limit => limit.min(MAX_STREAMS),
        };
        self.in_use.get() < limit
    }

    /// Returns whether the buffers are so full that further requests use another connection.
    pub(super) fn is_congested(&self) -> bool {
        self.unread.get() >= CONGESTED
    }

    /// Returns whether the server may still send its stream limit.
    pub(super) fn awaits_limit(&self) -> bool {
        let is_limit_unknown = self.send.current_max_send_streams() == UNKNOWN_STREAM_LIMIT;
        is_limit_unknown && !self.has_default_limit.get() && !self.is_leaving.get()
    }

    /// Returns whether the connection still takes requests, now or later.
    pub(super) fn is_open(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let ready = self.send.clone().poll_ready(&mut cx);
        !self.is_leaving.get() && !matches!(ready, Poll::Ready(Err(_)))
    }

    /// Returns whether the connection may carry another request, by its age and use.
    pub(super) fn may_carry(&self, limits: &ReuseLimits, now: Moment) -> bool {
        let is_idle_for_long = self.in_use.get() == 0 && now >= self.usable_until.get();
        !is_idle_for_long && self.usage.get().may_carry(limits, now)
    }

    /// Checks whether the server still answers. Returns whether the connection is lost.
    ///
    /// All requests of a lost connection end with an error.
    pub(super) fn check(&self, now: Moment) -> bool {
        let (received, in_use) = (self.budget.received.get(), self.in_use.get() > 0);
        let finding = self.liveness.borrow_mut().check(received, in_use, now);
        self.is_suspect.set(finding == Finding::Suspect);
        match finding {
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
        finding == Finding::Lost
    }
}

/// Permit for one request on a connection. Dropping it gives the permit back.
pub(super) struct StreamPermit {
    pub(super) connection: Rc<SharedConnection>,
    /// Whether the connection had carried a request before.
    pub(super) is_reused: bool,
    /// Whether the whole response arrived and was taken.
    pub(super) is_whole: bool,
}

impl StreamPermit {
    /// Takes a permit on this connection, and counts the request.
    pub(super) fn take(connection: &Rc<SharedConnection>) -> Self {
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
        let remaining = self.connection.in_use.get().saturating_sub(1);
        self.connection.in_use.set(remaining);
        self.connection.budget.end(self.is_whole, remaining);
        if remaining == 0
            && let Some(siblings) = self.connection.siblings.upgrade()
        {
            siblings.keep_idle(&self.connection);
        }
    }
}
