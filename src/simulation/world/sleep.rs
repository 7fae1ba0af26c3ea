use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::World;

/// All who sleep, the first one first.
#[derive(Default)]
pub(super) struct Sleepers {
    heap: RefCell<BinaryHeap<Reverse<Sleeper>>>,
    count: RefCell<u64>,
}

/// Sleepers with the same time wake in the order in which they fell asleep.
struct Sleeper {
    due: Duration,
    nth: u64,
    waker: Weak<RefCell<Waker>>,
}

impl Sleepers {
    fn add(&self, due: Duration, waker: &Rc<RefCell<Waker>>) {
        let mut count = self.count.borrow_mut();
        *count += 1;
        self.heap.borrow_mut().push(Reverse(Sleeper {
            due,
            nth: *count,
            waker: Rc::downgrade(waker),
        }));
    }

    /// When the first one is to be woken.
    pub(super) fn next(&self) -> Option<Duration> {
        let mut heap = self.heap.borrow_mut();
        while let Some(Reverse(first)) = heap.peek() {
            if first.waker.strong_count() > 0 {
                return Some(first.due);
            }
            heap.pop();
        }
        None
    }

    /// Wakes the first one.
    pub(super) fn wake_first(&self) {
        let first = self.heap.borrow_mut().pop();
        if let Some(waker) = first.and_then(|Reverse(first)| first.waker.upgrade()) {
            waker.borrow().wake_by_ref();
        }
    }
}

impl Ord for Sleeper {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.nth).cmp(&(other.due, other.nth))
    }
}

impl PartialOrd for Sleeper {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.nth) == (other.due, other.nth)
    }
}

impl Eq for Sleeper {}

/// Waits for a moment of the virtual time, to the nanosecond.
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
