//! Link of a zone to the store that several gateways share: the buckets are in the store.
//!
//! ```text
//! KeyActor, ZoneSupervisor ──join──▶ Batcher (one a worker) ──a batch──▶ the worker's store::Link
//!            ▲                          │
//!            └───────────Reply──────────┘
//! ```
//!
//! A *lease* of a key is a number of slots (departure times) that this gateway has taken in
//! advance. With it, `leases` decides a join without a call to the store. `batcher` sends the other
//! operations, `batches_in_flight` keeps their answers in order. A *pace* is a rate with the time
//! since which it applies: `paces` has those of the file, `rate_divergence` detects gateways with
//! other rates.
//!
//! The batcher and the actors of a worker run on one thread. Times from the store are converted to
//! the gateway's clock.

mod batcher;
mod batches_in_flight;
mod charge_request;
mod key_lease;
mod key_permits;
mod leases;
mod paces;
mod rate_divergence;
mod refill;
mod shared_key;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use limit::{Account, Cost, Delay, Limit, Moment, Rate, Verdict};

use super::answer::Charge;
use super::join::Key;
use crate::observe::metrics::{StoreResult, ZoneMetrics};
use crate::store::{self, InForce, StoreHealth};
use crate::time::pacer::Pacer;
use batcher::Batcher;
use charge_request::ChargeRequest;
pub(super) use charge_request::Reply;
use key_lease::LeasingJoin;
use leases::Leases;
pub(super) use paces::Paces;
use rate_divergence::DivergenceChange;
pub(super) use rate_divergence::RateDivergence;
use refill::Refill;
use shared_key::SharedKey;

/// Store of a shared zone, and the rates that the gateways compare there.
#[derive(Clone)]
pub(super) struct Sharing {
    pub(super) store_health: Arc<StoreHealth>,
    /// Rates of the zone and its plans.
    pub(super) paces: Paces,
    /// Detects that the store uses another rate than this gateway's file.
    pub(super) divergence: Arc<RateDivergence>,
}

impl PartialEq for Sharing {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.store_health, &other.store_health) && self.paces == other.paces
    }
}

/// Decision of the store, with times on the gateway's clock.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    /// State of the key after the decision.
    pub(super) account: Account,
    /// Charge of the request, which can be refunded; `None` if it was rejected.
    pub(super) charge: Option<store::Charge>,
    /// Rate used for the decision.
    pub(super) in_force: InForce,
    /// Instant before which another request may use this slot, if it was leased.
    ///
    /// `None` if the request was rejected, or if the store does not report it.
    pub(super) usable_until: Option<Moment>,
}

impl Decision {
    /// Returns when a request that was not rejected is due.
    pub(super) fn due(&self, now: Moment) -> Moment {
        match self.verdict {
            Verdict::Delay { until, .. } => until,
            Verdict::Pass { .. } | Verdict::Reject(_) => now,
        }
    }
}

/// Missing decision of the store. The zone falls back to its `on_store_failure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoReply;

/// Additional cost of an admitted request, above its charge.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExtraCharge {
    /// Charge at the join.
    pub(super) charge: Charge,
    /// Cost above that charge.
    pub(super) more: Cost,
    /// `delay` of the waiters that it moves back: a level, in requests.
    pub(super) delay_level: u32,
}

impl ExtraCharge {
    /// Returns a limit under which the additional cost is charged in full, whatever the level is.
    pub(super) fn limit(&self) -> Limit {
        Limit::unlimited(Delay::Above(self.delay_level), self.more)
    }
}

/// Link of a zone's actors on one worker to the store that keeps the zone.
pub(super) struct StoreLink {
    batcher: Rc<Batcher>,
    pub(super) settings: Arc<config::Zone>,
    /// Prefix of the names of the zone's keys in the store.
    ///
    /// Contains algorithm and version of the scripts, because each may store another kind of state.
    key_prefix: Vec<u8>,
    /// Prefix of the names under which the store keeps the permits of the zone's keys.
    permits_prefix: Vec<u8>,
    sharing: Sharing,
    leases: Rc<Leases>,
    /// Version of the settings. Only a link with the latest settings of the zone takes leases.
    version: u64,
    /// Whether a task waits for the expiry of leases.
    watches_leases: Cell<bool>,
    metrics: Arc<ZoneMetrics>,
}

