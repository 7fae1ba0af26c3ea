//! What a request asks of a zone.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use limit::{Limit, Moment, Onward, Rate, SavedAccount, Ticket, ToCome};
use tokio::sync::oneshot;

use super::answer::Answer;
use super::arrivals::Arrival;

/// A client's key: the bytes that the zone's key template makes of a request.
pub type Key = Arc<[u8]>;

/// The key of the bucket that requests of unknown keys share while a zone takes no more new keys.
///
/// No client has it: a request whose own key is empty is not limited.
pub const NEW_KEYS: &[u8] = b"";

/// A request that asks a zone for a turn.
#[derive(Clone, Debug)]
pub struct Join {
    /// The key whose turn is asked for.
    pub key: Key,
    /// The index of the plan of the key, if it has one.
    pub plan: Option<usize>,
    /// The route's limit.
    pub limit: Limit,
    /// Decide, charge and answer as usual, but never wait.
    pub dry_run: bool,
    /// What tells the request from others, in all zones that it joins.
    pub ticket: Ticket,
    /// Where the request goes on to, if what is to come matters there.
    pub onward: Option<Onward>,
    /// Whether it takes its places in all zones together, once it has its turns.
    pub places_later: bool,
}

/// What happens to the waiters of a key whose charges are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiters {
    /// They keep their order and pace.
    Stay,
    /// They are rejected, as in a stop.
    Rejected,
}

impl Join {
    /// A new request that joins this zone alone.
    pub fn new(key: Key, plan: Option<usize>, limit: Limit) -> Self {
        Self {
            key,
            plan,
            limit,
            dry_run: false,
            ticket: next_ticket(),
            onward: None,
            places_later: false,
        }
    }

    /// The same request at the bucket that unknown keys share.
    pub(super) fn of_new_keys(self) -> Self {
        Self {
            key: Key::from(NEW_KEYS),
            ..self
        }
    }

    /// The request as it is recorded.
    pub(super) fn arrival(&self, time: Moment) -> Arrival<'_> {
        Arrival {
            time,
            key: &self.key,
            limit: self.limit,
            dry_run: self.dry_run,
        }
    }
}

/// Returns a ticket that is unique in this process: each thread counts up from its own start.
pub fn next_ticket() -> Ticket {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NEXT: Cell<u64> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) << 48);
    }
    Ticket(NEXT.replace(NEXT.get() + 1))
}

/// A join on its way to an actor. It is answered exactly once, unless the caller has gone before.
pub(super) struct PendingJoin {
    pub(super) join: Join,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// Asks for a place for a request that has its turn. Answered exactly once, unless the caller has
/// gone before.
pub(super) struct AskPlace {
    /// The ticket of the join.
    pub(super) ticket: Ticket,
    /// The route's limit.
    pub(super) limit: Limit,
    /// When it joined. Whoever joined first has the next place.
    pub(super) joined: Moment,
    /// Whether it waits until a place is free.
    pub(super) waits: bool,
    pub(super) reply: oneshot::Sender<Answer>,
}

impl Join {
    /// Makes it pending. Its answer comes to the receiver.
    pub(super) fn pending(self) -> (PendingJoin, oneshot::Receiver<Answer>) {
        let (reply, answer) = oneshot::channel();
        (PendingJoin { join: self, reply }, answer)
    }
}

/// What a zone keeps of a key when its process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedKey {
    /// The key's bytes.
    pub key: Key,
    /// The rate under which it was charged.
    pub rate: Rate,
    /// What it was charged; `None` if that has drained, and only that the key is known matters.
    pub account: Option<SavedAccount>,
}

/// A request that waits for its turn when its process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnToCome {
    /// The same in each zone in which the request waits.
    pub ticket: Ticket,
    /// Where it goes on to.
    pub onward: Onward,
    /// When its turn comes, and what it counts for.
    pub to_come: ToCome,
}
