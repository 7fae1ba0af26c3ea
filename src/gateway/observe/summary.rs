//! Summarizes frequent events in few lines of the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;

/// Interval of lines about changes, which have few repetitions.
pub const SECOND: Duration = Duration::from_secs(1);
/// Interval of lines about requests, of which many are rejected for a long time.
pub const MINUTE: Duration = Duration::from_secs(60);

/// Writes at most one line an interval, with the number of events since the line before.
///
/// The first event after an interval without events has its line at once. Later ones have one line
/// at the end of each interval. The end of the process writes a last one.
pub struct Summary<T: 'static>(Arc<Shared<T>>);

/// State that all clones share.
struct Shared<T: 'static> {
    /// Number of events since the last line.
    count: AtomicU64,
    state: Mutex<State<T>>,
    /// Minimum time between two lines.
    interval: Duration,
    /// Writes the line of an event and the number of events.
    write: fn(&T, u64),
}

/// Events that have no line yet.
struct State<T> {
    /// Event that the next line describes.
    event: Option<T>,
    /// Whether a task ([`Shared::follow`]) writes the line of each interval.
    is_followed: bool,
}

impl<T: Send + 'static> Summary<T> {
    /// Creates a summary. `write`: writes the line of an event and the number of events.
    pub fn every(interval: Duration, write: fn(&T, u64)) -> Self {
        Self(Arc::new(Shared {
            count: AtomicU64::new(0),
            state: Mutex::new(State {
                event: None,
                is_followed: false,
            }),
            interval,
            write,
        }))
    }

    /// Counts an event. `describe` is called for the first one since the last line.
    ///
    /// The others cost one atomic addition.
    pub fn count_keeping_first(&self, describe: impl FnOnce() -> T) {
        if self.0.count.fetch_add(1, Ordering::Relaxed) == 0 {
            self.0.put(describe());
        }
    }

    /// Counts an event. The next line describes the last one.
    pub fn count_keeping_last(&self, event: T) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        self.0.put(event);
    }
}

impl<T: Send + 'static> Shared<T> {
    /// Keeps an event for the next line. If no task runs, writes the line now and starts the task.
    ///
    /// Without a runtime there is no task, and each event has its line at once.
    fn put(self: &Arc<Self>, event: T) {
        let mut state = self.lock();
        state.event = Some(event);
        if state.is_followed {
            return;
        }
        let runtime = Handle::try_current();
        state.is_followed = runtime.is_ok();
        drop(state);
        self.write_line();
        if let Ok(runtime) = runtime {
            runtime.spawn(Arc::clone(self).follow());
        }
    }

    /// Writes one line at the end of each interval, until one has no event.
    async fn follow(self: Arc<Self>) {
        loop {
            sleep(self.interval).await;
            let mut state = self.lock();
            if state.event.is_none() {
                // An event that is counted from now on is described after this, and starts a new
                // task.
                state.is_followed = false;
                return;
            }
            drop(state);
            self.write_line();
        }
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line about the events since the last one.
    fn write_line(&self) {
        let mut state = self.lock();
        let Some(event) = state.event.take() else {
            return;
        };
        let count = self.count.swap(0, Ordering::Relaxed);
        drop(state);
        (self.write)(&event, count);
    }
}

/// Writes the last events, which the end of the process would lose.
impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        self.write_line();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::task::yield_now;
    use tokio::time::advance;

    use super::*;

    thread_local! {
        static LINES: RefCell<Vec<(u32, u64)>> = RefCell::default();
    }

    /// Creates a summary that writes its lines to `LINES`: an event and the number of events.
    fn create_summary() -> Summary<u32> {
        Summary::every(SECOND, |event, count| {
            LINES.with_borrow_mut(|lines| lines.push((*event, count)));
        })
    }

    async fn advance_a_second() {
        // The task sets its timer when it is first polled.
        yield_now().await;
        advance(SECOND).await;
        yield_now().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_a_second_counts_all_events_and_describes_the_first() {
        let summary = create_summary();
        for event in 1..=1000 {
            summary.count_keeping_first(|| event);
        }
        assert_eq!(LINES.take(), [(1, 1)], "at once");
        advance_a_second().await;
        assert_eq!(LINES.take(), [(2, 999)]);
        summary.count_keeping_first(|| 7);
        assert_eq!(LINES.take(), [], "the second is not over");
        advance_a_second().await;
        assert_eq!(LINES.take(), [(7, 1)]);
        advance_a_second().await;
        advance_a_second().await;
        assert_eq!(LINES.take(), [], "nothing happened");
        summary.count_keeping_first(|| 8);
        assert_eq!(LINES.take(), [(8, 1)], "at once after a pause");
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_can_describe_the_last_event_instead_of_the_first() {
        let summary = create_summary();
        (1..=18).for_each(|change| summary.count_keeping_last(change));
        assert_eq!(LINES.take(), [(1, 1)]);
        advance_a_second().await;
        assert_eq!(LINES.take(), [(18, 17)]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_events_are_written_at_the_end() {
        let shared = {
            let summary = create_summary();
            (1..=3).for_each(|event| summary.count_keeping_first(|| event));
            assert_eq!(LINES.take(), [(1, 1)]);
            Arc::downgrade(&summary.0)
        };
        assert_eq!(LINES.take(), [], "the task still waits");
        advance_a_second().await;
        assert_eq!(LINES.take(), [(2, 2)]);
        advance_a_second().await;
        assert!(shared.upgrade().is_none(), "the task has ended");
    }

    #[test]
    fn without_a_runtime_each_event_has_its_line() {
        let summary = create_summary();
        (1..=3).for_each(|event| summary.count_keeping_first(|| event));
        assert_eq!(LINES.take(), [(1, 1), (2, 1), (3, 1)]);
    }
}
