//! HTTP/2 pings: detect clients that have vanished without closing their connection.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use h2::{Ping, PingPong};

use crate::time::deadline::Deadline;

/// Time between the reply to a ping and the next ping.
const PING_EVERY: Duration = Duration::from_secs(30);
/// Maximum time for the client's reply to a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Pings a client to detect that it has vanished.
pub(super) struct KeepAlive {
    /// `None` if h2 provides no pings for this connection.
    pings: Option<PingPong>,
    /// Deadline for the next ping, or for the reply to the last one.
    timer: Deadline,
    /// Whether a ping was sent and not answered.
    is_ping_sent: bool,
}

impl KeepAlive {
    pub(super) fn new(pings: Option<PingPong>) -> Self {
        Self {
            pings,
            timer: Deadline::default(),
            is_ping_sent: false,
        }
    }

    /// Ready when a ping was not answered in time.
    pub(super) fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(pings) = &mut self.pings else {
            return Poll::Pending;
        };
        loop {
            if self.is_ping_sent && pings.poll_pong(cx).is_ready() {
                self.is_ping_sent = false;
                self.timer.stop();
            }
            self.timer.start(if self.is_ping_sent {
                PING_TIMEOUT
            } else {
                PING_EVERY
            });
            ready!(self.timer.poll(cx));
            if self.is_ping_sent || pings.send_ping(Ping::opaque()).is_err() {
                return Poll::Ready(());
            }
            self.is_ping_sent = true;
            self.timer.stop();
        }
    }
}
