use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use limit::{Onward, Ticket};

/// What tells a request from others, in all the zones that it joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTicket {
    pub(super) ticket: Ticket,
    pub(super) onward: Option<Onward>,
    /// Whether it takes its places in all zones together, once it has its turns.
    pub(super) places_later: bool,
}

impl RequestTicket {
    /// That of a new request. `onward`: where it goes on to, if what is to come matters there.
    #[must_use]
    pub fn new(onward: Option<Onward>) -> Self {
        Self {
            ticket: next_ticket(),
            onward,
            places_later: false,
        }
    }

    /// The same request, which takes its places in all zones together, once it has its turns.
    #[must_use]
    pub fn with_places_later(self) -> Self {
        Self {
            places_later: true,
            ..self
        }
    }
}

/// Returns a ticket that is unique in this process: each thread counts up from its own start.
fn next_ticket() -> Ticket {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NEXT: Cell<u64> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) << 48);
    }
    Ticket(NEXT.replace(NEXT.get() + 1))
}
