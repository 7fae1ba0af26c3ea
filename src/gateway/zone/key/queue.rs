//! Level and waiters of a key, kept here or together with the store.

use std::num::NonZeroU32;

use limit::{self, Bucket, Departure, Excess, Limit, Moment, Onward, Queue, Rate, Ticket};
use tokio::sync::oneshot;

use super::super::answer::Charge;
use super::places::DueWaiter;
use super::shared_queue::SharedQueue;
use crate::zone::answer::Answer;
use crate::zone::join::PendingJoin;

/// Level and waiters of a key.
pub(super) enum KeyQueue {
    /// Level and waiters are kept in this process.
    Own(Queue<Waiter>),
    /// Slots come from the store; the waiters and their slots are kept here.
    Shared(SharedQueue),
}

impl KeyQueue {
    pub(super) fn bucket(&self) -> Bucket {
        match self {
            Self::Own(queue) => queue.bucket(),
            Self::Shared(queue) => queue.bucket(),
        }
    }

    pub(super) fn rate(&self) -> Rate {
        match self {
            Self::Own(queue) => queue.rate(),
            Self::Shared(queue) => queue.rate(),
        }
    }

    /// Returns the rate of this gateway's file. Another rate may be in force.
    pub(super) fn rate_of_file(&self) -> Rate {
        match self {
            Self::Own(queue) => queue.rate(),
            Self::Shared(queue) => queue.own(),
        }
    }

    /// Returns the bucket converted to the rate of this gateway's file.
    ///
    /// Another rate may be in force. The bucket is kept in this form after the actor has ended.
    pub(super) fn bucket_of_file(&self, now: Moment) -> Bucket {
        let (mut bucket, rate, own) = (self.bucket(), self.rate(), self.rate_of_file());
        if rate != own {
            bucket.retune(rate, own, now);
        }
        bucket
    }

    /// Returns the number of waiters.
    pub(super) fn depth(&self) -> usize {
        match self {
            Self::Own(queue) => queue.depth(),
            Self::Shared(queue) => queue.line().depth(),
        }
    }

    /// Returns when the oldest waiter joined.
    pub(super) fn oldest(&self) -> Option<Moment> {
        match self {
            Self::Own(queue) => queue.first_waiters().map(|it| it.since).min(),
            Self::Shared(queue) => queue.line().oldest(),
        }
    }

    /// Returns the first departure time.
    pub(super) fn due(&self) -> Option<Moment> {
        match self {
            Self::Own(queue) => queue.due(),
            Self::Shared(queue) => queue.line().due(),
        }
    }

    /// Returns the waiters with their departure times.
    pub(super) fn schedule(&self) -> Vec<(Moment, &Waiter)> {
        match self {
            Self::Own(queue) => queue.schedule().collect(),
            Self::Shared(queue) => queue.line().schedule().collect(),
        }
    }

    /// Takes the next waiter that is due.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<Departure<Waiter, Charge>> {
        match self {
            Self::Own(queue) => queue.take_due(now).map(|departure| Departure {
                due: departure.due,
                charge: Charge::Own(departure.charge),
                waiter: departure.waiter,
            }),
            Self::Shared(queue) => queue.take_due(now),
        }
    }

    /// Removes a waiter that leaves before its slot, if it waits here. Later waiters move up.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        match self {
            Self::Own(queue) => {
                queue.leave(ticket);
            }
            Self::Shared(queue) => queue.leave(ticket),
        }
    }

    /// Refunds a charge. Later waiters move up.
    pub(super) fn refund(&mut self, charge: Charge, now: Moment) {
        match (self, charge) {
            (Self::Own(queue), Charge::Own(charge)) => queue.refund(charge, now),
            (Self::Shared(queue), charge) => queue.give_back(charge, now),
            // The zone has moved to another store since, and that store has other actors.
            (Self::Own(_), _) => {}
        }
    }

    /// Returns the sum of the waiters' charges.
    pub(super) fn costs(&self) -> u64 {
        match self {
            Self::Own(queue) => queue.costs(),
            Self::Shared(queue) => queue.costs(),
        }
    }

    /// Removes and returns all waiters.
    pub(super) fn reject_all(&mut self) -> Vec<Waiter> {
        match self {
            Self::Own(queue) => queue.reject_all(),
            Self::Shared(queue) => queue.reject_all(),
        }
    }

    /// Forgets all charges except those of the waiters.
    pub(super) fn forget(&mut self, now: Moment) {
        match self {
            Self::Own(queue) => queue.forget(now),
            Self::Shared(queue) => queue.forget(now),
        }
    }
}

/// Request in a key's queue.
pub(super) struct Waiter {
    pub(super) since: Moment,
    pub(super) limit: Limit,
    pub(super) excess: Excess,
    pub(super) ticket: Ticket,
    pub(super) onward: Option<Onward>,
    pub(super) waits_for: WaitsFor,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// Reason of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// Waits for its slot, and then for a permit if its limit has `in_flight`.
    Turn,
    /// Waits for its slot, and asks for a permit later.
    Time,
    /// Waits for a permit since it joined at `joined`. `at_once`: is answered if none is free.
    Place { joined: Moment, at_once: bool },
}

impl Waiter {
    /// Returns the request in its state when it is due, with its charge.
    pub(super) fn charged(self, charge: Charge) -> DueWaiter {
        DueWaiter {
            waiter: self,
            charge,
        }
    }

    /// Creates the waiter for a charged join. `since`: start of the wait.
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

    /// Adopts the changed `in_flight` of its limit.
    pub(super) fn change_in_flight(&mut self, changes: &[(NonZeroU32, NonZeroU32)]) {
        let in_flight = &mut self.limit.in_flight;
        *in_flight = in_flight.map(|most| limit::changed(most, changes));
    }
}
