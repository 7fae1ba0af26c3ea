//! Deadlines that usually move before they expire. Resolution: the tick of the kernel, 10 ms at
//! most.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use limit::Moment;
use tokio::time::Sleep;

use crate::time::clock;

/// Deadline that is cheap to set and move.
///
/// When the deadline moves later, the runtime's timer stays as it is. When it fires, too early, it
/// is set again.
pub struct Deadline {
    /// Instant of the deadline; [`NEVER`] if none is set.
    ///
    /// An `Option` would be larger, and a connection has several deadlines.
    due: Moment,
    /// Timer of the runtime, and the instant that it is set for.
    timer: Option<(Moment, Pin<Box<Sleep>>)>,
}

/// Instant that stands for no deadline.
const NEVER: Moment = Moment::from_nanos(u64::MAX);

impl Default for Deadline {
    fn default() -> Self {
        Self {
            due: NEVER,
            timer: None,
        }
    }
}

impl Deadline {
    /// Sets the deadline, unless one is set.
    pub fn start(&mut self, span: Duration) {
        if !self.is_running() {
            self.due = clock::coarse_now() + span;
        }
    }

    /// Sets the deadline, or moves it.
    pub fn set(&mut self, due: Moment) {
        self.due = due;
    }

    /// Sets the deadline, or moves it earlier. Never moves it later.
    pub fn set_earlier(&mut self, due: Moment) {
        self.due = self.due.min(due);
    }

    /// Removes the deadline.
    pub fn stop(&mut self) {
        self.due = NEVER;
    }

    /// Returns whether a deadline is set.
    pub fn is_running(&self) -> bool {
        self.due != NEVER
    }

    /// Returns the time left at the kernel's last tick; very long if no deadline is set.
    pub fn left(&self) -> Duration {
        self.due.since(clock::coarse_now())
    }

    /// Returns ready once the deadline has passed. If none is set, never wakes the task.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_running() {
            return Poll::Pending;
        }
        let deadline = self.due;
        loop {
            match &mut self.timer {
                // A timer that fires before the deadline was set for an earlier one: it is set
                // again.
                Some((fires_at, sleep)) if *fires_at <= deadline => {
                    if sleep.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    self.timer = None;
                }
                _ => {
                    let left = deadline.since(clock::now());
                    if left.is_zero() {
                        return Poll::Ready(());
                    }
                    self.timer = Some((deadline, Box::pin(tokio::time::sleep(left))));
                }
            }
        }
    }
}
