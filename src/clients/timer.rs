use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use crate::clock;
use crate::limit::Moment;

/// A deadline that mostly moves before it is met: it costs next to nothing to set, as the runtime's timer is left to
/// fire too early and is only then set anew.
#[derive(Debug, Default)]
pub(super) struct Timer {
    deadline: Option<Moment>,
    armed: Option<(Moment, Pin<Box<Sleep>>)>,
}

impl Timer {
    /// Sets the deadline, unless one is set.
    pub(super) fn start(&mut self, span: Duration) {
        if self.deadline.is_none() {
            self.deadline = Some(clock::now() + span);
        }
    }

    /// There is no deadline any more.
    pub(super) fn stop(&mut self) {
        self.deadline = None;
    }

    /// Whether there is a deadline.
    pub(super) fn is_running(&self) -> bool {
        self.deadline.is_some()
    }

    /// Ready once the deadline is past. Where there is none, nothing is waited for.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else {
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
