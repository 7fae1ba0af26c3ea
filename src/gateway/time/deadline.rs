//! Deadlines that usually move before they expire. Resolution: the tick of the kernel.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use limit::Moment;
use tokio::time::Sleep;

use crate::time::clock;

/// Deadline that is cheap to set and move.
///
/// When the deadline moves later, the runtime's timer stays as it is. When it fires, too early, it is
/// set again.
pub struct Deadline {
    /// Instant of the deadline; [`NEVER`] if none is set. Smaller than an `Option`: a connection has
    /// several deadlines.
    at: Moment,
    /// Timer of the runtime, and the instant that it is set for.
    timer: Option<(Moment, Pin<Box<Sleep>>)>,
}

/// Instant that stands for no deadline.
const NEVER: Moment = Moment::from_nanos(u64::MAX);

impl Default for Deadline {
    fn default() -> Self {
        Self {
            at: NEVER,
            timer: None,
        }
    }
}

impl Deadline {
    /// Sets the deadline, unless one is set.
    pub fn start(&mut self, span: Duration) {
        if !self.is_running() {
            self.at = clock::coarse_now() + span;
        }
    }

    /// Sets the deadline, or moves it.
    pub fn set(&mut self, at: Moment) {
        self.at = at;
    }

    /// Sets the deadline, or moves it earlier. Never moves it later.
    pub fn set_earlier(&mut self, at: Moment) {
        self.at = self.at.min(at);
    }

    /// Removes the deadline.
    pub fn stop(&mut self) {
        self.at = NEVER;
    }

    /// Returns whether a deadline is set.
    pub fn is_running(&self) -> bool {
        self.at != NEVER
    }

    /// Returns the time left at the kernel's last tick; very long if no deadline is set.
    pub fn left(&self) -> Duration {
        self.at.since(clock::coarse_now())
    }

    /// Returns ready once the deadline has passed. If none is set, never wakes the task.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_running() {
            return Poll::Pending;
        }
        let deadline = self.at;
        loop {
            match &mut self.timer {
                Some((at, sleep)) if *at <= deadline => {
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
