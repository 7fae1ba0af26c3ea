//! Timers of a simulation, to the nanosecond.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::World;

/// Waker of a sleeping task.
type WeakWaker = Weak<RefCell<Waker>>;

/// All sleeping tasks.
#[derive(Default)]
pub(super) struct Sleepers {
    /// Wakers by time. Tasks with the same time wake in the order in which they fell asleep.
    wakers: RefCell<BTreeMap<(Duration, u64), WeakWaker>>,
    /// Number of tasks that have slept so far.
    count: Cell<u64>,
}

impl Sleepers {
    /// Adds a task that sleeps until `due`.
    fn add(&self, due: Duration, waker: &Rc<RefCell<Waker>>) {
        let number = self.count.get();
        self.count.set(number + 1);
        let mut wakers = self.wakers.borrow_mut();
        wakers.insert((due, number), Rc::downgrade(waker));
    }

    /// Returns the time of the first wake-up.
    pub(super) fn next(&self) -> Option<Duration> {
        let mut wakers = self.wakers.borrow_mut();
        while let Some(first) = wakers.first_entry() {
            if first.get().strong_count() > 0 {
                return Some(first.key().0);
            }
            first.remove();
        }
        None
    }

    /// Wakes the first task.
    pub(super) fn wake_first(&self) {
        let first = self.wakers.borrow_mut().pop_first();
        if let Some(waker) = first.and_then(|(_, waker)| waker.upgrade()) {
            waker.borrow().wake_by_ref();
        }
    }
}

/// Waits for an instant of the virtual time, to the nanosecond.
pub(in crate::simulation) struct Sleep {
    world: Rc<World>,
    due: Duration,
    waker: Option<Rc<RefCell<Waker>>>,
}

impl Sleep {
    pub(super) fn new(world: Rc<World>, due: Duration) -> Self {
        Self {
            world,
            due,
            waker: None,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.world.now() >= self.due {
            return Poll::Ready(());
        }
        if let Some(waker) = &self.waker {
            waker.borrow_mut().clone_from(cx.waker());
        } else {
            let waker = Rc::new(RefCell::new(cx.waker().clone()));
            self.world.sleepers.add(self.due, &waker);
            self.waker = Some(waker);
        }
        Poll::Pending
    }
}
