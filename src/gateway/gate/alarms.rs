//! Alarms of a gate: each worker thread with waiters has one, which rings before the next slot.
//!
//! The alarm that rings first releases the waiters of all threads whose slot is near. The alarm
//! itself is one of the thread's [`Pacer`].

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
    rings_at: Cell<Option<Moment>>,
    /// Number of waiters of this thread.
    waiters: Cell<usize>,
}

impl ThreadAlarm {
    /// Counts a new waiter of this thread and sets the alarm. Starts the alarm on first use.
    pub(super) fn join(gate: &Arc<OriginGate>, state: &mut State, now: Moment) -> Rc<Self> {
        let alarm = ALARMS.with_borrow_mut(|all| {
            let new = || Self::start(gate);
            Rc::clone(all.entry(Arc::as_ptr(gate)).or_insert_with(new))
        });
        alarm.waiters.set(alarm.waiters.get() + 1);
        alarm.set(state, now);
        alarm
    }

    /// Sets this thread's alarm, if it has one for this gate.
    ///
    /// Returns whether no other thread must be woken: an alarm is set, or none is needed.
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
        self.waiters.set(self.waiters.get().saturating_sub(1));
    }

    /// Creates this thread's alarm for a gate, and the task that follows it.
    fn start(gate: &Arc<OriginGate>) -> Rc<Self> {
        let (alarm, bell) = Pacer::here().alarm();
        let alarm = Rc::new(Self {
            alarm,
            rings_at: Cell::new(None),
            waiters: Cell::new(0),
        });
        let (followed, changes) = (FollowedGate(Arc::downgrade(gate)), gate.changes.subscribe());
        actix_rt::spawn(follow(followed, Rc::clone(&alarm), bell, changes));
        alarm
    }

    /// Sets the alarm for the next departure, unless it already rings by then.
    fn set(&self, state: &mut State, now: Moment) {
        let Some(next) = state.alarm_at(now) else {
            return;
        };
        match self.rings_at.get() {
            Some(rings_at) if rings_at <= next => return,
            Some(_) => {}
            None => state.alarm_count += 1,
        }
        self.rings_at.set(Some(next));
        self.alarm.set(Some(next));
    }

    /// Releases the waiters whose slot is near, then sets the alarm again if needed.
    ///
    /// It is needed if this thread has waiters, or if no other thread has set its alarm.
    fn handle_ring(&self, gate: &Arc<OriginGate>) {
        let mut state = gate.lock();
        if self.rings_at.take().is_some() {
            state.alarm_count = state.alarm_count.saturating_sub(1);
        }
        let now = clock::now();
        let released = state.release(&gate.metrics, now);
        if self.waiters.get() > 0 || state.alarm_count == 0 {
            self.set(&mut state, now);
        }
        drop(state);
        gate.grant(released);
    }
}

/// Handles each ring of this thread's alarm and each change of the gate, until it is dropped.
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
            received = changes.changed() => received.is_err(),
        };
        let Some(gate) = gate.0.upgrade().filter(|_| !is_over) else {
            break;
        };
        alarm.handle_ring(&gate);
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
