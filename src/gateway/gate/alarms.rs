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
    /// Alarms of this thread, by the gate's address in memory.
    ///
    /// An entry is removed when its `follow` task ends.
    static ALARMS: RefCell<HashMap<*const OriginGate, Rc<ThreadAlarm>, RandomState>> =
        RefCell::default();
}

/// Alarm of this thread for one gate.
pub(super) struct ThreadAlarm {
    alarm: Alarm,
    /// Instant at which the alarm rings; `None` if it is not set.
    armed: Cell<Option<Moment>>,
    /// Number of waiters of this thread.
    waiting: Cell<usize>,
}

impl ThreadAlarm {
    /// Counts a new waiter of this thread and sets the alarm. Starts the alarm on first use.
    pub(super) fn join(gate: &Arc<OriginGate>, state: &mut State, now: Moment) -> Rc<Self> {
        let alarm = ALARMS.with_borrow_mut(|all| {
            let new = || Self::start(gate);
            Rc::clone(all.entry(Arc::as_ptr(gate)).or_insert_with(new))
        });
        alarm.waiting.set(alarm.waiting.get() + 1);
        alarm.set(state, now);
        alarm
    }

    /// Sets this thread's alarm, if it has one. Returns whether the alarm of any thread is set.
    pub(super) fn set_here(gate: &Arc<OriginGate>, state: &mut State, now: Moment) -> bool {
        let known = ALARMS.try_with(|all| all.borrow().get(&Arc::as_ptr(gate)).cloned());
        if let Ok(Some(alarm)) = known {
            alarm.set(state, now);
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
        let alarm = Rc::new(Self {
            alarm,
            armed: Cell::new(None),
            waiting: Cell::new(0),
        });
        let (followed, changes) = (FollowedGate(Arc::downgrade(gate)), gate.changes.subscribe());
        actix_rt::spawn(follow(followed, Rc::clone(&alarm), bell, changes));
        alarm
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
    alarm: Rc<ThreadAlarm>,
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
        alarm.ring(&gate);
    }
}

/// Gate that a task of this thread follows. Dropping it removes this thread's alarm of the gate.
///
/// While this weak reference exists, no other gate can get the same address.
struct FollowedGate(Weak<OriginGate>);

impl Drop for FollowedGate {
    fn drop(&mut self) {
        // The thread may be ending, and its table may be gone. The alarm is dropped at the end,
        // when the table is no longer borrowed.
        let _removed = ALARMS.try_with(|all| all.borrow_mut().remove(&self.0.as_ptr()));
    }
}
