//! State that the actors of one supervisor share with it.

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

/// Duration for which permits at other gateways are remembered of a key that has none here.
const KEPT_ELSEWHERE: Duration = Duration::from_secs(2);

/// State that the actors of one supervisor share with it.
///
/// All of them run on one thread, so plain cells suffice.
pub(super) struct Shard {
    pub(super) pacer: Rc<Pacer>,
    pub(super) metrics: Arc<ZoneMetrics>,
    /// Keys that have waiters.
    ///
    /// Each key knows its index here. So adding and removing cost a few moves, and a search for the
    /// deepest key visits only these keys.
    waiting: RefCell<Vec<Rc<Snapshot>>>,
    /// Number of waiters of all keys.
    pub(super) depth: Cell<usize>,
    /// Number of requests in flight of all keys, under limits with `in_flight`.
    pub(super) running: Cell<usize>,
    /// Number of keys that have waiters or requests in flight.
    pub(super) busy: Cell<usize>,
    /// Link to the store, for a zone that is kept in one.
    sharing: RefCell<Option<Rc<StoreLink>>>,
    /// Last key without permits here while vanished gateways still held some, with the time.
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
            sharing: RefCell::default(),
            withheld: RefCell::default(),
            heavy: RefCell::default(),
        }
    }

    /// Returns how the zone is shared now, if it is.
    pub(super) fn sharing(&self) -> Option<Rc<StoreLink>> {
        self.sharing.borrow().as_ref().map(Rc::clone)
    }

    pub(super) fn is_shared(&self) -> bool {
        self.sharing.borrow().is_some()
    }

    /// Sets how the zone is shared.
    pub(super) fn share(&self, zone: Option<Rc<StoreLink>>) {
        self.sharing.replace(zone);
    }

    /// Notes the permits that other gateways hold of a key of which this one holds none.
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
        let mut heavy = self.heavy.borrow_mut();
        heavy.record(measure, key, weight, now);
    }

    /// Records the waiting time of a request of a key.
    pub(super) fn waited(&self, key: &Key, span: Duration, now: Moment) {
        self.metrics.waits.record(span);
        self.record(Measure::Waits, key, nanos(span), now);
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
            self.count_rejection(key, &rejection, dry_run, now);
        }
        is_connected
    }

    /// Counts a rejected request for its key. Does nothing in a dry run.
    pub(super) fn count_rejection(
        &self,
        key: &Key,
        rejection: &Rejection,
        dry_run: bool,
        now: Moment,
    ) {
        if rejection.status(dry_run) == LimitStatus::Rejected {
            self.record(Measure::Rejections, key, 1, now);
        }
    }

    /// Answers whether a join would be accepted: `None` if it would.
    ///
    /// A request that would be rejected does not join, so it is recorded and counted here.
    pub(super) fn answer_probe(
        &self,
        join: &Join,
        reply: oneshot::Sender<Option<Answer>>,
        refusal: Option<Refusal>,
        now: Moment,
    ) {
        // The key's own clock may be stopped.
        let real = self.pacer.now();
        if refusal.is_some() {
            self.arrivals.borrow_mut().record(join.arrival(real));
        }
        let rejection = refusal.map(|refusal| Rejection::of(refusal, now));
        let is_connected = reply.send(rejection.map(Answer::Rejected)).is_ok();
        if is_connected && let Some(rejection) = rejection {
            self.count_request(&join.key, real);
            self.count_rejection(&join.key, &rejection, join.dry_run, real);
        }
    }

    /// Passes up to `most` keys with waiters to `show`, from just before index `end` to the front.
    ///
    /// Returns the index to continue from; 0 at the end. A walk in several steps shows every key
    /// that has waiters throughout, and some keys twice.
    pub(super) fn walk(&self, end: usize, most: usize, mut show: impl FnMut(&Snapshot)) -> usize {
        let waiting = self.waiting.borrow();
        let end = end.min(waiting.len());
        let start = end.saturating_sub(most);
        waiting[start..end].iter().rev().for_each(|it| show(it));
        start
    }

    /// Records the present number of waiters and requests in flight of one key.
    pub(super) fn count(&self, snapshot: &Rc<Snapshot>, waiting: usize, running: usize) {
        let was_busy = snapshot.is_busy();
        let before = snapshot.depth.replace(waiting);
        match (before, waiting) {
            (0, 0) => {}
            (0, _) => self.add(snapshot),
            (_, 0) => self.remove(snapshot),
            _ => {}
        }
        count_change(&self.depth, &self.metrics.depth, before, waiting);
        let before = snapshot.running.replace(running);
        count_change(&self.running, &self.metrics.in_flight, before, running);
        let busy = self.busy.get() + usize::from(snapshot.is_busy());
        self.busy.set(busy.saturating_sub(usize::from(was_busy)));
    }

    /// Adds a key to the keys with waiters.
    fn add(&self, snapshot: &Rc<Snapshot>) {
        let mut waiting = self.waiting.borrow_mut();
        snapshot.index.set(waiting.len());
        waiting.push(Rc::clone(snapshot));
    }

    /// Removes a key from the keys with waiters.
    fn remove(&self, snapshot: &Snapshot) {
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
    /// Takes the rest out of the totals at once.
    ///
    /// After a panic the waiters, which are answered, and the requests in flight, which go on, are
    /// not counted one by one.
    fn drop(&mut self) {
        self.metrics.depth.change(self.depth.get(), 0);
        self.metrics.in_flight.change(self.running.get(), 0);
    }
}

/// Updates a total and its metric after one part of it has changed.
fn count_change(total: &Cell<usize>, shown: &Level, before: usize, after: usize) {
    total.set((total.get() + after).saturating_sub(before));
    shown.change(before, after);
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
    /// Whether the store may count permits of this key for this gateway.
    pub(super) counts_in_store: Cell<bool>,
    /// Permits that other gateways hold, if the store may count some for this one.
    pub(super) elsewhere: Cell<PermitsElsewhere>,
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
            elsewhere: self.counts_in_store.get().then(|| self.elsewhere.get()),
            excess: self.bucket.get().excess(rate, now).requests(),
            oldest_wait: self.oldest.get().map_or(Duration::ZERO, |it| now.since(it)),
            active: true,
        }
    }

    /// Returns whether the key has no waiters, requests in flight or pending messages.
    ///
    /// The snapshot is then up to date.
    pub(super) fn is_quiet(&self) -> bool {
        self.pending.get() == 0 && !self.is_busy() && !self.counts_in_store.get()
    }

    /// Returns whether the key has waiters or requests in flight.
    fn is_busy(&self) -> bool {
        self.depth.get() > 0 || self.running.get() > 0
    }
}
