//! Join of a zone, the key that it joins with, and the waiters that a next process expects.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use limit::{DestinationId, ExpectedRequest, Limit, Moment, Ticket};

use super::arrivals::Arrival;

/// Key of a client: the bytes that the zone's key template makes of a request.
pub type Key = Arc<[u8]>;

/// Key of the bucket that requests of unknown keys share while the zone accepts no new keys.
///
/// No client has this key, because a request whose own key is empty is not limited.
pub const NEW_KEYS: &[u8] = b"";

/// Join: a request that asks a zone for admission.
#[derive(Clone, Debug)]
pub struct Join {
    /// Key of the request.
    pub key: Key,
    /// Index of the key's plan, if it has one.
    pub plan: Option<usize>,
    /// Limit of the route.
    pub limit: Limit,
    /// Whether to decide, charge and answer as usual, but never wait.
    pub dry_run: bool,
    /// Identifies the request, in all zones that it joins.
    pub ticket: Ticket,
    /// Gate that the request goes on to, if its future departures matter there.
    pub onward: Option<DestinationId>,
    /// Whether it takes the permits of all its zones together, after all have admitted it.
    pub takes_permits_later: bool,
}

/// Treatment of the waiters of a key whose charges are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiters {
    /// Waiters keep their order and rate.
    Stay,
    /// Waiters are rejected, as in a stop.
    Rejected,
}

impl Join {
    /// Creates a request that joins this zone alone.
    pub fn new(key: Key, plan: Option<usize>, limit: Limit) -> Self {
        Self {
            key,
            plan,
            limit,
            dry_run: false,
            ticket: next_ticket(),
            onward: None,
            takes_permits_later: false,
        }
    }

    /// Returns the same request, for the bucket that unknown keys share.
    pub(super) fn of_new_keys(self) -> Self {
        Self {
            key: Key::from(NEW_KEYS),
            ..self
        }
    }

    /// Returns the request in the form in which it is recorded.
    pub(super) fn arrival(&self, time: Moment) -> Arrival<'_> {
        Arrival {
            time,
            key: &self.key,
            limit: self.limit,
            dry_run: self.dry_run,
        }
    }
}

/// Returns a ticket that is unique in this process. Each thread counts up from its own start.
pub fn next_ticket() -> Ticket {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NEXT: Cell<u64> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) << 48);
    }
    Ticket(NEXT.replace(NEXT.get() + 1))
}

/// Waiter whose departure is expected after its process has handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedDeparture {
    /// Ticket of the request, the same in each zone in which it waits.
    pub ticket: Ticket,
    /// Gate that the request goes on to.
    pub onward: DestinationId,
    /// Departure time and cost of the request.
    pub to_come: ExpectedRequest,
}
