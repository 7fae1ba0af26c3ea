//! Join: a request that asks a zone for admission, with its key and its ticket.
//!
//! Also the treatment of waiters whose key's charges are forgotten, and what the next process
//! learns of a waiter when this process hands over.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use limit::{DestinationId, ExpectedRequest, Limit, Moment, Ticket};
use tokio::sync::mpsc;

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
    /// Index of the key's plan in the file, if it has one. A plan gives keys a rate of their own.
    pub plan: Option<usize>,
    /// Limit of the route.
    pub limit: Limit,
    /// Whether the zone decides, charges and answers as usual, but never lets the request wait.
    pub dry_run: bool,
    /// Identifies the request, in all zones that it joins.
    pub ticket: Ticket,
    /// Origin's gate that the request goes on to, if the gate must know its departure in advance.
    pub onward: Option<DestinationId>,
    /// Whether the request takes the permits of all its zones later (see `take_permits`).
    pub takes_permits_later: bool,
}

/// Treatment of a key's waiters when an operator makes the zone forget the key's charges.
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
    ///
    /// A key with a plan is always known, so a request that gets here has no plan.
    pub(super) fn of_new_keys(self) -> Self {
        Self {
            key: Key::from(NEW_KEYS),
            ..self
        }
    }

    /// Returns the record of this request, for a replay.
    pub(super) fn arrival(&self, time: Moment) -> Arrival<'_> {
        Arrival {
            time,
            key: &self.key,
            limit: self.limit,
            dry_run: self.dry_run,
        }
    }
}

/// Returns a ticket that is unique in this process.
pub fn next_ticket() -> Ticket {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        // The upper 16 bits are the thread's number, the lower 48 bits its count.
        static NEXT: Cell<u64> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) << 48);
    }
    Ticket(NEXT.replace(NEXT.get() + 1))
}

/// Sender of expected departures.
pub(super) type DepartureSender = mpsc::UnboundedSender<ExpectedDeparture>;

/// Change of `in_flight` of a limit: its old and its new value.
pub(super) type InFlightChange = (NonZeroU32, NonZeroU32);

/// Departure of a waiter, which is expected after its process has handed over to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedDeparture {
    /// Ticket of the request, the same in each zone in which it waits.
    pub ticket: Ticket,
    /// Origin's gate that the request goes on to.
    pub onward: DestinationId,
    /// Departure time and cost of the request.
    pub to_come: ExpectedRequest,
}
