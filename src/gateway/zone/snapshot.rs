//! State that the actors of one supervisor share with it: `Shard` for all keys, `Snapshot` for one.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use limit::{Bucket, Measure, Moment, Rate, Refusal, nanos};
use tokio::sync::oneshot;

use super::answer::{Answer, Rejection};
use super::arrivals::ArrivalLog;
use super::heavy::HeavyCount;
use super::join::{Join, Key};
use super::stats::{KeyState, PermitsElsewhere};
use super::store_link::StoreLink;
use crate::observe::metrics::{Level, LimitStatus, ZoneMetrics};
use crate::time::pacer::Pacer;

/// Duration for which `Shard::withheld` counts.
const KEPT_ELSEWHERE: Duration = Duration::from_secs(2);

/// State that the actors of one supervisor share with it.
///
/// The actors and the supervisor run on one thread, so plain cells suffice.
pub(super) struct Shard {
    pub(super) pacer: Rc<Pacer>,
    pub(super) metrics: Arc<ZoneMetrics>,
    /// Keys that have waiters, so that a search for the deepest key visits only these.
    ///
    /// Each snapshot knows its index here, so that removing one costs a few moves.
    waiting: RefCell<Vec<Rc<Snapshot>>>,
    /// Number of waiters of all keys.
    pub(super) depth: Cell<usize>,
    /// Number of requests in flight of all keys, under limits with `in_flight`.
    pub(super) running: Cell<usize>,
    /// Number of keys that have waiters or requests in flight.
    pub(super) busy: Cell<usize>,
    /// Link to the store, for a zone that is kept in one.
    store_link: RefCell<Option<Rc<StoreLink>>>,
    /// Last key without permits here while permits of vanished gateways were withheld.
    ///
    /// With these permits, and the time at which this was noted.
    withheld: RefCell<Option<(Key, PermitsElsewhere, Moment)>>,
    /// Requests, rejections and waits by key, over the last minutes.
    pub(super) heavy: RefCell<HeavyCount>,
    /// Arrivals of the last minutes, for a replay with other settings.
    pub(super) arrivals: RefCell<ArrivalLog>,
}

impl Shard {
    pub(super) fn new(pacer: Rc<Pacer>, metrics: Arc<ZoneMetrics>, arrivals: ArrivalLog) -> Self {
        Self {
            arrivals: RefCell::new(arrivals),
            pacer,
            metrics,
            waiting: RefCell::default(),
            depth: Cell::new(0),
            running: Cell::new(0),
            busy: Cell::new(0),
            store_link: RefCell::default(),
            withheld: RefCell::default(),
            heavy: RefCell::default(),
        }
    }

    /// Returns the link to the store, if the zone is kept in one.
    pub(super) fn store_link(&self) -> Option<Rc<StoreLink>> {
        self.store_link.borrow().as_ref().map(Rc::clone)
    }

    /// Returns whether the zone is kept in a store.
    pub(super) fn is_shared(&self) -> bool {
        self.store_link.borrow().is_some()
    }

    /// Replaces the link to the store.
    pub(super) fn set_store_link(&self, link: Option<Rc<StoreLink>>) {
        self.store_link.replace(link);
    }

    /// Notes the permits that other gateways hold of a key without permits here.
    ///
    /// Only if some are withheld: then rejections of the key have a reason that an operator seeks.
    pub(super) fn note_elsewhere(&self, key: &Key, elsewhere: PermitsElsewhere, now: Moment) {
        if elsewhere.withheld > 0 {
            let noted = (Key::clone(key), elsewhere, now);
            self.withheld.replace(Some(noted));
        }
    }

    /// Returns the recent permits of other gateways for a key without permits here.
    ///
    /// Returns `None` unless some of them were withheld.
    pub(super) fn recent_elsewhere(&self, key: &[u8], now: Moment) -> Option<PermitsElsewhere> {
        let withheld = self.withheld.borrow();
        let (last, elsewhere, at) = withheld.as_ref()?;
        (**last == *key && now.since(*at) < KEPT_ELSEWHERE).then_some(*elsewhere)
    }

    /// Counts a request of a key.
    pub(super) fn count_request(&self, key: &Key, now: Moment) {
        self.record(Measure::Requests, key, 1, now);
    }

    fn record(&self, measure: Measure, key: &Key, weight: u64, now: Moment) {
        self.heavy.borrow_mut().record(measure, key, weight, now);
    }

    /// Records the wait of a request of a key.
    pub(super) fn record_wait(&self, key: &Key, wait: Duration, now: Moment) {
        self.metrics.waits.record(wait);
        self.record(Measure::Waits, key, nanos(wait), now);
    }

    /// Rejects a request of a key. Returns whether the client was still connected.
    ///
    /// A disconnected client counts as cancelled, not as rejected. Nothing was charged, so nothing
    /// is refunded.
    pub(super) fn reject(
        &self,
        key: &Key,
        reply: oneshot::Sender<Answer>,
        rejection: Rejection,
        dry_run: bool,
        now: Moment,
    ) -> bool {
        let is_connected = reply.send(Answer::Rejected(rejection)).is_ok();
        if is_connected {
            self.count_rejection(key, rejection.status(dry_run), now);
        }
        is_connected
    }

    /// Counts a request of a key if this status means that it was rejected, not only in a dry run.
    pub(super) fn count_rejection(&self, key: &Key, status: LimitStatus, now: Moment) {
        if status == LimitStatus::Rejected {
            self.record(Measure::Rejections, key, 1, now);
        }
    }

