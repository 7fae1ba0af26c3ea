//! What an actor answers: a turn or a rejection, and what the client may do next.

use std::time::Duration;

use limit::{self, Account, Cost, Excess, Limit, Moment, Rate, Refusal, Ticket};

use super::join::Join;
use crate::observe::metrics::{LimitStatus, Rejected};
use crate::store;

/// How long a client is told to wait if no exact time is known.
pub(super) const RETRY_SOON: Duration = Duration::from_secs(1);

/// What a turn was charged, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// Charged by this gateway, which keeps the zone.
    Own(limit::Charge),
    /// Charged by the store that keeps the zone.
    Store(store::Charge),
    /// This cost was charged by this gateway while the store was unavailable.
    Alone(Cost),
    /// Nothing was charged.
    Nothing,
}

impl Charge {
    /// What was charged.
    pub(super) fn cost(&self) -> Cost {
        match self {
            Self::Own(charge) => charge.cost(),
            Self::Store(charge) => charge.cost(),
            Self::Alone(cost) => *cost,
            Self::Nothing => Cost::ONE,
        }
    }

    /// No more of it than a request of this cost was charged.
    pub(super) fn at_most(self, cost: Cost) -> Self {
        match self {
            Self::Store(charge) if charge.cost() > cost => Self::Store(charge.part(0, cost)),
            Self::Alone(charged) => Self::Alone(charged.min(cost)),
            _ => self,
        }
    }

    /// What was charged too much for a request that costs this; `None` if nothing was.
    pub(super) fn too_much(&self, cost: Cost) -> Option<Self> {
        match self {
            Self::Store(charge) => charge.too_much(cost).map(Self::Store),
            Self::Alone(charged) => charged.above(cost).map(Self::Alone),
            Self::Own(_) | Self::Nothing => None,
        }
    }
}

/// The answer to a [`Join`], and to a question whether it would be accepted.
#[derive(Debug)]
pub enum Answer {
    /// The request's turn has come.
    Turn(Grant),
    /// The request is rejected.
    Rejected(Rejection),
    /// The key is unknown, and the zone takes no more new keys now: the request is to join the
    /// bucket of [`NEW_KEYS`].
    OneTooMany(Join),
    /// The answer to an [`AskPlace`](super::join::AskPlace) that does not wait: no place is free.
    NoPlace,
}

impl From<Result<Grant, Rejection>> for Answer {
    fn from(decided: Result<Grant, Rejection>) -> Self {
        decided.map_or_else(Self::Rejected, Self::Turn)
    }
}

/// A turn as the key's actor grants it, with the state known at that time.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    /// What was charged. Needed to give back an unused turn.
    pub charge: Charge,
    /// When it was due, if it had to wait (in a dry run: if it would have had to).
    pub due: Option<Moment>,
    /// When it was granted.
    pub at: Moment,
    /// The level with this request, at the time it joined.
    pub excess: Excess,
    /// What the client may do next.
    pub outlook: Outlook,
    /// Set if the request has taken a place among the running ones of its key, or asks for one later.
    pub place: Option<Ticket>,
}

/// What a client may do next at a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// Number of requests that would be accepted now.
    pub remaining: u32,
    /// Time until one more request would be accepted; zero if the bucket is empty.
    pub one_more_in: Duration,
}

impl Outlook {
    /// The outlook for a key whose account is in this state at `now`.
    pub(super) fn of(account: &Account, rate: Rate, limit: Limit, now: Moment) -> Self {
        let remaining = account.remaining(rate, limit, now);
        let one_more_in = account.accepts_at(rate, limit, remaining, now).since(now);
        Self {
            remaining,
            one_more_in,
        }
    }

    /// Time until a request would be accepted; zero while any remain.
    pub fn retry_after(&self) -> Duration {
        if self.remaining > 0 {
            Duration::ZERO
        } else {
            self.one_more_in
        }
    }
}

/// Why a join was rejected, and when to retry.
#[derive(Clone, Copy, Debug)]
pub struct Rejection {
    /// The limit or condition that caused the rejection.
    pub reason: Rejected,
    /// The level that the request would have made.
    pub excess: Excess,
    /// Time until the same request would be accepted, if no other request comes.
    pub retry_after: Duration,
    /// Whether the bucket of [`NEW_KEYS`](super::NEW_KEYS) rejected it, and not that of its own key.
    pub is_flood: bool,
}

impl Grant {
    /// The grant of a request that passes at once, without a place.
    pub(super) fn at_once(charge: Charge, excess: Excess, outlook: Outlook, at: Moment) -> Self {
        Self {
            charge,
            due: None,
            at,
            excess,
            outlook,
            place: None,
        }
    }

    /// The grant of a zone that no longer limits.
    pub(super) fn unlimited() -> Self {
        let outlook = Outlook {
            remaining: 1,
            one_more_in: Duration::ZERO,
        };
        let excess = Excess::default();
        Self::at_once(Charge::Nothing, excess, outlook, Moment::default())
    }

    /// The status to count and log for this turn.
    pub fn status(&self, dry_run: bool) -> LimitStatus {
        match (self.due, dry_run) {
            (None, _) => LimitStatus::Passed,
            (Some(_), false) => LimitStatus::Delayed,
            (Some(_), true) => LimitStatus::DelayedDryRun,
        }
    }
}

impl Rejection {
    /// What a bucket refused at `now`.
    pub(super) fn of(refusal: Refusal, now: Moment) -> Self {
        Self {
            reason: refusal.reason.into(),
            excess: refusal.excess,
            retry_after: refusal.retry_at.since(now),
            is_flood: false,
        }
    }

    /// A rejection for which no exact time is known.
    pub(super) fn soon(reason: Rejected) -> Self {
        Self {
            reason,
            excess: Excess::default(),
            retry_after: RETRY_SOON,
            is_flood: false,
        }
    }

    /// The rejection in a pause, if no more requests may wait for its end.
    pub(super) fn in_pause() -> Self {
        Self {
            retry_after: Duration::ZERO,
            ..Self::soon(Rejected::Paused)
        }
    }

    /// The status to count and log for this rejection.
    ///
    /// A stop rejects requests also in a dry run: no request is passed on any more.
    pub fn status(&self, dry_run: bool) -> LimitStatus {
        if dry_run && self.reason != Rejected::Stopping {
            LimitStatus::RejectedDryRun
        } else {
            LimitStatus::Rejected
        }
    }
}
