//! Shard: the part of a zone on one worker, as its supervisor and its key actors share it.
//!
//! `queue_depth` counts waiters and requests in flight here. `snapshot` has the state of one key.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use limit::{Measure, Moment, Refusal, nanos};
use tokio::sync::oneshot;

use super::answer::{Answer, Rejection};
use super::arrivals::ArrivalLog;
use super::heavy::HeavyCount;
use super::join::{Join, Key};
use super::snapshot::Snapshot;
use super::stats::PermitsElsewhere;
use super::store_link::StoreLink;
use crate::observe::metrics::{LimitStatus, ZoneMetrics};
use crate::time::pacer::Pacer;

/// Duration for which a note about withheld permits is returned.
const WITHHELD_NOTE_LIFETIME: Duration = Duration::from_secs(2);

/// State that the key actors of one supervisor share with it.
///
/// The actors and the supervisor run on one thread, so plain cells suffice.
pub(super) struct Shard {
    pub(super) pacer: Rc<Pacer>,
    pub(super) metrics: Arc<ZoneMetrics>,
    /// Keys that have waiters, so that a search for the deepest key visits only these.
    ///
    /// Each snapshot has its index in this list, so that a key is removed without a search.
    pub(super) waiting_keys: RefCell<Vec<Rc<Snapshot>>>,
    /// Number of waiters of all keys.
    pub(super) depth: Cell<usize>,
    /// Number of requests in flight of all keys, under limits with `in_flight`.
    pub(super) in_flight: Cell<usize>,
    /// Number of keys that have waiters or requests in flight.
    pub(super) busy_keys: Cell<usize>,
    /// Link to the store, for a zone that is kept in one.
    store_link: RefCell<Option<Rc<StoreLink>>>,
    /// Last key that had no permits here while the store withheld permits of vanished gateways.
    withheld: RefCell<Option<WithheldNote>>,
    /// Requests, rejections and waits by key, over the last minutes.
    pub(super) heavy: RefCell<HeavyCount>,
    /// Arrivals of the last minutes, for a replay with other settings.
    pub(super) arrivals: RefCell<ArrivalLog>,
}

/// Permits of a key at other gateways, some of them withheld, at the time of the note.
struct WithheldNote {
    key: Key,
    elsewhere: PermitsElsewhere,
    noted: Moment,
}

impl Shard {
    pub(super) fn new(pacer: Rc<Pacer>, metrics: Arc<ZoneMetrics>, arrivals: ArrivalLog) -> Self {
        Self {
            arrivals: RefCell::new(arrivals),
            pacer,
            metrics,
            waiting_keys: RefCell::default(),
            depth: Cell::new(0),
            in_flight: Cell::new(0),
            busy_keys: Cell::new(0),
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

    /// Notes the permits that other gateways hold of a key that has no permits here.
    ///
    /// Does nothing unless some are withheld. Then operators can see why the key's requests are
    /// rejected.
    pub(super) fn note_elsewhere(&self, key: &Key, elsewhere: PermitsElsewhere, now: Moment) {
        if elsewhere.withheld > 0 {
            self.withheld.replace(Some(WithheldNote {
                key: Key::clone(key),
                elsewhere,
                noted: now,
            }));
        }
    }

    /// Returns the permits of other gateways, if they were noted for this key a moment ago.
    pub(super) fn recent_elsewhere(&self, key: &[u8], now: Moment) -> Option<PermitsElsewhere> {
        let withheld = self.withheld.borrow();
        let note = withheld.as_ref()?;
        let is_recent = now.since(note.noted) < WITHHELD_NOTE_LIFETIME;
        (*note.key == *key && is_recent).then_some(note.elsewhere)
    }

    /// Counts a request of a key.
    pub(super) fn count_request(&self, key: &Key, now: Moment) {
        self.record(Measure::Requests, key, 1, now);
    }

    /// Adds `weight` to a measure of a key, for the list of the heaviest keys.
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
    /// A request that would be rejected does not join, so it is recorded and counted here.
    /// `decided`: the instant of the refusal, by the key's clock, which a pause stops.
    pub(super) fn answer_probe(
        &self,
        join: &Join,
        reply: oneshot::Sender<Option<Answer>>,
        refusal: Option<Refusal>,
        decided: Moment,
    ) {
        let now = self.pacer.now();
        if refusal.is_some() {
            self.arrivals.borrow_mut().record(join.arrival(now));
        }
        let rejection = refusal.map(|refusal| Rejection::of(refusal, decided));
        let is_connected = reply.send(rejection.map(Answer::Rejected)).is_ok();
        if is_connected && let Some(rejection) = rejection {
            self.count_request(&join.key, now);
            self.count_rejection(&join.key, rejection.status(join.dry_run), now);
        }
    }
}
