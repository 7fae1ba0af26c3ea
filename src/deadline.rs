//! Deadlines that mostly move before they are met, to the tick of the kernel.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use crate::clock;
use crate::limit::Moment;

/// A moment until which something must have happened. It costs next to nothing to set, as the runtime's timer is left to
/// fire too early and is only then set anew.
#[derive(Debug, Default)]
pub struct Deadline {
    at: Option<Moment>,
    armed: Option<(Moment, Pin<Box<Sleep>>)>,
}

impl Deadline {
    /// Sets the deadline, unless one is set.
    pub fn start(&mut self, span: Duration) {
        if self.at.is_none() {
            self.at = Some(clock::coarse_now() + span);
        }
    }

    /// Sets the deadline, or moves it.
    pub fn set(&mut self, at: Moment) {
        self.at = Some(at);
    }

    /// Sets the deadline, or moves it where it was later.
    pub fn set_earlier(&mut self, at: Moment) {
        self.at = Some(self.at.map_or(at, |known| known.min(at)));
    }

    /// There is no deadline any more.
    pub fn stop(&mut self) {
        self.at = None;
    }

    /// Whether there is a deadline.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.at.is_some()
    }

    /// Ready once the deadline is past. Where there is none, nothing is waited for.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.at else {
            return Poll::Pending;
        };
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
