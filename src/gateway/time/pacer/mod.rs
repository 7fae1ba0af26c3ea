//! Precise timer of a worker: wakes tasks at a given instant, to the microsecond.
//!
//! The timers of runtimes, tokio's as well as nginx's, tick once a millisecond. With them, 2000
//! departures a second leave in groups. A pacer keeps its worker's alarms in one heap, and the
//! kernel wakes the worker for the first of them. Each worker has its own pacer, which is used on
//! its thread only.

mod alarm;
mod priority;
#[cfg(test)]
mod simulated_timer;
#[cfg(test)]
mod tests;
mod timer;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::io;
use std::panic::AssertUnwindSafe;
use std::rc::{Rc, Weak};
use std::task::Poll;

use futures_util::FutureExt;
use limit::Moment;

use crate::time::clock;
#[cfg(test)]
use crate::time::simulated::{SimulatedTime, TestClock};
use alarm::Setting;
pub use alarm::{Alarm, Bell};
pub use priority::Priority;
use timer::Timer;

thread_local! {
    /// Pacer of this thread.
    static HERE: RefCell<Option<Rc<Pacer>>> = const { RefCell::new(None) };
}

/// Number of reminders below which unneeded ones stay until they are due.
const MIN_REMINDERS: usize = 64;

/// Timer of one worker, with its alarms.
pub struct Pacer {
    /// Clock of a test; `None`: the machine's clock.
    #[cfg(test)]
    clock: Option<TestClock>,
    /// Timer; `None` on a virtual clock, which the test moves.
    timer: Option<Timer>,
    /// Instant that the timer is set for. While alarms ring, the instant at which the first one
    /// rang.
    armed: Cell<Option<Moment>>,
    /// Reminders of alarms, the earliest first.
    alarms: RefCell<BinaryHeap<Reverse<Pending>>>,
    /// Number of reminders at which the unneeded ones are removed.
    cleanup_at: Cell<usize>,
    /// Number of times that the pacer has rung its due alarms, modulo 2^32, and the last instant.
    rings: Cell<(u32, Moment)>,
}

/// Entry of an alarm in the heap: a reminder to check the alarm.
///
/// The alarm itself knows when it is really due.
struct Pending {
    due: Moment,
    setting: Rc<Setting>,
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Pending {}

impl Pacer {
    /// Starts a pacer on the machine's clock.
    ///
    /// A task on this thread's runtime drives it until the last handle to the pacer is dropped.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has no timer left for this process.
    pub fn start() -> io::Result<Rc<Self>> {
        Ok(Self::new(Some(Timer::new()?)).drive_on_this_thread())
    }

    /// Starts a pacer on a simulated clock, whose task runs as on the machine's clock.
    #[cfg(test)]
    pub(crate) fn simulated(time: &Rc<dyn SimulatedTime>) -> Rc<Self> {
        let pacer = Self {
            clock: Some(TestClock::Simulated(Rc::clone(time))),
            ..Self::new(Some(Timer::simulated(time)))
        };
        pacer.drive_on_this_thread()
    }

    /// Starts the task that rings the pacer's alarms.
    fn drive_on_this_thread(self) -> Rc<Self> {
        let pacer = Rc::new(self);
        let driven = Rc::downgrade(&pacer);
        let timer = pacer.timer.clone();
        actix_rt::spawn(async move {
            // After a panic, go on: the queues of the worker depend on this task.
            while let drive = AssertUnwindSafe(drive(&driven, timer.as_ref()))
                && drive.catch_unwind().await.is_err()
                && let Some(pacer) = driven.upgrade()
            {
                pacer.arm_for_next();
            }
        });
        pacer
    }

    /// Returns this thread's pacer. The first call starts it.
    ///
    /// # Panics
    ///
    /// Panics if the kernel has no timer left at the first call of a worker.
    pub fn here() -> Rc<Self> {
        HERE.with_borrow_mut(|here| {
            let pacer = here.get_or_insert_with(|| {
                Self::start().expect("the kernel has a timer for each worker")
            });
            Rc::clone(pacer)
        })
    }

