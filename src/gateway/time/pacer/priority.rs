//! Priority of departures over tasks with many short steps, such as accepting a flood of requests.
//!
//! A departure: the pacer rings an alarm, an actor admits a waiter, and its request leaves.

use std::task::{Context, Poll};
use std::time::Duration;

use limit::Moment;

use super::Pacer;

/// Number of passes over this thread's tasks until a request that an alarm releases has left.
///
/// The actor that receives the alarm runs in the first pass, the request that it admits in the
/// second.
const PASSES: u8 = 2;
/// Time after which the requests that an alarm released have left in any case.
const RECENT: Duration = Duration::from_micros(500);

/// State of a task with many short steps that lets departures go first.
///
/// The runtime checks the pacer's timer only after many tasks. During a flood of requests this
/// takes half a millisecond, and each departure would wait for it twice. A task that checks before
/// each step whether departures go first makes the alarm ring within one step, and gives way to the
/// tasks that the alarm wakes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority {
    /// Number of the last ring for which the task has waited.
    ring: u32,
    /// Number of passes that it still waits.
    passes: u8,
}

impl Pacer {
    /// Returns the state of a task for which no departure is pending.
    pub fn priority(&self) -> Priority {
        Priority {
            ring: self.rings.get().0,
            passes: 0,
        }
    }

    /// Returns ready with the present instant when the task may go on.
    ///
    /// It may go on when no alarm is overdue and the tasks woken by the last one have run.
    /// Otherwise this wakes the task again.
    pub fn poll_departures_first(&self, task: &mut Priority, cx: &mut Context<'_>) -> Poll<Moment> {
        let now = self.now();
        if self.is_overdue(now) {
            self.ring();
        }
        let (ring, rung_at) = self.rings.get();
        if task.ring != ring {
            task.ring = ring;
            task.passes = PASSES;
        }
        if task.passes == 0 || now.since(rung_at) > RECENT {
            return Poll::Ready(now);
        }
        task.passes -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::time::simulated::TestClock;

    const START: Moment = Moment::from_nanos(1_000_000_000);
    const MICROSECOND: Duration = Duration::from_micros(1);

    /// Creates a pacer with an overdue alarm that was not noticed yet.
    fn create_overdue() -> std::rc::Rc<Pacer> {
        let pacer = Pacer::standing_at(START);
        let (alarm, _bell) = pacer.alarm();
        alarm.set(Some(START + MICROSECOND));
        set_clock(&pacer, START + MICROSECOND);
        // The reminder stays with the pacer.
        drop(alarm);
        pacer
    }

    /// Sets the clock without ringing, as if the pacer had not noticed the time.
    fn set_clock(pacer: &Pacer, now: Moment) {
        if let Some(TestClock::Virtual(time)) = &pacer.clock {
            time.set(now);
        }
    }

    /// Returns how often a task waits before it may go on.
    fn count_waits(pacer: &Pacer, task: &mut Priority) -> usize {
        let mut cx = Context::from_waker(Waker::noop());
        let polls = std::iter::from_fn(|| Some(pacer.poll_departures_first(task, &mut cx)));
        polls.take_while(Poll::is_pending).count()
    }

    #[test]
    fn a_task_gives_way_to_an_overdue_alarm_until_the_released_request_has_run() {
        let pacer = create_overdue();
        let mut task = pacer.priority();
        assert_eq!(count_waits(&pacer, &mut task), usize::from(PASSES));
        assert_eq!(count_waits(&pacer, &mut task), 0, "only once for each ring");
    }

    #[test]
    fn a_task_that_begins_after_a_ring_does_not_give_way_to_it() {
        let pacer = create_overdue();
        count_waits(&pacer, &mut Priority::default());
        assert_eq!(count_waits(&pacer, &mut pacer.priority()), 0);
    }

    #[test]
    fn an_old_ring_delays_no_task() {
        let pacer = create_overdue();
        count_waits(&pacer, &mut Priority::default());
        set_clock(&pacer, START + MICROSECOND + RECENT + MICROSECOND);
        assert_eq!(count_waits(&pacer, &mut Priority::default()), 0);
    }
}
