use std::task::{Context, Poll};
use std::time::Duration;

use super::Pacer;
use crate::limit::Moment;

/// Passes of this thread's tasks from an alarm to the request that it releases.
///
/// In the first pass the actor runs that hears the alarm; in the second the request that gets its
/// turn.
const PASSES: u8 = 2;
/// After this time the requests that an alarm released have left.
const RECENT: Duration = Duration::from_micros(500);

/// How far a task with many short steps has given way to departures.
///
/// The runtime checks the pacer's timer only after many tasks. During a flood of requests this
/// takes half a millisecond, and a departure waits for it twice. If a task asks before each step
/// whether departures come first, departures stay even: the alarm rings within one step, and the
/// tasks that it wakes run next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority {
    /// The last ring that the task gave way to, and how many passes are still to come.
    ring: u64,
    passes: u8,
}

impl Pacer {
    /// Ready with the present moment when the task may go on.
    ///
    /// That is when no alarm is overdue and the tasks that just heard one have run. Otherwise the
    /// task is woken again without further action.
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
