//! Waiter: a request in the queue of a key, with what is needed to answer it.

use std::num::NonZeroU32;

use limit::{self, DestinationId, Excess, Limit, Moment, Ticket};
use tokio::sync::oneshot;

use crate::zone::answer::Answer;
use crate::zone::pending::PendingJoin;

/// Request in a key's queue.
pub(super) struct Waiter {
    /// Start of the wait, by the real clock.
    pub(super) since: Moment,
    pub(super) limit: Limit,
    /// Level of the bucket at the join, this request included.
    pub(super) excess: Excess,
    pub(super) ticket: Ticket,
    /// Gate that the request goes on to, if its future departures matter there.
    pub(super) onward: Option<DestinationId>,
    pub(super) waits_for: WaitsFor,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// Reason of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// The request waits for its slot, and then for a permit if its limit has `in_flight`.
    SlotAndPermit,
    /// The request waits for its slot, and asks for a permit later.
    Slot,
    /// The request joined at `joined` and waits for a permit.
    ///
    /// `at_once`: if none is free, the request gets this answer instead of waiting.
    Permit { joined: Moment, at_once: bool },
}

impl Waiter {
    /// Creates the waiter for a charged join. `since`: start of the wait, by the real clock.
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
        *in_flight = in_flight.map(|old| limit::changed(old, changes));
    }
}
