//! A request that waits at a key.

use std::num::NonZeroU32;

use limit::{self, Excess, Limit, Moment, Onward, Ticket};
use tokio::sync::oneshot;

use crate::zone::answer::Answer;
use crate::zone::pending::PendingJoin;

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

impl Waiter {
    /// A join that was charged, since when it has waited.
    pub(super) fn new(
        PendingJoin { join, reply }: PendingJoin,
        excess: Excess,
        since: Moment,
    ) -> Self {
        let waits_for = if join.places_later {
            WaitsFor::Time
        } else {
            WaitsFor::Turn
        };
        Self {
            since,
            limit: join.limit,
            excess,
            ticket: join.ticket,
            onward: join.onward,
            waits_for,
            reply,
        }
    }

    /// Adopts what has become of the number that bounds the running requests.
    pub(super) fn change_in_flight(&mut self, changes: &[(NonZeroU32, NonZeroU32)]) {
        let in_flight = &mut self.limit.in_flight;
        *in_flight = in_flight.map(|most| limit::changed(most, changes));
    }
}
