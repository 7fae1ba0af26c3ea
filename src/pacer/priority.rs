use std::task::{Context, Poll};
use std::time::Duration;

use super::Pacer;
use crate::limit::Moment;

/// Passes of this thread's tasks from an alarm to what it lets go: first the actor runs that hears it, then the request
/// that gets its turn.
const PASSES: u8 = 2;
/// Past it those whom an alarm let go have left.
const RECENT: Duration = Duration::from_micros(500);

/// What a task of many short pieces of work has given way to.
///
/// The runtime looks at the pacer's timer only between many tasks. While a flood of requests is answered that takes half
/// a millisecond, twice for a departure. A task that asks before each piece of work whether departures come first keeps
/// them even: the alarm rings within one such piece, and those whom it wakes run next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority {
    /// The ring that it gave way to, and how many passes are still to come.
    ring: u64,
    passes: u8,
}

impl Pacer {
    /// Ready with the present moment when the task may go on: no alarm is overdue, and those who just heard one have run. It is woken again by
    /// itself.
    pub fn poll_departures_first(&self, task: &mut Priority, cx: &mut Context<'_>) -> Poll<Moment> {
        let now = self.now();
        if self.is_overdue(now) {
            self.ring();
        }
        let (ring, at) = self.rings.get();
        if task.ring != ring {
            task.ring = ring;
            task.passes = PASSES;
        }
        if task.passes == 0 || now.since(at) > RECENT {
            return Poll::Ready(now);
        }
        task.passes -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
