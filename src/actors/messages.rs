use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use actix::Message;
use tokio::sync::oneshot;

use super::census::{Count, Top};
use super::shared::Sharing;
use crate::limit::{self, Account, Algorithm, Excess, Limit, Moment, Rate, Ticket};
use crate::metrics::{LimitStatus, Rejected};
use crate::store;

/// A client's key: the bytes that its zone's key template made of a request.
pub type Key = Arc<[u8]>;

/// What a client is told to wait where nothing better is known.
pub(super) const RETRY_SOON: Duration = Duration::from_secs(1);

/// Asks for a turn. Answered exactly once, unless whoever asks has gone before.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Join {
    /// Whose turn.
    pub key: Key,
    /// The route's numbers.
    pub limit: Limit,
    /// Decide, charge and tell, but let nobody wait.
    pub dry_run: bool,
    /// The asker's name for this join.
    pub ticket: Ticket,
    /// Where the answer goes.
    pub reply: oneshot::Sender<Answer>,
}

/// Asks whether a join would be accepted now. Nothing is charged.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Probe {
    /// Whose bucket.
    pub key: Key,
    /// The route's numbers.
    pub limit: Limit,
    /// Where the answer goes: why not, if not.
    pub reply: oneshot::Sender<Option<Rejection>>,
}

/// What a turn was charged, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// By this gateway, which keeps the zone.
    Own(limit::Charge),
    /// By the store that keeps it.
    Store(store::Charge),
    /// By this gateway, while the store was out.
    Alone,
    /// Nothing.
    Nothing,
}

/// The answer to a [`Join`].
#[derive(Debug)]
pub enum Answer {
    /// Its turn has come.
    Turn(Grant),
    /// It is not accepted.
    Rejected(Rejection),
}

/// A turn as the key's actor gives it, and what the actor knew when it did.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    /// What was charged: to be shown when the turn is not used.
    pub charge: Charge,
    /// When it was due, where it had to wait (or, in a dry run, would have had to).
    pub due: Option<Moment>,
    /// The level with this request, when it joined.
    pub excess: Excess,
    /// What a client may do next.
    pub outlook: Outlook,
}

/// What a client may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// Requests that would be accepted right now.
    pub remaining: u32,
    /// How long until one more would be; zero where the bucket is empty.
    pub one_more_in: Duration,
}

impl Outlook {
    /// Of a key whose account stands so at `now`.
    pub(super) fn of(account: &Account, rate: Rate, limit: Limit, now: Moment) -> Self {
        let remaining = account.remaining(rate, limit, now);
        let one_more_in = account.accepts_at(rate, limit, remaining, now).since(now);
        Self {
            remaining,
            one_more_in,
        }
    }

    /// How long until a request would be accepted; zero while any remain.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        if self.remaining > 0 {
            Duration::ZERO
        } else {
            self.one_more_in
        }
    }
}

/// Why a join was not accepted.
#[derive(Clone, Copy, Debug)]
pub struct Rejection {
    /// What it ran into.
    pub reason: Rejected,
    /// The level that it would have made.
    pub excess: Excess,
    /// How long until the same request would be accepted, if nobody else comes.
    pub retry_after: Duration,
}

impl Grant {
    /// What is counted and logged of this turn.
    #[must_use]
    pub fn status(&self, dry_run: bool) -> LimitStatus {
        match (self.due, dry_run) {
            (None, _) => LimitStatus::Passed,
            (Some(_), false) => LimitStatus::Delayed,
            (Some(_), true) => LimitStatus::DelayedDryRun,
        }
    }
}

impl Rejection {
    /// Of a zone that is closed while its store is out.
    #[must_use]
    pub(super) fn without_store() -> Self {
        Self {
            reason: Rejected::Store,
            excess: Excess::default(),
            retry_after: RETRY_SOON,
        }
    }

    /// What is counted and logged of this rejection. A stop is no dry run: nobody is passed on any more.
    #[must_use]
    pub fn status(&self, dry_run: bool) -> LimitStatus {
        if dry_run && self.reason != Rejected::Stopping {
            LimitStatus::RejectedDryRun
        } else {
            LimitStatus::Rejected
        }
    }
}

/// The one who joined with this ticket has gone.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Leave {
    /// Whose place.
    pub key: Key,
    /// Which join.
    pub ticket: Ticket,
}

/// A turn was not used.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Refund {
    /// Whose turn.
    pub key: Key,
    /// What it was charged.
    pub charge: Charge,
}

/// What a supervisor may be told anew while it runs.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// How the requests of each key are counted; it never changes.
    pub algorithm: Algorithm,
    /// The rate of each key.
    pub rate: Rate,
    /// How many keys this supervisor may remember.
    pub max_keys: NonZeroUsize,
    /// For how long a drained key is remembered.
    pub idle_timeout: Duration,
    /// Of a zone that is kept in a store.
    pub(super) sharing: Option<Sharing>,
}

/// The zone's settings have changed.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub struct Retune(pub Tuning);

/// The zone is no longer in the file: its supervisor ends once nobody waits.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Retire;

/// The gateway's time is up: all who wait, and all who still come, are rejected.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Dismiss;

/// Asks for a step of a census, from just before the index `before` on.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Survey {
    pub(super) count: Count,
    /// [`FROM_THE_END`], and then as told.
    pub(super) before: usize,
    /// Where the count goes, and where to go on: 0 at the end.
    pub(super) reply: oneshot::Sender<(Count, usize)>,
}

/// Asks for a step of a walk over all keys, from just before the index `before` on.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Walk {
    pub(super) top: Top,
    /// [`FROM_THE_END`], and then as told.
    pub(super) before: usize,
    /// Where the keys go, and where to go on: 0 at the end.
    pub(super) reply: oneshot::Sender<(Top, usize)>,
}

/// Where walks begin.
pub(super) const FROM_THE_END: usize = usize::MAX;

/// Forgets what a key was charged.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Forget {
    pub(super) key: Key,
    pub(super) waiters: Waiters,
    /// How many were sent away; `None` where the key is not known.
    pub(super) reply: oneshot::Sender<Option<usize>>,
}

/// What becomes of those who wait at a key whose debt is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiters {
    /// They keep their order and pace.
    Stay,
    /// They are rejected, as in a stop.
    Dismissed,
}

/// From a supervisor to one of its actors: forget what was charged.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct ForgetKey {
    pub(super) waiters: Waiters,
    pub(super) reply: oneshot::Sender<Option<usize>>,
}

/// From a supervisor to one of its actors: the rate has changed.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(super) struct RetuneKey(pub Rate);

/// From a supervisor to one of its actors, whose bucket it has taken back: end.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(super) struct End;
