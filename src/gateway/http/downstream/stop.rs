//! Stop signal of a worker's connections: wakes the idle ones when the gateway stops.
//!
//! An idle connection then ends at once, and a busy one after its current response.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use limit::{Moment, more_room};
use slab::Slab;

use crate::time::clock;

/// Stop signal for all connections of one worker.
#[derive(Debug, Default)]
pub struct StopSignal {
    /// Instant of the stop signal; `None` before.
    stopped_at: Cell<Option<Moment>>,
    /// Wakers of the registered connections; `None` while a connection does not wait.
    sleepers: RefCell<Slab<Option<Waker>>>,
}

/// Registration of a connection that is woken when the gateway stops. Dropping it unregisters.
pub(super) struct Sleeper {
    signal: Rc<StopSignal>,
    /// Index of the connection's waker in the signal.
    index: usize,
}

impl StopSignal {
    /// Ends all connections, each after its current response.
    pub fn stop(&self) {
        self.stopped_at.set(Some(clock::now()));
        let sleepers = self.sleepers.borrow();
        let wakers = sleepers.iter().filter_map(|(_, waker)| waker.as_ref());
        wakers.for_each(Waker::wake_by_ref);
    }

    /// Returns whether the gateway is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopped_at.get().is_some()
    }

    /// Registers a connection that waits for the signal.
    pub(super) fn sleeper(self: &Rc<Self>) -> Sleeper {
        let mut sleepers = self.sleepers.borrow_mut();
        if sleepers.len() == sleepers.capacity() {
            // Grows by a quarter: doubling might waste much memory.
            let more = more_room(sleepers.len());
            sleepers.reserve_exact(more);
        }
        Sleeper {
            signal: Rc::clone(self),
            index: sleepers.insert(None),
        }
    }
}

impl Sleeper {
    /// Returns the signal that this is registered with.
    pub(super) fn signal(&self) -> Rc<StopSignal> {
        Rc::clone(&self.signal)
    }

    /// Ready when the gateway is stopping.
    pub(super) fn poll_stopping(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.signal.is_stopping() {
            return Poll::Ready(());
        }
        if let Some(sleeper) = self.signal.sleepers.borrow_mut().get_mut(self.index) {
            match sleeper {
                Some(known) => known.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
        }
        Poll::Pending
    }

    /// Returns whether the gateway is stopping.
    pub(super) fn is_stopping(&self) -> bool {
        self.signal.is_stopping()
    }

    /// Returns the instant of the stop signal, or the current time if there was none.
    pub(super) fn stopped_at(&self) -> Moment {
        self.signal.stopped_at.get().unwrap_or_else(clock::now)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.signal.sleepers.borrow_mut().try_remove(self.index);
    }
}
