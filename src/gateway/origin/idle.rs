//! Idle connections to one server: they wait for their next request.

use std::cell::RefCell;

use limit::Moment;

use super::addresses::KnownAddresses;
use super::shortage;

/// Connection that can wait for its next request.
pub(super) trait Reusable {
    /// Returns whether the connection can be used again.
    ///
    /// It must not have expired. The server must not have closed it, nor sent bytes that belong to
    /// no response. This checks what the runtime already knows; `surely` also asks the kernel.
    fn is_usable(&mut self, now: Moment, surely: bool) -> bool;
}

/// Idle connections to one server. The one used last is on top.
///
/// They are boxed, so that little memory moves when a request takes one and gives it back.
pub(super) struct IdleConnections<C> {
    idle: RefCell<Vec<Box<C>>>,
    /// Addresses of the server's name.
    pub(super) addresses: KnownAddresses,
}

impl<C> Default for IdleConnections<C> {
    fn default() -> Self {
        Self {
            idle: RefCell::default(),
            addresses: KnownAddresses::default(),
        }
    }
}

impl<C: Reusable> IdleConnections<C> {
    /// Takes the connection used last that is still [usable](Reusable::is_usable).
    pub(super) fn take(&self, now: Moment, surely: bool) -> Option<Box<C>> {
        let mut idle = self.idle.borrow_mut();
        loop {
            let mut last = idle.pop()?;
            if last.is_usable(now, surely) {
                return Some(last);
            }
        }
    }

    /// Keeps a connection, unless there are already `most`, or a request needs its descriptor.
    pub(super) fn keep(&self, connection: Box<C>, most: usize) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < most && !shortage::is_short() {
            idle.push(connection);
        }
    }

    /// Closes connections that are no longer usable, or for which `is_valid` is false.
    ///
    /// Closes all connections if a request needs a descriptor.
    pub(super) fn sweep(&self, now: Moment, mut is_valid: impl FnMut(&mut C) -> bool) {
        let is_short = shortage::is_short();
        let mut idle = self.idle.borrow_mut();
        idle.retain_mut(|it| !is_short && is_valid(it) && it.is_usable(now, false));
    }
}
