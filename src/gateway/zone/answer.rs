//! Answers to a join: an admission (`Grant`) or a rejection, and predictions for the client.
//!
//! The bucket of a key has a *level*, in requests, which leaks at the rate. A *slot* is a departure
//! time on the queue's schedule. A *permit* is the right to run one request of the key.

use std::time::Duration;

use limit::{self, Account, Cost, Excess, Limit, Moment, Rate, Refusal, Ticket};

use super::join::Join;
use crate::observe::metrics::{LimitStatus, Rejected};
use crate::store;

/// Wait that is reported to a client if no exact duration is known.
pub(super) const RETRY_SOON: Duration = Duration::from_secs(1);

/// Charge of an admitted request, by who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// Charged by this gateway, which keeps the zone.
    Own(limit::Charge),
    /// Charged by the store (Redis) that keeps the zone for several gateways.
    Store(store::Charge),
    /// Charged by this gateway alone, with this cost, while the store was unavailable.
    Alone(Cost),
    /// Nothing was charged.
    Nothing,
}

impl Charge {
    /// Returns the cost that was charged.
    pub(super) fn cost(&self) -> Cost {
        match self {
            Self::Own(charge) => charge.cost(),
            Self::Store(charge) => charge.cost(),
            Self::Alone(cost) => *cost,
            Self::Nothing => Cost::ONE,
        }
    }

    /// Reduces the charge to at most `cost`. Only for a zone in the store.
    pub(super) fn reduced_to(self, cost: Cost) -> Self {
        match self {
            Self::Store(charge) if charge.cost() > cost => Self::Store(charge.part(0, cost)),
            Self::Alone(charged) => Self::Alone(charged.min(cost)),
            _ => self,
        }
    }

    /// Returns the part of the charge above `cost`, the real cost; `None` if there is none.
    ///
    /// Also `None` for a charge of this gateway, whose queue corrects it itself.
    pub(super) fn surplus(&self, cost: Cost) -> Option<Self> {
        match self {
            Self::Store(charge) => charge.too_much(cost).map(Self::Store),
            Self::Alone(charged) => charged.above(cost).map(Self::Alone),
            Self::Own(_) | Self::Nothing => None,
        }
    }
}

/// Answer to a [`Join`], to a request for a permit, or to a probe: whether a join would succeed.
pub enum Answer {
    /// The request is admitted.
    ZoneAdmission(Grant),
    /// The request is rejected.
    Rejected(Rejection),
    /// The key is unknown, and the zone accepts no more new keys now.
    ///
    /// The request must join the bucket of [`NEW_KEYS`](super::NEW_KEYS).
    UseNewKeysBucket(Join),
    /// No permit is free. Only a [`PermitRequest`](super::pending::PermitRequest) that does not
    /// wait gets this.
    NoPermit,
}

impl From<Result<Grant, Rejection>> for Answer {
    fn from(decision: Result<Grant, Rejection>) -> Self {
        decision.map_or_else(Self::Rejected, Self::ZoneAdmission)
    }
}

/// Admission of a request, with the key's state at that time.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    /// Charge of the request. Needed to refund an unused admission.
    pub charge: Charge,
    /// Departure time, if the request had to wait (in a dry run: if it would have had to).
    pub due: Option<Moment>,
    /// Time of the admission.
    pub at: Moment,
    /// Level of the bucket at the join, this request included.
    pub excess: Excess,
    /// Prediction for the client's next request.
    pub prediction: Prediction,
    /// Ticket of the request, if it holds a permit of its key or will ask for one later.
    pub permit: Option<Ticket>,
}

/// Prediction for the next requests of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// Number of requests that would be accepted now.
    pub remaining: u32,
    /// Time until one more request than `remaining` would be accepted; zero for an empty bucket.
    pub one_more_in: Duration,
}

impl Prediction {
    /// Computes the prediction for a key whose account is in this state at `now`.
    pub(super) fn of(account: &Account, rate: Rate, limit: Limit, now: Moment) -> Self {
        let remaining = account.remaining(rate, limit, now);
        let one_more_in = account.accepts_at(rate, limit, remaining, now).since(now);
        Self {
            remaining,
            one_more_in,
        }
    }

    /// Returns the time until a request would be accepted; zero while any remain.
    pub fn retry_after(&self) -> Duration {
        if self.remaining > 0 {
            Duration::ZERO
        } else {
            self.one_more_in
        }
    }
}

/// Rejection of a join: its reason, and when to retry.
#[derive(Clone, Copy, Debug)]
pub struct Rejection {
    /// Limit or condition that caused the rejection.
    pub reason: Rejected,
    /// Level that the bucket would have with this request.
    pub excess: Excess,
    /// Time until the same request would be accepted if no other request arrived.
    pub retry_after: Duration,
    /// Whether the bucket of [`NEW_KEYS`](super::NEW_KEYS) rejected it, not its own key's bucket.
    pub is_flood: bool,
}

impl Grant {
    /// Creates the admission of a request that passes at once, without a permit.
    pub(super) fn at_once(
        charge: Charge,
        excess: Excess,
        prediction: Prediction,
        at: Moment,
    ) -> Self {
        Self {
            charge,
            due: None,
            at,
            excess,
            prediction,
            permit: None,
        }
    }

    /// Creates the admission by a zone that has ended, because it was removed from the file.
    pub(super) fn unlimited() -> Self {
        let prediction = Prediction {
            remaining: 1,
            one_more_in: Duration::ZERO,
        };
        let excess = Excess::default();
        Self::at_once(Charge::Nothing, excess, prediction, Moment::default())
    }

    /// Returns the status to count and log for this admission.
    pub fn status(&self, dry_run: bool) -> LimitStatus {
        match (self.due, dry_run) {
            (None, _) => LimitStatus::Passed,
            (Some(_), false) => LimitStatus::Delayed,
            (Some(_), true) => LimitStatus::DelayedDryRun,
        }
    }
}

impl Rejection {
    /// Creates the rejection for a refusal by a bucket at `now`.
    pub(super) fn of(refusal: Refusal, now: Moment) -> Self {
        Self {
            reason: refusal.reason.into(),
            excess: refusal.excess,
            retry_after: refusal.retry_at.since(now),
            is_flood: false,
        }
    }

    /// Creates a rejection after which neither the level nor the exact time of a retry is known.
    pub(super) fn soon(reason: Rejected) -> Self {
        Self::soon_at_level(reason, Excess::default())
    }

    /// Creates a rejection after which the exact time of a retry is unknown.
    ///
    /// For example, a running request may return its permit at any time.
    pub(super) fn soon_at_level(reason: Rejected, excess: Excess) -> Self {
        Self {
            reason,
            excess,
            retry_after: RETRY_SOON,
            is_flood: false,
        }
    }

    /// Creates the rejection by a paused key: the queue is full, or the algorithm has none.
    pub(super) fn in_pause(retry_after: Duration) -> Self {
        Self {
            retry_after,
            ..Self::soon(Rejected::Paused)
        }
    }

    /// Returns the status to count and log for this rejection.
    ///
    /// A stop rejects even in a dry run, because no request is forwarded any more.
    pub fn status(&self, dry_run: bool) -> LimitStatus {
        if dry_run && self.reason != Rejected::Stopping {
            LimitStatus::RejectedDryRun
        } else {
            LimitStatus::Rejected
        }
    }
}
