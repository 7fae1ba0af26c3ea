//! The supervisors of this thread, which its requests ask in place.
//!
//! A key belongs to one worker, and with few workers many requests come to that one. A message
//! costs them three allocations, two wake-ups and a second turn of the event loop. So they call the
//! supervisor as its actor would. What other threads ask comes as a message.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use actix::{Addr, Message};
use foldhash::fast::RandomState;

use super::ZoneSupervisor;
use super::actor::SupervisorActor;

/// What tells a supervisor from all others of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::zone) struct SupervisorId(u64);

impl SupervisorId {
    pub(in crate::zone) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A supervisor where its actor and the requests of its thread reach it.
pub(super) struct Here {
    pub(super) supervisor: RefCell<ZoneSupervisor>,
    /// Whether it may be asked: not before its actor has started, and not after a panic until the
    /// actor has started again.
    pub(super) is_open: Cell<bool>,
}

thread_local! {
    static HERE: RefCell<HashMap<SupervisorId, Rc<Here>, RandomState>> = RefCell::default();
}

/// A supervisor has panicked while a request called it: its actor is to start again.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Panicked(pub(super) Box<dyn Any + Send>);

pub fn add(id: SupervisorId, here: Rc<Here>) {
    HERE.with_borrow_mut(|all| all.insert(id, here));
}

pub(super) fn remove(id: SupervisorId) {
    // A thread that is ending has none any more.
    let _ended = HERE.try_with(|all| all.borrow_mut().remove(&id));
}

/// Returns the supervisor, if it is on this thread and may be asked.
pub(super) fn find(id: SupervisorId) -> Option<Rc<Here>> {
    let here = HERE.with_borrow(|all| all.get(&id).map(Rc::clone))?;
    let is_free = here.is_open.get() && here.supervisor.try_borrow_mut().is_ok();
    is_free.then_some(here)
}

impl Here {
    /// Calls the supervisor, which is free.
    ///
    /// If it panics, its actor panics in turn, so that it starts again as after any other panic.
    pub(super) fn call<T>(
        &self,
        actor: &Addr<SupervisorActor>,
        call: impl FnOnce(&mut ZoneSupervisor) -> T,
    ) -> Option<T> {
        // The state that a panic may have left half changed is replaced before it is used.
        let called = catch_unwind(AssertUnwindSafe(|| call(&mut self.supervisor.borrow_mut())));
        match called {
            Ok(result) => Some(result),
            Err(panic) => {
                self.is_open.set(false);
                actor.do_send(Panicked(panic));
                None
            }
        }
    }
}
