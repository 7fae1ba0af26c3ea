use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::census::KeyState;
use super::messages::Key;
use super::shared::Shared;
use crate::limit::{Bucket, Moment, Rate};
use crate::metrics::ZoneMetrics;
use crate::pacer::Pacer;

/// What the actors of one supervisor share with it. They live on one thread, so plain cells will do.
pub(super) struct Shard {
    pub(super) pacer: Rc<Pacer>,
    pub(super) metrics: Arc<ZoneMetrics>,
    /// Of the keys that have waiters, each at the index that it knows: coming and going costs a few moves, and who
    /// asks for the deepest key walks these alone.
    waiting: RefCell<Vec<Rc<Published>>>,
    /// How many wait, all keys together.
    depth: Cell<usize>,
    /// Of a zone that is kept in a store.
    sharing: RefCell<Option<Rc<Shared>>>,
}

impl Shard {
    pub(super) fn new(pacer: Rc<Pacer>, metrics: Arc<ZoneMetrics>) -> Self {
        Self {
            pacer,
            metrics,
            waiting: RefCell::default(),
            depth: Cell::new(0),
            sharing: RefCell::default(),
        }
    }

    /// How the zone is shared now, if it is.
    pub(super) fn sharing(&self) -> Option<Rc<Shared>> {
        self.sharing.borrow().as_ref().map(Rc::clone)
    }

    /// Sets how the zone is shared.
    pub(super) fn share(&self, zone: Option<Rc<Shared>>) {
        self.sharing.replace(zone);
    }

    /// How many keys have waiters.
    pub(super) fn busy(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// How many wait, all keys together.
    pub(super) fn depth(&self) -> usize {
        self.depth.get()
    }

    /// Shows up to `most` of the keys that have waiters, from just before the index `end` to the front; returns where
    /// to go on, 0 at the end. In steps too this shows all keys that have waiters all the time, some of them twice.
    pub(super) fn walk(&self, end: usize, most: usize, mut show: impl FnMut(&Published)) -> usize {
        let waiting = self.waiting.borrow();
        let end = end.min(waiting.len());
        let start = end.saturating_sub(most);
        waiting[start..end].iter().rev().for_each(|it| show(it));
        start
    }

    /// Takes note that the waiters at one key have become `after`.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn count_waiters(&self, published: &Rc<Published>, after: usize) {
        let before = published.depth.replace(after);
        match (before, after) {
            (0, 0) => return,
            (0, _) => self.add(published),
            (_, 0) => self.remove(published),
            _ => {}
        }
        self.depth
            .set((self.depth.get() + after).saturating_sub(before));
        match after.checked_sub(before) {
            Some(more) => self.metrics.depth.increment(more as f64),
            None => self.metrics.depth.decrement((before - after) as f64),
        }
    }

    fn add(&self, published: &Rc<Published>) {
        let mut waiting = self.waiting.borrow_mut();
        published.index.set(waiting.len());
        waiting.push(Rc::clone(published));
    }

    fn remove(&self, published: &Published) {
        let (mut waiting, index) = (self.waiting.borrow_mut(), published.index.get());
        if index < waiting.len() {
            waiting.swap_remove(index);
        }
        if let Some(moved) = waiting.get(index) {
            moved.index.set(index);
        }
    }
}

/// What one actor shows its supervisor: enough to park it, to list it or to pass it by without asking.
#[derive(Debug)]
pub(super) struct Published {
    pub(super) key: Key,
    /// Messages sent to the actor that it has not handled yet.
    pub(super) pending: Cell<usize>,
    /// How many wait at this key.
    pub(super) depth: Cell<usize>,
    pub(super) bucket: Cell<Bucket>,
    /// When the one who has waited longest joined.
    pub(super) oldest: Cell<Option<Moment>>,
    /// Where it is among the keys that have waiters, while it is.
    index: Cell<usize>,
}

impl Published {
    pub(super) fn new(key: Key, bucket: Bucket) -> Self {
        Self {
            key,
            pending: Cell::new(0),
            depth: Cell::new(0),
            bucket: Cell::new(bucket),
            oldest: Cell::new(None),
            index: Cell::new(0),
        }
    }

    /// What the key is doing, for those who list keys.
    pub(super) fn state(&self, rate: Rate, now: Moment) -> KeyState {
        KeyState {
            key: Key::clone(&self.key),
            depth: self.depth.get(),
            excess: self.bucket.get().excess(rate, now).requests(),
            oldest_wait: self.oldest.get().map_or(Duration::ZERO, |it| now.since(it)),
            active: true,
        }
    }

    /// Nobody waits and nothing is on its way: what is published is all that there is.
    pub(super) fn is_quiet(&self) -> bool {
        self.pending.get() == 0 && self.depth.get() == 0
    }
}
