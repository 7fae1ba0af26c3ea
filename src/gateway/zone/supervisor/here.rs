//! Supervisors of this thread, which requests of the same thread call directly.
//!
//! A key belongs to one worker, and with few workers many requests come to that worker. A message
//! costs three allocations, two wake-ups and a second pass of the event loop. A direct call of the
//! supervisor costs none of these. Requests of other threads come as messages.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use actix::Addr;
use foldhash::fast::RandomState;

use super::ZoneSupervisor;
use super::actor::{Call, SupervisorActor};

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
pub(super) struct Here {
    pub(super) supervisor: RefCell<ZoneSupervisor>,
    /// Whether it may be called: only while its actor runs.
    ///
    /// It may not be called before the actor has started, and between a panic and the restart.
    pub(super) is_open: Cell<bool>,
}

thread_local! {
    static HERE: RefCell<HashMap<SupervisorId, Rc<Here>, RandomState>> = RefCell::default();
}

/// Makes a supervisor reachable on this thread.
pub fn add(id: SupervisorId, here: Rc<Here>) {
    HERE.with_borrow_mut(|all| all.insert(id, here));
}

/// Removes a supervisor that has ended.
pub(super) fn remove(id: SupervisorId) {
    // On a thread that is ending the map may be gone already.
    let _ended = HERE.try_with(|all| all.borrow_mut().remove(&id));
}

/// Returns the supervisor if it is on this thread and may be called.
pub(super) fn find(id: SupervisorId) -> Option<Rc<Here>> {
    let here = HERE.with_borrow(|all| all.get(&id).map(Rc::clone))?;
    let is_free = here.is_open.get() && here.supervisor.try_borrow_mut().is_ok();
    is_free.then_some(here)
}

impl Here {
    /// Calls the supervisor, which is not borrowed.
    ///
    /// If the call panics, the actor panics in turn, so that it restarts as after any other panic.
    pub(super) fn call<T>(
        &self,
        actor: &Addr<SupervisorActor>,
        call: impl FnOnce(&mut ZoneSupervisor) -> T,
    ) -> Option<T> {
        // A panic may leave the state half changed, but the state is replaced before it is used.
        let called = catch_unwind(AssertUnwindSafe(|| call(&mut self.supervisor.borrow_mut())));
        match called {
            Ok(result) => Some(result),
            Err(panic) => {
                self.is_open.set(false);
                actor.do_send(Call(move |_: &mut ZoneSupervisor| resume_unwind(panic)));
                None
            }
        }
    }
}
