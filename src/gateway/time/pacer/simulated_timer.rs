//! Timer on a simulated clock.

use std::cell::Cell;
use std::future::pending;
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use limit::Moment;
use tokio::sync::Notify;

use crate::time::simulated::SimulatedTime;

/// Timer on a simulated clock. Like a timerfd, it fires once for each setting.
#[derive(Debug)]
pub(super) struct SimulatedTimer {
    time: Rc<dyn SimulatedTime>,
    /// Instant at which it fires; `None` once it has fired.
    due: Cell<Option<Moment>>,
    /// Wakes the task that waits, when `due` changes.
    changed: Notify,
}

impl SimulatedTimer {
    pub(super) fn new(time: Rc<dyn SimulatedTime>) -> Self {
        Self {
            time,
            due: Cell::default(),
            changed: Notify::new(),
        }
    }

    pub(super) fn arm(&self, due: Moment) {
        self.due.set(Some(due));
        self.changed.notify_one();
    }

    /// Waits until it fires.
    pub(super) async fn fired(&self) {
        loop {
            let due = self.due.get();
            let fires = async {
                match due {
                    Some(due) => self.time.sleep_until(due).await,
                    None => pending().await,
                }
            };
            let (changed, fires) = (pin!(self.changed.notified()), pin!(fires));
            if let Either::Right(_) = select(changed, fires).await {
                self.due.set(None);
                return;
            }
        }
    }
}
