use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use actix::Message;
use tokio::sync::oneshot;

use super::stats::{Count, Top};
use super::store_link::Sharing;
use crate::limit::{self, Account, Algorithm, Excess, Limit, Moment, Rate, Ticket};
use crate::observe::metrics::{LimitStatus, Rejected};
use crate::store;

/// A client's key: the bytes that the zone's key template makes of a request.
pub type Key = Arc<[u8]>;

/// How long a client is told to wait if no exact time is known.
pub(super) const RETRY_SOON: Duration = Duration::from_secs(1);

/// Asks for a turn. Answered exactly once, unless the caller has gone before.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Join {
    /// The key whose turn is asked for.
    pub key: Key,
    /// The route's limit.
    pub limit: Limit,
    /// Decide, charge and answer as usual, but never wait.
    pub dry_run: bool,
    /// The caller's ticket for this join.
    pub ticket: Ticket,
    /// Receives the answer.
    pub reply: oneshot::Sender<Answer>,
}

/// Asks whether a join would be accepted now. Nothing is charged.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Probe {
    /// The key whose bucket is asked.
    pub key: Key,
    /// The route's limit.
    pub limit: Limit,
    /// Receives the rejection, or `None` if the join would be accepted.
    pub reply: oneshot::Sender<Option<Rejection>>,
}

/// What a turn was charged, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// Charged by this gateway, which keeps the zone.
    Own(limit::Charge),
    /// Charged by the store that keeps the zone.
    Store(store::Charge),
    /// Charged by this gateway while the store was unavailable.
    Alone,
    /// Nothing was charged.
    Nothing,
}

/// The answer to a [`Join`].
#[derive(Debug)]
pub enum Answer {
    /// The request's turn has come.
    Turn(Grant),
    /// The request is rejected.
    Rejected(Rejection),
}

/// A turn as the key's actor grants it, with the state known at that time.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    /// What was charged. Needed to give back an unused turn.
    pub charge: Charge,
    /// When it was due, if it had to wait (in a dry run: if it would have had to).
    pub due: Option<Moment>,
    /// The level with this request, at the time it joined.
    pub excess: Excess,
    /// What the client may do next.
    pub outlook: Outlook,
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
    #[must_use]
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
}

impl Grant {
    /// The status to count and log for this turn.
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
    /// The rejection for a zone that is closed while its store is unavailable.
    #[must_use]
    pub(super) fn without_store() -> Self {
        Self {
            reason: Rejected::Store,
            excess: Excess::default(),
            retry_after: RETRY_SOON,
        }
    }

    /// The status to count and log for this rejection.
    ///
    /// A stop rejects requests also in a dry run: no request is passed on any more.
    #[must_use]
    pub fn status(&self, dry_run: bool) -> LimitStatus {
        if dry_run && self.reason != Rejected::Stopping {
            LimitStatus::RejectedDryRun
        } else {
            LimitStatus::Rejected
        }
    }
}

/// The request that joined with this ticket has gone.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Leave {
    /// The key it waits at.
    pub key: Key,
    /// The ticket of its join.
    pub ticket: Ticket,
}

/// A turn was not used: give its charge back.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Refund {
    /// The key of the turn.
    pub key: Key,
    /// What the turn was charged.
    pub charge: Charge,
}

/// A supervisor's settings. They can change while it runs.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// How the requests of each key are counted. Never changes.
    pub algorithm: Algorithm,
    /// The rate of each key.
    pub rate: Rate,
    /// The most keys that this supervisor may remember.
    pub max_keys: NonZeroUsize,
    /// A drained key is forgotten after it was not used for this long.
    pub idle_timeout: Duration,
    /// Set for a zone that is kept in a store.
    pub(super) sharing: Option<Sharing>,
}

/// The zone's settings have changed.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub struct Retune(pub Tuning);

/// The zone has left the file: its supervisor ends once nothing waits.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Retire;

/// The gateway stops: all waiters and all later requests are rejected.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct RejectAll;

/// Asks for one step of a stats, from just before index `before` towards the front.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct CollectStats {
    pub(super) count: Count,
    /// [`FROM_THE_END`] first, then the index of the last reply.
    pub(super) before: usize,
    /// Receives the count and the index to continue from; 0 at the end.
    pub(super) reply: oneshot::Sender<(Count, usize)>,
}

/// Asks for one step of a walk over all keys, from just before index `before` to the front.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct ListKeys {
    pub(super) top: Top,
    /// [`FROM_THE_END`] first, then the index of the last reply.
    pub(super) before: usize,
    /// Receives the keys and the index to continue from; 0 at the end.
    pub(super) reply: oneshot::Sender<(Top, usize)>,
}

/// The index at which walks begin.
pub(super) const FROM_THE_END: usize = usize::MAX;

/// Forgets what a key was charged.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Forget {
    pub(super) key: Key,
    pub(super) waiters: Waiters,
    /// Receives the number of rejected waiters; `None` if the key is not known.
    pub(super) reply: oneshot::Sender<Option<usize>>,
}

/// What happens to the waiters of a key whose charges are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiters {
    /// They keep their order and pace.
    Stay,
    /// They are rejected, as in a stop.
    Rejected,
}

/// Supervisor to key actor: forget what was charged.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct ForgetKey {
    pub(super) waiters: Waiters,
    pub(super) reply: oneshot::Sender<Option<usize>>,
}

/// Supervisor to key actor: the rate has changed.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(super) struct RetuneKey(pub Rate);

/// Supervisor to key actor: end. The supervisor has taken its bucket back.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(super) struct End;
