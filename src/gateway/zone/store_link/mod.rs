//! Zones shared by several gateways: the buckets are in a store, the waiters are here.
//!
//! ```text
//! KeyActor, ZoneSupervisor ──join──▶ Batcher (one a worker) ──a batch──▶ the worker's store::Link
//!            ▲                          │
//!            └───────────Reply──────────┘
//! ```
//!
//! [`leases`] may decide a join without a call to the store.
//!
//! The batcher and the actors of a worker run on one thread. Times from the store are converted to
//! the gateway's clock.

mod ask;
mod batcher;
mod carried;
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
use ask::ChargeRequest;
pub(super) use ask::Reply;
use batcher::Batcher;
use key_lease::LeasingJoin;
use leases::Leases;
pub(super) use paces::Paces;
use rate_divergence::DivergenceChange;
pub(super) use rate_divergence::RateDivergence;
use refill::Refill;
use shared_key::SharedKey;

/// Store of a shared zone, and what gateways compare there.
#[derive(Clone)]
pub(super) struct Sharing {
    pub(super) store_health: Arc<StoreHealth>,
    /// Rates of the zone and its plans.
    pub(super) paces: Paces,
    /// Whether the store uses another rate than this gateway's file.
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
    /// Charge of the request; `None` if it was rejected.
    pub(super) charge: Option<store::Charge>,
    /// Rate used for the decision.
    pub(super) in_force: InForce,
    /// Instant before which other requests may use the slot.
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
    /// `delay` of the waiters that it moves back.
    pub(super) delay: u32,
}

impl ExtraCharge {
    /// Returns the limit for the additional cost, which is charged in full whatever the level.
    pub(super) fn limit(&self) -> Limit {
        Limit::unlimited(Delay::Above(self.delay), self.more)
    }
}

/// Shared zone, as its actors on one worker see it.
pub(super) struct StoreLink {
    batcher: Rc<Batcher>,
    pub(super) settings: Arc<config::Zone>,
    /// Prefix of the names of its keys in the store.
    ///
    /// Contains algorithm and version of the scripts, because each may store another kind of state.
    name: Vec<u8>,
    /// Prefix of the names under which the store keeps the permits of its keys.
    permits_name: Vec<u8>,
    sharing: Sharing,
    leases: Rc<Leases>,
    /// Number of these settings. Only the latest settings of the zone take leases.
    version: u64,
    /// Whether a task waits for the expiry of leases.
    watches_leases: Cell<bool>,
    metrics: Arc<ZoneMetrics>,
}

impl StoreLink {
    /// Creates the zone with these settings. `before` is its previous version, whose leases end.
    pub(super) fn new(
        settings: &Arc<config::Zone>,
        sharing: &Sharing,
        metrics: &Arc<ZoneMetrics>,
        pacer: &Rc<Pacer>,
        before: Option<&Rc<Self>>,
    ) -> Rc<Self> {
        let leases = before.map_or_else(Rc::default, |before| {
            before.release_leases();
            Rc::clone(&before.leases)
        });
        let (zone, algorithm) = (&settings.name, settings.algorithm);
        Rc::new(Self {
            batcher: Batcher::to(&sharing.store_health, pacer),
            name: format!("{zone}:{}.{}:", algorithm.name(), store::form(algorithm)).into_bytes(),
            permits_name: format!("{zone}:in_flight.{}:", store::IN_FLIGHT_FORM).into_bytes(),
            settings: Arc::clone(settings),
            sharing: sharing.clone(),
            version: leases.next_version(),
            leases,
            watches_leases: Cell::default(),
            metrics: Arc::clone(metrics),
        })
    }

    /// Gets a join decided, by a lease or by the store.
    pub(super) fn join(self: &Rc<Self>, key: &Key, limit: Limit, reply: Reply<Decision>) {
        let pending = LeasingJoin {
            key: Key::clone(key),
            limit,
            since: self.batcher.now(),
            reply,
        };
        if self.lease().is_zero() && self.leases.are_none() {
            self.charge_join(pending, None);
        } else {
            self.leases.join(self, pending);
        }
    }

    /// Asks the store to decide on a join, and for slots behind it.
    fn charge_join(self: &Rc<Self>, pending: LeasingJoin, refill: Option<Refill>) {
        let LeasingJoin {
            key,
            limit,
            since,
            reply,
        } = pending;
        let key = SharedKey::new(self, &key);
        self.batcher
            .ask(ChargeRequest::join(key, limit, since, reply, refill));
    }

    /// Returns whether the store is unavailable and not called at present.
    pub(super) fn is_out(&self) -> bool {
        self.batcher.is_out()
    }

    /// Corrects the charge of an admitted request of a key without waiters.
    pub(super) fn settle(self: &Rc<Self>, key: &Key, charge: store::Charge, cost: Cost) {
        if let Some(less) = charge.too_much(cost) {
            self.refund(key, less);
        }
        if let Some(more) = cost.above(charge.cost()) {
            let limit = Limit::unlimited(Delay::Never, more);
            self.charge(key, limit, None);
        }
    }

    /// Makes a charge that no request waits for. Without `reply` it stays whatever the decision.
    pub(super) fn charge(self: &Rc<Self>, key: &Key, limit: Limit, reply: Option<Reply<Decision>>) {
        let (key, since) = (SharedKey::new(self, key), self.batcher.now());
        self.batcher
            .ask(ChargeRequest::charge(key, limit, since, reply));
    }

    /// Refunds a charge or a part of it.
    pub(super) fn refund(self: &Rc<Self>, key: &Key, charge: store::Charge) {
        self.batcher.refund(SharedKey::new(self, key), charge);
    }

    /// Puts the rate of this gateway's file into force for a key. The key has waiters.
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

    fn count(&self, result: StoreResult) {
        self.metrics.count_operations(result, 1);
    }

    /// Compares the rate in force for a key at `now` with `own`, the rate of this gateway's file.
    ///
    /// Shows the rate in force in the metrics if the key has the zone's rate. Logs when gateways
    /// begin to differ and when they agree again.
    fn compare(&self, own: Rate, rate: Rate, differs: bool, now: Moment) {
        let (zone, of_zone) = (&self.settings.name, self.sharing.paces.rate_of_zone());
        if differs && own == of_zone {
            self.metrics.show_rate(rate);
        }
        match self.sharing.divergence.note(differs, now) {
            None => {}
            Some(DivergenceChange::Differs) => {
                tracing::warn!(zone, %own, in_force = %rate, "another gateway that shares the zone has another rate, from a newer file: that rate is in force here too");
            }
            Some(DivergenceChange::Settled) => {
                self.metrics.show_rate(of_zone);
                tracing::info!(zone, in_force = %of_zone, "all gateways that share the zone have the same rate again");
            }
        }
    }
}
