//! Waiter: a request in the queue of a key, with the sender of its answer.
//!
//! A *slot* is a departure time on the queue's schedule. A *permit* is the right to run one request
//! of the key, under a limit with `in_flight`.

use limit::{self, DestinationId, Excess, Limit, Moment, Ticket};
use tokio::sync::oneshot;

use crate::zone::answer::Answer;
use crate::zone::join::InFlightChange;
use crate::zone::pending::PendingJoin;

/// Request in a key's queue.
pub(super) struct Waiter {
    /// Start of the wait, by the real clock.
    pub(super) since: Moment,
    pub(super) limit: Limit,
    /// Level of the bucket at the join, this request included.
    pub(super) excess: Excess,
    /// Identifies the request, in all zones that it has joined.
    pub(super) ticket: Ticket,
    /// Origin's gate that the request goes on to, if the gate must know its departure in advance.
    pub(super) onward: Option<DestinationId>,
    pub(super) waits_for: WaitsFor,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// Event that a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// The request waits for its slot, and then for a permit if its limit has `in_flight`.
    SlotAndPermit,
    /// The request waits for its slot, and asks for a permit later.
    Slot,
    /// The request joined at `joined` and waits for a permit.
    ///
    /// `is_try`: the request does not wait; if no permit is free, it gets this answer.
    Permit { joined: Moment, is_try: bool },
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

    /// Adopts the new `in_flight` of its limit.
    pub(super) fn change_in_flight(&mut self, changes: &[InFlightChange]) {
        let in_flight = &mut self.limit.in_flight;
        *in_flight = in_flight.map(|old| limit::changed(old, changes));
    }
}
