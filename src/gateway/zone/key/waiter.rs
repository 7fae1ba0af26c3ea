use std::num::NonZeroU32;

use limit::{self, Excess, Limit, Moment, Onward, Ticket};
use tokio::sync::oneshot;

use super::super::answer::Answer;

/// A request that waits for its turn.
pub(super) struct Waiter {
    pub(super) since: Moment,
    pub(super) limit: Limit,
    pub(super) excess: Excess,
    pub(super) ticket: Ticket,
    pub(super) onward: Option<Onward>,
    pub(super) waits_for: WaitsFor,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// Its time, and then a place if its limit bounds the running requests.
    Turn,
    /// Its time. It asks for a place later.
    Time,
    /// A place. It joined at `joined`. `at_once`: it is told if none is free.
    Place { joined: Moment, at_once: bool },
}

impl WaitsFor {
    /// What a join waits for.
    pub(super) fn of(places_later: bool) -> Self {
        if places_later { Self::Time } else { Self::Turn }
    }
}

impl Waiter {
    /// Adopts what has become of the number that bounds the running requests.
    pub(super) fn change_in_flight(&mut self, changes: &[(NonZeroU32, NonZeroU32)]) {
        let in_flight = &mut self.limit.in_flight;
        *in_flight = in_flight.map(|most| limit::changed(most, changes));
    }
}
