//! The messages that the actors of a zone take.

use std::num::NonZeroU32;
use std::sync::Arc;

use actix::Message;
use config;
use limit::{Cost, Limit, Moment, Onward, Rate, Ticket};
use tokio::sync::{mpsc, oneshot};

use super::answer::{Answer, Charge, Key, Outcome};
use super::arrivals::{Arrival, Arrivals};
use super::saved_key::{SavedKey, TurnToCome};
use super::stats::{Count, Top};

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
    /// Where the request goes on to, if what is to come matters there.
    pub onward: Option<Onward>,
    /// Whether it asks for its place later, by [`AskPlace`].
    pub places_later: bool,
    /// Receives the answer.
    pub reply: oneshot::Sender<Answer>,
}

/// Asks for a place for a request that has its turn. Answered exactly once, unless the caller has
/// gone before.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct AskPlace {
    /// The key of the place.
    pub key: Key,
    /// The ticket of the join.
    pub ticket: Ticket,
    /// The route's limit.
    pub limit: Limit,
    /// When it joined. Whoever joined first has the next place.
    pub joined: Moment,
    /// Whether it waits until a place is free.
    pub waits: bool,
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
    /// Whether the request passes even if it would be rejected.
    pub dry_run: bool,
    /// Receives what a join would be answered.
    pub reply: oneshot::Sender<Outcome>,
}

impl Probe {
    /// The request as it is recorded if it is rejected. Otherwise its join is.
    pub(super) fn arrival(&self, time: Moment) -> Arrival<'_> {
        Arrival {
            time,
            key: &self.key,
            limit: self.limit,
            dry_run: self.dry_run,
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

/// A turn was not used, or is not to count: give its charge back.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Refund {
    /// The key of the turn.
    pub key: Key,
    /// What the turn was charged.
    pub charge: Charge,
}

/// A request that was given a place, or asks for one later, has ended, or never used it.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct FreePlace {
    /// The key of the place.
    pub key: Key,
    /// The ticket of its join.
    pub ticket: Ticket,
    /// Whether it still needs the place, but waits for one of another key first.
    pub stays: bool,
}

/// A turn was used, and its request turned out to have another cost than it was charged.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Settle {
    /// The key of the turn.
    pub key: Key,
    /// What the turn was charged.
    pub charge: Charge,
    /// What it costs.
    pub cost: Cost,
}

/// The zone has left the file: its supervisor ends once nothing waits.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Retire;

/// The gateway stops: all waiters and all later requests are rejected.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct RejectAll;

/// The next process takes over: no request is accepted any more, and those that wait leave.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct HandOver {
    /// Told when all earlier requests are decided, or with their key's actor.
    pub(super) done: oneshot::Sender<()>,
}

/// The gateway ends: the places that it took ahead go back.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct GiveBackLeases {
    /// Told when the store has them, or does not answer.
    pub(super) done: oneshot::Sender<()>,
}

/// Asks for one step of saving all keys, from just before index `before` to the front.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct SaveKeys {
    /// [`FROM_THE_END`] first, then the index of the last reply.
    pub(super) before: usize,
    /// The moment as of which they are saved.
    pub(super) at: Moment,
    pub(super) reply: oneshot::Sender<SavedKeys>,
}

/// The keys of one step of saving.
#[derive(Debug)]
pub(super) struct SavedKeys {
    pub(super) keys: Vec<SavedKey>,
    /// The index to continue from; 0 at the end.
    pub(super) before: usize,
    /// Whether the next key waits for its actor.
    pub(super) is_behind: bool,
}

/// Asks for those that wait and go on to where that matters.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub(super) struct ListTurnsToCome {
    /// Receives them in a part for each key that has such.
    pub(super) to: mpsc::UnboundedSender<Vec<TurnToCome>>,
}

/// Keys that an earlier process saved at `at`.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct RestoreKeys {
    pub(super) keys: Vec<SavedKey>,
    pub(super) at: Moment,
}

/// Asks for one step of collecting statistics, from just before index `before` to the front.
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

/// Asks for one step of a search for the keys with a masked name, from just before index `before`
/// to the front.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct FindMasked {
    pub(super) zone: Arc<config::Zone>,
    pub(super) name: Arc<str>,
    /// [`FROM_THE_END`] first, then the index of the last reply.
    pub(super) before: usize,
    /// Receives the keys and the index to continue from; 0 at the end.
    pub(super) reply: oneshot::Sender<(Vec<Key>, usize)>,
}

/// Asks for the arrivals of the last ten minutes.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct CollectArrivals {
    pub(super) reply: oneshot::Sender<Arrivals>,
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

/// Supervisor to key actor: it is paused until then, or not paused any more.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(super) struct PauseKey(pub Option<Moment>);

/// Supervisor to key actor: waiters that wait until fewer of the key run than the first number of
/// a pair wait for the second one from now on.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub(super) struct ChangeInFlight(pub Arc<[(NonZeroU32, NonZeroU32)]>);

/// Supervisor to key actor: end. The supervisor has taken its bucket back.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(super) struct End;
