//! Zones that gateways share: their buckets are in a store, and here are those who wait.
//!
//! ```text
//! KeyActor, ZoneSupervisor ──Ask──▶ Courier (one a worker) ──a batch──▶ the store
//!            ▲                          │
//!            └───────────Told───────────┘
//! ```
//!
//! Courier and actors of a worker live on one thread. What the store tells of time is told in the gateway's own.

mod agreement;
mod ask;
mod courier;
mod offset;
mod remote;

use std::rc::Rc;
use std::sync::Arc;

use actix::{Message, Recipient};

use super::messages::{Join, Key};
use crate::config::OnStoreFailure;
use crate::limit::{Account, Algorithm, Delay, Limit, Moment, Rate, Verdict};
use crate::metrics::{StoreResult, ZoneMetrics};
use crate::pacer::Pacer;
use crate::store::{self, Charge, Pace};
pub(super) use agreement::Agreement;
use agreement::News;
use ask::{Ask, Back};
use courier::Courier;
pub use remote::Remote;

/// How a zone is shared, as its settings have it.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    pub(super) remote: Arc<Remote>,
    pub(super) pace: Pace,
    pub(super) on_failure: OnStoreFailure,
    /// Whether the store goes by another rate than this gateway's file.
    pub(super) agreement: Arc<Agreement>,
}

impl PartialEq for Sharing {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.remote, &other.remote)
            && (&self.pace, self.on_failure) == (&other.pace, other.on_failure)
    }
}

/// What the store decided, in the gateway's own time.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    /// How the key stands after it.
    pub(super) account: Account,
    /// Unless it was rejected.
    pub(super) charge: Option<Charge>,
    pub(super) in_force: InForce,
}

/// The rate by which the store paces a key, and since when, if it was changed while the key was known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct InForce {
    pub(super) rate: Rate,
    pub(super) since: Option<Moment>,
}

/// The store decided nothing, and the zone goes on by its `on_store_failure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Untold;

/// The answer to a join that the store was asked for.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Told {
    pub(super) join: Join,
    /// When it came.
    pub(super) since: Moment,
    pub(super) decision: Result<Decision, Untold>,
}

/// The answer to one who was let in without the store, and is to have a time of its schedule.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Placed {
    /// With which it waits.
    pub(super) delay: u32,
    pub(super) decision: Result<Decision, Untold>,
}

/// The answer to a retune: the rate that the key goes on at.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Retuned(pub(super) Result<InForce, Untold>);

/// A shared zone, as its actors on one worker know it.
pub(super) struct Shared {
    courier: Rc<Courier>,
    zone: String,
    algorithm: Algorithm,
    pace: Pace,
    pub(super) on_failure: OnStoreFailure,
    metrics: Arc<ZoneMetrics>,
    agreement: Arc<Agreement>,
}

impl Shared {
    pub(super) fn new(
        zone: &str,
        algorithm: Algorithm,
        sharing: &Sharing,
        metrics: &Arc<ZoneMetrics>,
        pacer: &Rc<Pacer>,
    ) -> Rc<Self> {
        Rc::new(Self {
            courier: Courier::to(&sharing.remote, pacer),
            zone: zone.to_owned(),
            algorithm,
            pace: sharing.pace.clone(),
            on_failure: sharing.on_failure,
            metrics: Arc::clone(metrics),
            agreement: Arc::clone(&sharing.agreement),
        })
    }

    /// The rate in this gateway's file.
    pub(super) fn rate(&self) -> Rate {
        self.pace.rate()
    }

    /// Has the store decide a join. `back` is told.
    pub(super) fn ask(self: &Rc<Self>, join: Join, back: Recipient<Told>) {
        let key = self.name(&join.key);
        self.courier.ask(Ask {
            zone: Rc::clone(self),
            key,
            limit: join.limit,
            since: self.courier.now(),
            back: Back::Join(join, back),
        });
    }

    /// Whether the store is not asked at present.
    pub(super) fn is_out(&self) -> bool {
        self.courier.is_out()
    }

    /// Has the store hand out a time for one who was let in without it and waits with this `delay`. `back` is told.
    pub(super) fn place(self: &Rc<Self>, key: &Key, delay: u32, back: Recipient<Placed>) {
        // It was accepted already.
        let limit = Limit {
            burst: u32::MAX,
            delay: Delay::Above(delay),
            max_wait: None,
        };
        self.courier.ask(Ask {
            zone: Rc::clone(self),
            key: self.name(key),
            limit,
            since: self.courier.now(),
            back: Back::Place(delay, back),
        });
    }

    /// Gives a charge back that was not used.
    pub(super) fn refund(self: &Rc<Self>, key: &Key, charge: Charge) {
        self.courier.refund(Rc::clone(self), self.name(key), charge);
    }

    /// Brings the rate of this gateway's file into force for a key at which some wait.
    pub(super) fn retune(self: &Rc<Self>, key: &Key, back: Recipient<Retuned>) {
        self.courier.retune(Rc::clone(self), self.name(key), back);
    }

    /// Forgets what a key was charged, by whichever gateway; where some wait here, what is behind the `last` of them.
    pub(super) fn forget(self: &Rc<Self>, key: &Key, last: Option<Charge>) {
        self.courier.forget(Rc::clone(self), self.name(key), last);
    }

    /// What the store calls a key. Another algorithm keeps another kind of state.
    fn name(&self, key: &Key) -> Vec<u8> {
        [self.zone.as_bytes(), self.algorithm.name().as_bytes(), key].join(&b':')
    }

    fn count(&self, result: StoreResult) {
        self.metrics.count_operations(result, 1);
    }

    /// Takes note of the rate in force. The gateway's clock shows `at` when the store's shows `now`.
    fn follows(&self, told: store::InForce, now: Moment, at: Moment) -> InForce {
        self.compare(told.rate, told.differs);
        InForce {
            rate: told.rate,
            since: told.since.map(|since| since.on_clock(now, at)),
        }
    }

    /// Shows the rate in force, and tells once where another gateway's file has another rate, and once where they agree again.
    fn compare(&self, rate: Rate, differs: bool) {
        let (zone, own) = (&self.zone, self.pace.rate());
        if differs {
            self.metrics.show_rate(rate);
        }
        match self.agreement.note(differs, self.courier.now()) {
            None => {}
            Some(News::Differs) => {
                tracing::warn!(zone, %own, in_force = %rate, "another gateway that shares the zone has another rate, which its file has had since later: it is in force here too");
            }
            Some(News::Settled) => {
                self.metrics.show_rate(own);
                tracing::info!(zone, in_force = %own, "all gateways that share the zone have the same rate again");
            }
        }
    }
}
