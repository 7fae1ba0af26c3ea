//! Waiter at a key.

use std::num::NonZeroU32;

use limit::{self, DestinationId, Excess, Limit, Moment, Ticket};
use tokio::sync::oneshot;

use crate::zone::answer::Answer;
use crate::zone::pending::PendingJoin;

/// Request in a key's queue.
pub(super) struct Waiter {
    pub(super) since: Moment,
    pub(super) limit: Limit,
    pub(super) excess: Excess,
    pub(super) ticket: Ticket,
    pub(super) onward: Option<DestinationId>,
    pub(super) waits_for: WaitsFor,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// Reason of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// Waits for its slot, and then for a permit if its limit has `in_flight`.
    SlotAndPermit,
    /// Waits for its slot, and asks for a permit later.
    Slot,
    /// Waits for a permit since it joined at `joined`. `at_once`: is answered if none is free.
    Permit { joined: Moment, at_once: bool },
}

impl Waiter {
    /// Creates the waiter for a charged join. `since`: start of the wait.
    pub(super) fn new(
        PendingJoin { join, reply }: PendingJoin,
        excess: Excess,
        since: Moment,
    ) -> Self {
        let waits_for = if join.takes_permits_later {
            WaitsFor::Slot
        } else {
            WaitsFor::SlotAndPermit
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

    /// Adopts the changed `in_flight` of its limit.
    pub(super) fn change_in_flight(&mut self, changes: &[(NonZeroU32, NonZeroU32)]) {
        let in_flight = &mut self.limit.in_flight;
        *in_flight = in_flight.map(|most| limit::changed(most, changes));
    }
}
