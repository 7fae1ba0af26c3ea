//! Alarms of a pacer, which actors set to the instant at which their next waiter departs.
//!
//! The pacer keeps *reminders* in a heap: instants at which it checks an alarm. An alarm that moves
//! later keeps its reminder, and is checked once too early.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use limit::Moment;

use super::Pacer;

/// Alarm that can be set to one instant at a time. Dropping it ends its [`Bell`].
pub struct Alarm {
    pacer: Rc<Pacer>,
    setting: Rc<Setting>,
}

/// Receiving end of an [`Alarm`]: a stream with an item each time the alarm rings.
///
/// It ends when the alarm is dropped.
pub struct Bell {
    setting: Rc<Setting>,
}

/// State that an alarm, its bell and its reminders share.
#[derive(Debug, Default)]
pub(super) struct Setting {
    /// Instant at which the alarm rings; `None`: never.
    due: Cell<Option<Moment>>,
    /// Earliest reminder for this alarm in the pacer's heap.
    reminder: Cell<Option<Moment>>,
    /// Whether the alarm has rung and the bell has not reported it yet.
    has_rung: Cell<bool>,
    /// Whether the alarm was dropped.
    is_over: Cell<bool>,
    /// Wakes the task that waits for the bell.
    waker: RefCell<Option<Waker>>,
}

impl Pacer {
    /// Creates an alarm and the bell that it rings.
    pub fn alarm(self: &Rc<Self>) -> (Alarm, Bell) {
        let (pacer, setting) = (Rc::clone(self), Rc::<Setting>::default());
        let bell = Bell {
            setting: Rc::clone(&setting),
        };
        (Alarm { pacer, setting }, bell)
    }
}

impl Alarm {
    /// Sets the instant at which the alarm rings; `None` means never.
    ///
    /// Replaces the previous setting.
    pub fn set(&self, due: Option<Moment>) {
        let setting = &self.setting;
        setting.due.set(due);
        // An earlier reminder checks this setting anyway. So an alarm that moves later adds nothing
        // to the heap.
        if let Some(due) = due
            && setting.reminder.get().is_none_or(|reminder| due < reminder)
        {
            setting.reminder.set(Some(due));
            self.pacer.remind(due, setting);
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.setting.due.set(None);
        self.setting.is_over.set(true);
        self.setting.wake();
    }
}

impl Setting {
    /// Returns whether the reminder for the instant `reminder` is still needed.
    ///
    /// It is not if the alarm was dropped, or was set to an earlier instant meanwhile.
    pub(super) fn needs_reminder(&self, reminder: Moment) -> bool {
        !self.is_over.get() && self.reminder.get() == Some(reminder)
    }

    /// Handles a reminder for the instant `reminder`: rings, or returns when to remind again.
    pub(super) fn remind(&self, reminder: Moment, now: Moment) -> Option<Moment> {
        if self.reminder.get() != Some(reminder) {
            return None;
        }
        self.reminder.set(None);
        let due = self.due.get()?;
        if due > now {
            self.reminder.set(Some(due));
            return Some(due);
        }
        self.due.set(None);
        self.has_rung.set(true);
        self.wake();
        None
    }

    /// Wakes the task that waits for the bell.
    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

impl Stream for Bell {
    type Item = ();

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let setting = &self.setting;
        if setting.has_rung.take() {
            Poll::Ready(Some(()))
        } else if setting.is_over.get() {
            Poll::Ready(None)
        } else {
            let mut waker = setting.waker.borrow_mut();
            if !waker
                .as_ref()
                .is_some_and(|known| known.will_wake(cx.waker()))
            {
                *waker = Some(cx.waker().clone());
            }
            Poll::Pending
        }
    }
}
