//! Alarms of a gate: each worker thread with waiters has one.
//!
//! The alarm that rings first releases the slots of the waiters of all threads.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use foldhash::fast::RandomState;
use futures_util::StreamExt;
use limit::Moment;
use tokio::sync::watch;

use super::{OriginGate, State};
use crate::time::clock;
use crate::time::pacer::{Alarm, Bell, Pacer};

thread_local! {
    /// Keyed by the gate's address in memory. An entry is removed when its `follow` task ends.
    static HERE: RefCell<HashMap<*const OriginGate, Rc<Alarms>, RandomState>> = RefCell::default();
}

/// Alarm of this thread for one gate.
pub(super) struct Alarms {
    alarm: Alarm,
    /// Instant at which the alarm rings; `None` if it is not set.
    armed: Cell<Option<Moment>>,
    /// Number of waiters of this thread.
    waiting: Cell<usize>,
}

impl Alarms {
    /// Counts a new waiter of this thread and sets the alarm. Starts the alarm on first use.
    pub(super) fn join(gate: &Arc<OriginGate>, state: &mut State, now: Moment) -> Rc<Self> {
        let here = HERE.with_borrow_mut(|all| {
            let new = || Self::start(gate);
            Rc::clone(all.entry(Arc::as_ptr(gate)).or_insert_with(new))
        });
        here.waiting.set(here.waiting.get() + 1);
        here.set(state, now);
        here
    }

    /// Sets this thread's alarm, if it has one. Returns whether the alarm of any thread is set.
    pub(super) fn set_here(gate: &Arc<OriginGate>, state: &mut State, now: Moment) -> bool {
        let here = HERE.try_with(|all| all.borrow().get(&Arc::as_ptr(gate)).cloned());
        if let Ok(Some(here)) = here {
            here.set(state, now);
            return true;
        }
        state.alarm_at(now).is_none()
    }

    /// Counts that a waiter of this thread has left the queue.
    pub(super) fn leave(&self) {
        self.waiting.set(self.waiting.get().saturating_sub(1));
    }

    /// Creates this thread's alarm for a gate, and the task that follows it.
    fn start(gate: &Arc<OriginGate>) -> Rc<Self> {
        let (alarm, bell) = Pacer::here().alarm();
        let here = Rc::new(Self {
            alarm,
            armed: Cell::new(None),
            waiting: Cell::new(0),
        });
        let changes = gate.changes.subscribe();
        actix_rt::spawn(follow(
            FollowedGate(Arc::downgrade(gate)),
            Rc::clone(&here),
            bell,
            changes,
        ));
        here
    }

    /// Sets the alarm for the next departure, unless it already rings sooner.
    fn set(&self, state: &mut State, now: Moment) {
        let Some(at) = state.alarm_at(now) else {
            return;
        };
        match self.armed.get() {
            Some(armed) if armed <= at => return,
            Some(_) => {}
            None => state.armed += 1,
        }
        self.armed.set(Some(at));
        self.alarm.set(Some(at));
    }

    /// Releases the slots that are near, then sets the alarm again if needed.
    ///
    /// It is needed if this thread has waiters, or if no other thread has set its alarm.
    fn ring(&self, gate: &Arc<OriginGate>) {
        let mut state = gate.lock();
        if self.armed.take().is_some() {
            state.armed = state.armed.saturating_sub(1);
        }
        let now = clock::now();
        let released = state.release(&gate.metrics, now);
        if self.waiting.get() > 0 || state.armed == 0 {
            self.set(&mut state, now);
        }
        drop(state);
        gate.grant(released);
    }
}

/// Rings this thread's alarm for a gate until the gate is dropped.
async fn follow(
    gate: FollowedGate,
    here: Rc<Alarms>,
    mut bell: Bell,
    mut changes: watch::Receiver<()>,
) {
    loop {
        let is_over = tokio::select! {
            biased;
            rung = bell.next() => rung.is_none(),
            reload = changes.changed() => reload.is_err(),
        };
        let Some(gate) = gate.0.upgrade().filter(|_| !is_over) else {
            break;
        };
        here.ring(&gate);
    }
}

/// Gate that a task of this thread follows. Dropping it removes this thread's alarm of the gate.
///
/// While this weak reference exists, no other gate can get the same address.
struct FollowedGate(Weak<OriginGate>);

impl Drop for FollowedGate {
    fn drop(&mut self) {
        // The thread may be ending, and its table may be gone.
        let removed = HERE.try_with(|all| all.borrow_mut().remove(&self.0.as_ptr()));
        // The alarm is dropped after the table is no longer borrowed.
        drop(removed);
    }
}