    /// Replaces this thread's pacer. Returns the previous one.
    #[cfg(test)]
    pub(crate) fn replace_here(pacer: Option<Rc<Self>>) -> Option<Rc<Self>> {
        HERE.replace(pacer)
    }

    /// Creates a pacer whose time stands still at `moment` until [`Pacer::advance`] moves it.
    #[cfg(test)]
    pub(crate) fn standing_at(moment: Moment) -> Rc<Self> {
        Rc::new(Self {
            clock: Some(TestClock::Virtual(Rc::new(Cell::new(moment)))),
            ..Self::new(None)
        })
    }

    /// Creates a pacer without alarms.
    fn new(timer: Option<Timer>) -> Self {
        Self {
            #[cfg(test)]
            clock: None,
            timer,
            armed: Cell::new(None),
            alarms: RefCell::default(),
            cleanup_at: Cell::new(MIN_REMINDERS),
            rings: Cell::default(),
        }
    }

    /// Returns the present instant.
    pub fn now(&self) -> Moment {
        #[cfg(test)]
        if let Some(clock) = &self.clock {
            return clock.now();
        }
        clock::now()
    }

    /// Moves a virtual clock to `moment` and rings all alarms due by then.
    ///
    /// Does nothing on the machine's clock.
    #[cfg(test)]
    pub(crate) fn advance(&self, moment: Moment) {
        if let Some(TestClock::Virtual(time)) = &self.clock {
            time.set(moment.max(time.get()));
            self.ring();
        }
    }

    /// Adds a reminder to the heap, and sets the timer if it is the earliest one.
    fn remind(&self, due: Moment, setting: &Rc<Setting>) {
        let mut alarms = self.alarms.borrow_mut();
        if alarms.len() >= self.cleanup_at.get() {
            alarms.retain(|Reverse(pending)| pending.setting.needs_reminder(pending.due));
            self.cleanup_at.set(MIN_REMINDERS.max(2 * alarms.len()));
        }
        alarms.push(Reverse(Pending {
            due,
            setting: Rc::clone(setting),
        }));
        drop(alarms);
        if self.armed.get().is_none_or(|armed| due < armed) {
            self.arm(due);
        }
    }

    /// Sets the timer.
    fn arm(&self, due: Moment) {
        if let Some(timer) = &self.timer {
            timer.arm(due);
            self.armed.set(Some(due));
        }
    }

    /// Rings the alarms that are due, the earliest first.
    ///
    /// The timer is set only after the woken tasks have run, because most of them set their alarm
    /// again at once.
    fn ring(&self) {
        let now = self.now();
        let (rings, _last) = self.rings.get();
        self.rings.set((rings.wrapping_add(1), now));
        // As if set for now: alarms that the woken tasks set to later instants do not set the
        // timer.
        self.armed.set(Some(now));
        let mut alarms = self.alarms.borrow_mut();
        while alarms.peek().is_some_and(|Reverse(next)| next.due <= now)
            && let Some(Reverse(pending)) = alarms.pop()
        {
            if let Some(later) = pending.setting.remind(pending.due, now) {
                alarms.push(Reverse(Pending {
                    due: later,
                    setting: pending.setting,
                }));
            }
        }
    }

    /// Returns whether the first reminder is due.
    fn is_overdue(&self, now: Moment) -> bool {
        let alarms = self.alarms.borrow();
        alarms.peek().is_some_and(|Reverse(next)| next.due <= now)
    }

    /// Sets the timer for the first reminder.
    fn arm_for_next(&self) {
        self.armed.set(None);
        if let Some(Reverse(next)) = self.alarms.borrow().peek() {
            self.arm(next.due);
        }
    }
}

/// Rings the alarms of a pacer whenever its timer fires, until its last handle is dropped.
async fn drive(driven: &Weak<Pacer>, timer: Option<&Timer>) {
    while let Some(timer) = timer
        && timer.fired().await.is_ok()
        && let Some(pacer) = driven.upgrade()
    {
        pacer.ring();
        yield_to_others().await;
        pacer.arm_for_next();
    }
}

/// Lets the woken tasks of this thread run once, without waiting for anything else.
async fn yield_to_others() {
    let mut is_first_poll = true;
    poll_fn(|cx| {
        if !std::mem::take(&mut is_first_poll) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
