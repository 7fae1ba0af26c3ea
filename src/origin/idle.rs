//! Connections to one server that wait for their next request.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

use super::shortage;

/// Interval between checks for idle connections that their server has closed.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// A connection that can wait for its next request.
pub(super) trait Reusable {
    /// Returns whether the connection can be used again.
    ///
    /// The server must not have closed it, nor sent bytes that belong to no response. This checks
    /// what the runtime already knows. `surely` asks the kernel, too.
    fn is_alive(&mut self, surely: bool) -> bool;
}

/// The idle connections to one server. The one used last is on top.
///
/// They are boxed, so that little moves when a request takes one and gives it back.
#[derive(Debug)]
pub(super) struct IdleConnections<C> {
    idle: RefCell<Vec<Box<C>>>,
    is_swept: Cell<bool>,
}

impl<C> Default for IdleConnections<C> {
    fn default() -> Self {
        Self {
            idle: RefCell::default(),
            is_swept: Cell::default(),
        }
    }
}

impl<C: Reusable + 'static> IdleConnections<C> {
    /// Takes the connection used last that is still [alive](Reusable::is_alive).
    pub(super) fn take(&self, surely: bool) -> Option<Box<C>> {
        let mut idle = self.idle.borrow_mut();
        loop {
            let mut last = idle.pop()?;
            if last.is_alive(surely) {
                return Some(last);
            }
        }
    }

    /// Keeps a connection, unless there are `most` already, or a request needs its descriptor.
    pub(super) fn keep(self: &Rc<Self>, connection: Box<C>, most: usize) {
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
async fn sweep<C: Reusable>(pool: Weak<IdleConnections<C>>) {
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
