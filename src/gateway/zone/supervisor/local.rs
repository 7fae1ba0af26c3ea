//! Supervisors of this thread, which requests of the same thread call directly.
//!
//! A key belongs to one worker. With few workers, many requests come to the worker of their key. A
//! message costs three allocations, two wake-ups and a second pass of the event loop. A direct call
//! of the supervisor costs none of these. Requests of other threads come as messages.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use foldhash::fast::RandomState;

use super::ZoneSupervisor;

/// Id of a supervisor, unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::zone) struct SupervisorId(u64);

impl SupervisorId {
    pub(in crate::zone) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Supervisor, reachable by its actor and by the requests of its thread.
pub(super) struct LocalSupervisor {
    pub(super) supervisor: RefCell<ZoneSupervisor>,
    /// Whether it may be called: only while its actor runs.
    ///
    /// Not before the actor has started, and not between a panic and the restart.
    pub(super) is_open: Cell<bool>,
}

thread_local! {
    static LOCAL: RefCell<HashMap<SupervisorId, Rc<LocalSupervisor>, RandomState>> =
        RefCell::default();
}

/// Makes a supervisor reachable on this thread.
pub(super) fn add(id: SupervisorId, local: Rc<LocalSupervisor>) {
    LOCAL.with_borrow_mut(|supervisors| supervisors.insert(id, local));
}

/// Removes a supervisor that has ended.
pub(super) fn remove(id: SupervisorId) {
    // On a thread that is ending, the map may already have been dropped.
    let _ended = LOCAL.try_with(|supervisors| supervisors.borrow_mut().remove(&id));
}

/// Returns the supervisor if it is on this thread and may be called.
pub(super) fn find(id: SupervisorId) -> Option<Rc<LocalSupervisor>> {
    let local = LOCAL.with_borrow(|supervisors| supervisors.get(&id).map(Rc::clone))?;
    let is_free = local.is_open.get() && local.supervisor.try_borrow_mut().is_ok();
    is_free.then_some(local)
}

impl LocalSupervisor {
    /// Calls the supervisor, which is not borrowed.
    ///
    /// # Errors
    ///
    /// Returns the panic of the call. The supervisor may not be called until its actor restarts.
    pub(super) fn call<T>(&self, call: impl FnOnce(&mut ZoneSupervisor) -> T) -> thread::Result<T> {
        // A panic may leave the state half changed, but the state is replaced before it is used.
        let called = catch_unwind(AssertUnwindSafe(|| call(&mut self.supervisor.borrow_mut())));
        if called.is_err() {
            self.is_open.set(false);
        }
        called
    }
}
