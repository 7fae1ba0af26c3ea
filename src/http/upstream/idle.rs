//! Connections to one server that wait for their next request.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::io::AsyncRead;

use super::shortage;
use super::stream::OriginStream;
use crate::time::deadline::Deadline;

/// Interval between checks for idle connections that their server has closed.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// An idle connection.
#[derive(Debug)]
pub(super) struct Idle {
    pub(super) stream: OriginStream,
    pub(super) silence: Deadline,
}

impl Idle {
    /// Returns whether the connection can be used again.
    ///
    /// The server must not have closed it, nor sent bytes that belong to no response. This checks
    /// what the runtime already knows. `surely` asks the kernel, too.
    pub(super) fn is_alive(&mut self, surely: bool) -> bool {
        if surely && self.stream.has_news() {
            return false;
        }
        let mut byte = [0];
        let mut byte = tokio::io::ReadBuf::new(&mut byte);
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(&mut self.stream)
            .poll_read(&mut cx, &mut byte)
            .is_pending()
    }
}

/// The idle connections to one server. The one used last is on top.
#[derive(Debug, Default)]
pub(super) struct IdleConnections {
    idle: RefCell<Vec<Idle>>,
    is_swept: Cell<bool>,
}

impl IdleConnections {
    /// Takes the connection used last that is still alive, as [`Idle::is_alive`] finds out.
    pub(super) fn take(&self, surely: bool) -> Option<Idle> {
        let mut idle = self.idle.borrow_mut();
        loop {
            let mut last = idle.pop()?;
            if last.is_alive(surely) {
                return Some(last);
            }
        }
    }

    /// Keeps a connection, unless there are `most` already, or a request needs its descriptor.
    pub(super) fn keep(self: &Rc<Self>, connection: Idle, most: usize) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < most && !shortage::is_short() {
            idle.push(connection);
            if !self.is_swept.replace(true) {
                actix_rt::spawn(sweep(Rc::downgrade(self)));
            }
        }
    }
}

/// Closes idle connections that their server has closed, and all if a request needs a descriptor.
///
/// Ends when no idle connection is left.
async fn sweep(pool: Weak<IdleConnections>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle.borrow_mut();
        let is_short = shortage::is_short();
        idle.retain_mut(|connection| !is_short && connection.is_alive(false));
        if idle.is_empty() {
            pool.is_swept.set(false);
            return;
        }
    }
}