impl StoreLink {
    /// Creates the link of a zone with these settings.
    ///
    /// `previous`: the zone's link with earlier settings. Its leases end.
    pub(super) fn new(
        settings: &Arc<config::Zone>,
        sharing: &Sharing,
        metrics: &Arc<ZoneMetrics>,
        pacer: &Rc<Pacer>,
        previous: Option<&Rc<Self>>,
    ) -> Rc<Self> {
        let leases = previous.map_or_else(Rc::default, |previous| {
            previous.release_leases();
            Rc::clone(&previous.leases)
        });
        let (zone, algorithm) = (&settings.name, settings.algorithm);
        Rc::new(Self {
            batcher: Batcher::to(&sharing.store_health, pacer),
            key_prefix: format!("{zone}:{}.{}:", algorithm.name(), store::form(algorithm))
                .into_bytes(),
            permits_prefix: format!("{zone}:in_flight.{}:", store::IN_FLIGHT_FORM).into_bytes(),
            settings: Arc::clone(settings),
            sharing: sharing.clone(),
            version: leases.begin_version(),
            leases,
            watches_leases: Cell::default(),
            metrics: Arc::clone(metrics),
        })
    }

    /// Decides a join by a lease, or asks the store to decide.
    pub(super) fn join(self: &Rc<Self>, key: &Key, limit: Limit, reply: Reply<Decision>) {
        let pending = LeasingJoin {
            key: Key::clone(key),
            limit,
            since: self.batcher.now(),
            reply,
        };
        if self.lease_length().is_zero() && self.leases.are_none() {
            self.charge_join(pending, None);
        } else {
            self.leases.join(self, pending);
        }
    }

    /// Asks the store to decide on a join. `refill`: slots to lease behind it.
    fn charge_join(self: &Rc<Self>, join: LeasingJoin, refill: Option<Refill>) {
        let key = SharedKey::new(self, &join.key);
        let request = ChargeRequest::join(key, join.limit, join.since, join.reply, refill);
        self.batcher.charge(request);
    }

    /// Returns whether the store is unavailable and not called at present.
    pub(super) fn is_out(&self) -> bool {
        self.batcher.is_out()
    }

    /// Corrects the charge of an admitted request of a key without waiters.
    pub(super) fn settle(self: &Rc<Self>, key: &Key, charge: store::Charge, cost: Cost) {
        if let Some(surplus) = charge.too_much(cost) {
            self.refund(key, surplus);
        }
        if let Some(more) = cost.above(charge.cost()) {
            let limit = Limit::unlimited(Delay::Never, more);
            self.charge(key, limit, None);
        }
    }

    /// Makes a charge that no request waits for. `reply`: receiver of the decision, if any.
    pub(super) fn charge(self: &Rc<Self>, key: &Key, limit: Limit, reply: Option<Reply<Decision>>) {
        let (key, since) = (SharedKey::new(self, key), self.batcher.now());
        self.batcher
            .charge(ChargeRequest::charge(key, limit, since, reply));
    }

    /// Refunds a charge or a part of it.
    pub(super) fn refund(self: &Rc<Self>, key: &[u8], charge: store::Charge) {
        self.batcher.refund(SharedKey::new(self, key), charge);
    }

    /// Puts the rate of this gateway's file into force for a key that has waiters.
    pub(super) fn retune(self: &Rc<Self>, key: &Key, reply: Reply<InForce>) {
        self.batcher.retune(SharedKey::new(self, key), reply);
    }

    /// Forgets what all gateways have charged to a key.
    ///
    /// If requests wait here, forgets only the charges behind `last`, the charge of the last
    /// waiter.
    pub(super) fn forget(self: &Rc<Self>, key: &Key, last: Option<store::Charge>) {
        self.leases.forget(key);
        self.batcher.forget(SharedKey::new(self, key), last);
    }

    /// Counts an operation by its result.
    fn count(&self, result: StoreResult) {
        self.metrics.count_operations(result, 1);
    }

    /// Compares the rate in force for a key with the rate of this gateway's file.
    ///
    /// `differs`: whether the store says that they differ. Then the metrics show the rate in force,
    /// if the file has the zone's rate for the key. Logs when gateways begin to differ and when
    /// they agree again.
    fn compare(&self, file_rate: Rate, rate: Rate, differs: bool, now: Moment) {
        let (zone, zone_rate) = (&self.settings.name, self.sharing.paces.zone_rate());
        if differs && file_rate == zone_rate {
            self.metrics.show_rate(rate);
        }
        match self.sharing.divergence.note(differs, now) {
            None => {}
            Some(DivergenceChange::Differs) => {
                tracing::warn!(zone, own = %file_rate, in_force = %rate, "another gateway that shares the zone has another rate, from a newer file: that rate is in force here too");
            }
            Some(DivergenceChange::Settled) => {
                self.metrics.show_rate(zone_rate);
                tracing::info!(zone, in_force = %zone_rate, "all gateways that share the zone have the same rate again");
            }
        }
    }
}