    /// Answers a probe: `None` if a join would be accepted.
    ///
    /// A request that would be rejected does not join, so it is recorded and counted here. `now` is
    /// the time by which `refusal` counts.
    pub(super) fn answer_probe(
        &self,
        join: &Join,
        reply: oneshot::Sender<Option<Answer>>,
        refusal: Option<Refusal>,
        now: Moment,
    ) {
        // The key's clock, which shows `now`, may be stopped.
        let real = self.pacer.now();
        if refusal.is_some() {
            self.arrivals.borrow_mut().record(join.arrival(real));
        }
        let rejection = refusal.map(|refusal| Rejection::of(refusal, now));
        let is_connected = reply.send(rejection.map(Answer::Rejected)).is_ok();
        if is_connected && let Some(rejection) = rejection {
            self.count_request(&join.key, real);
            self.count_rejection(&join.key, rejection.status(join.dry_run), real);
        }
    }

    /// Passes up to `count` keys with waiters to `visit`, from just before `end` to the front.
    ///
    /// Returns the index to continue from; 0 at the end. A walk in several steps visits every key
    /// that has waiters throughout, and some keys twice.
    pub(super) fn walk(&self, end: usize, count: usize, mut visit: impl FnMut(&Snapshot)) -> usize {
        let waiting = self.waiting.borrow();
        let end = end.min(waiting.len());
        let start = end.saturating_sub(count);
        waiting[start..end].iter().rev().for_each(|it| visit(it));
        start
    }

    /// Records the present number of waiters and requests in flight of one key.
    pub(super) fn count(&self, snapshot: &Rc<Snapshot>, waiting: usize, running: usize) {
        let was_busy = snapshot.is_busy();
        let before = snapshot.depth.replace(waiting);
        match (before, waiting) {
            (0, 0) => {}
            (0, _) => self.add_waiting(snapshot),
            (_, 0) => self.remove_waiting(snapshot),
            _ => {}
        }
        update_total(&self.depth, &self.metrics.depth, before, waiting);
        let before = snapshot.running.replace(running);
        update_total(&self.running, &self.metrics.in_flight, before, running);
        let busy = self.busy.get() + usize::from(snapshot.is_busy());
        self.busy.set(busy.saturating_sub(usize::from(was_busy)));
    }

    /// Adds a key to the keys with waiters.
    fn add_waiting(&self, snapshot: &Rc<Snapshot>) {
        let mut waiting = self.waiting.borrow_mut();
        snapshot.index.set(waiting.len());
        waiting.push(Rc::clone(snapshot));
    }

    /// Removes a key from the keys with waiters.
    fn remove_waiting(&self, snapshot: &Snapshot) {
        let (mut waiting, index) = (self.waiting.borrow_mut(), snapshot.index.get());
        if index < waiting.len() {
            waiting.swap_remove(index);
        }
        if let Some(moved) = waiting.get(index) {
            moved.index.set(index);
        }
    }
}

impl Drop for Shard {
    /// Subtracts what is left from the metrics of all supervisors.
    ///
    /// After a panic, waiters and requests in flight are subtracted together, not one by one.
    fn drop(&mut self) {
        self.metrics.depth.change(self.depth.get(), 0);
        self.metrics.in_flight.change(self.running.get(), 0);
    }
}

/// Updates a total and its metric after a key's part of it has changed.
fn update_total(total: &Cell<usize>, metric: &Level, before: usize, after: usize) {
    total.set((total.get() + after).saturating_sub(before));
    metric.change(before, after);
}

/// State that one key's actor publishes to its supervisor.
///
/// The supervisor needs nothing else to park, list or skip the actor.
#[derive(Default)]
pub(super) struct Snapshot {
    pub(super) key: Key,
    /// Number of messages sent to the actor and not handled yet.
    pub(super) pending: Cell<usize>,
    /// Number of waiters of this key.
    pub(super) depth: Cell<usize>,
    /// Number of requests in flight of this key, under limits with `in_flight`.
    pub(super) running: Cell<usize>,
    /// Permits that other gateways hold; `None` if the store counts none for this one.
    pub(super) elsewhere: Cell<Option<PermitsElsewhere>>,
    /// Sum of the waiters' charges.
    pub(super) costs: Cell<u64>,
    /// Bucket, converted to the rate of this gateway's file.
    pub(super) bucket: Cell<Bucket>,
    /// Time of the join of the waiter that has waited longest.
    pub(super) oldest: Cell<Option<Moment>>,
    /// Index among the keys that have waiters. Valid only while the key has waiters.
    index: Cell<usize>,
}

impl Snapshot {
    pub(super) fn new(key: Key, bucket: Bucket) -> Self {
        Self {
            key,
            bucket: Cell::new(bucket),
            ..Self::default()
        }
    }

    /// Returns the key's state for listings.
    pub(super) fn state(&self, rate: Rate, now: Moment) -> KeyState {
        KeyState {
            key: Key::clone(&self.key),
            depth: self.depth.get(),
            in_flight: self.running.get(),
            elsewhere: self.elsewhere.get(),
            excess: self.bucket.get().excess(rate, now).requests(),
            oldest_wait: self.oldest.get().map_or(Duration::ZERO, |it| now.since(it)),
            active: true,
        }
    }

    /// Returns whether the key has no waiters, no requests in flight and no pending messages.
    ///
    /// Then the snapshot is up to date.
    pub(super) fn is_quiet(&self) -> bool {
        self.pending.get() == 0 && !self.is_busy() && self.elsewhere.get().is_none()
    }

    /// Returns whether the key has waiters or requests in flight.
    fn is_busy(&self) -> bool {
        self.depth.get() > 0 || self.running.get() > 0
    }
}
