use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::limit::Bucket;
use crate::metrics::ZoneMetrics;
use crate::pacer::Pacer;

/// What the actors of one supervisor share with it. They live on one thread, so plain cells will do.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) pacer: Rc<Pacer>,
    pub(super) metrics: Arc<ZoneMetrics>,
    /// How many keys have waiters.
    pub(super) busy: Cell<usize>,
}

impl Shard {
    /// Takes note that the waiters at one key have become `after`, from `before`.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn count_waiters(&self, before: usize, after: usize) {
        match (before, after) {
            (0, 0) => return,
            (0, _) => self.busy.set(self.busy.get() + 1),
            (_, 0) => self.busy.set(self.busy.get().saturating_sub(1)),
            _ => {}
        }
        match after.checked_sub(before) {
            Some(more) => self.metrics.depth.increment(more as f64),
            None => self.metrics.depth.decrement((before - after) as f64),
        }
    }
}

/// What one actor shows its supervisor: enough to park it or to pass it by without asking.
#[derive(Debug, Default)]
pub(super) struct Published {
    /// Messages sent to the actor that it has not handled yet.
    pub(super) pending: Cell<usize>,
    /// How many wait at this key.
    pub(super) depth: Cell<usize>,
    pub(super) bucket: Cell<Bucket>,
}

impl Published {
    /// Nobody waits and nothing is on its way: what is published is all that there is.
    pub(super) fn is_quiet(&self) -> bool {
        self.pending.get() == 0 && self.depth.get() == 0
    }
}
