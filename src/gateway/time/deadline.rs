//! Deadlines that usually move before they are met. Resolution: the tick of the kernel.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use limit::Moment;
use tokio::time::Sleep;

use crate::time::clock;

/// Deadline that is cheap to set and move.
///
/// The runtime's timer is not changed when the deadline moves later. It fires early, and only then
/// is it set again.
pub struct Deadline {
    /// Instant of the deadline; `NEVER` if none is set. Saves memory: a connection has several.
    at: Moment,
    armed: Option<(Moment, Pin<Box<Sleep>>)>,
}

/// Stands for no deadline.
const NEVER: Moment = Moment::from_nanos(u64::MAX);

impl Default for Deadline {
    fn default() -> Self {
        Self {
            at: NEVER,
            armed: None,
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

    /// Returns ready once the deadline has passed. Pending, without a wake-up, if none is set.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_running() {
            return Poll::Pending;
        }
        let deadline = self.at;
        loop {
            match &mut self.armed {
                Some((at, sleep)) if *at <= deadline => {
                    if sleep.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    self.armed = None;
                }
                _ => {
                    let left = deadline.since(clock::now());
                    if left.is_zero() {
                        return Poll::Ready(());
                    }
                    self.armed = Some((deadline, Box::pin(tokio::time::sleep(left))));
                }
            }
        }
    }
}
