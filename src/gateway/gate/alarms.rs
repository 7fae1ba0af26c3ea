//! The alarms of the threads that have requests at a gate.
//!
//! Each such thread has one. Whichever rings first gives out the slots for all.

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
    /// Keyed by the gate's address in memory. An entry is removed with the task that follows it.
    static HERE: RefCell<HashMap<*const OriginGate, Rc<Alarms>, RandomState>> = RefCell::default();
}

/// This thread's alarm for a gate.
#[derive(Debug)]
pub(super) struct Alarms {
    alarm: Alarm,
    /// When it rings.
    armed: Cell<Option<Moment>>,
    /// Requests of this thread that wait.
    waiting: Cell<usize>,
}

impl Alarms {
    /// Sets this thread's alarm for a request that has joined here. Starts it if need be.
    pub(super) fn join(gate: &Arc<OriginGate>, state: &mut State, now: Moment) -> Rc<Self> {
        let here = HERE.with_borrow_mut(|all| {
            let new = || Self::start(gate);
            Rc::clone(all.entry(Arc::as_ptr(gate)).or_insert_with(new))
        });
        here.waiting.set(here.waiting.get() + 1);
        here.set(state, now);
        here
    }

    /// Sets this thread's alarm, if it has one. Returns whether some thread's alarm is set.
    pub(super) fn set_here(gate: &Arc<OriginGate>, state: &mut State, now: Moment) -> bool {
        let here = HERE.try_with(|all| all.borrow().get(&Arc::as_ptr(gate)).cloned());
        if let Ok(Some(here)) = here {
            here.set(state, now);
            return true;
        }
        state.alarm_at(now).is_none()
    }

    /// A request that has joined here waits no longer.
    pub(super) fn leave(&self) {
        self.waiting.set(self.waiting.get().saturating_sub(1));
    }

    fn start(gate: &Arc<OriginGate>) -> Rc<Self> {
        let (alarm, bell) = Pacer::here().alarm();
        let here = Rc::new(Self {
            alarm,
            armed: Cell::new(None),
            waiting: Cell::new(0),
        });
        let changes = gate.changes.subscribe();
        actix_rt::spawn(follow(
            Followed(Arc::downgrade(gate)),
            Rc::clone(&here),
            bell,
            changes,
        ));
        here
    }

    /// Sets the alarm for the next departure, unless it rings sooner.
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

    /// Gives out the slots that are near, and sets the alarm again if this thread has waiters, or
    /// if no other thread has set its own.
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

/// Follows a gate on this thread until it is dropped.
async fn follow(
    gate: Followed,
    here: Rc<Alarms>,
    mut bell: Bell,
    mut changes: watch::Receiver<()>,
) {
    loop {
        let is_over = tokio::select! {
            biased;
            rung = bell.next() => rung.is_none(),
            told = changes.changed() => told.is_err(),
        };
        let Some(gate) = gate.0.upgrade().filter(|_| !is_over) else {
            break;
        };
        here.ring(&gate);
    }
}

/// A gate that a task of this thread follows. If this is dropped, its alarm here is removed.
///
/// As long as this is there, no other gate has its address.
struct Followed(Weak<OriginGate>);

impl Drop for Followed {
    fn drop(&mut self) {
        // The thread may be ending.
        let removed = HERE.try_with(|all| all.borrow_mut().remove(&self.0.as_ptr()));
        // The table is not borrowed any more when the alarm is dropped.
        drop(removed);
    }
}
