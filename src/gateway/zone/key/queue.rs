//! A key's level and waiters, kept here or with the store.

use std::num::NonZeroU32;

use limit::{self, Bucket, Departure, Excess, Limit, Moment, Onward, Queue, Rate, Ticket};
use tokio::sync::oneshot;

use super::super::answer::Charge;
use super::places::DueWaiter;
use super::shared_queue::SharedQueue;
use crate::zone::answer::Answer;
use crate::zone::join::PendingJoin;

/// A key's level and waiters.
pub(super) enum KeyQueue {
    /// Kept completely here.
    Own(Queue<Waiter>),
    /// Departure times come from the store; the waiters and their times are kept here.
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

    /// The rate of this gateway's file. Another may be in force.
    pub(super) fn rate_of_file(&self) -> Rate {
        match self {
            Self::Own(queue) => queue.rate(),
            Self::Shared(queue) => queue.own(),
        }
    }

    /// The bucket converted to the rate of this gateway's file. Another rate may be in force.
    ///
    /// It is kept in this form when the actor has gone.
    pub(super) fn bucket_of_file(&self, now: Moment) -> Bucket {
        let (mut bucket, rate, own) = (self.bucket(), self.rate(), self.rate_of_file());
        if rate != own {
            bucket.retune(rate, own, now);
        }
        bucket
    }

    pub(super) fn depth(&self) -> usize {
        match self {
            Self::Own(queue) => queue.depth(),
            Self::Shared(queue) => queue.line().depth(),
        }
    }

    pub(super) fn oldest(&self) -> Option<Moment> {
        match self {
            Self::Own(queue) => queue.first_waiters().map(|it| it.since).min(),
            Self::Shared(queue) => queue.line().oldest(),
        }
    }

    pub(super) fn due(&self) -> Option<Moment> {
        match self {
            Self::Own(queue) => queue.due(),
            Self::Shared(queue) => queue.line().due(),
        }
    }

    /// The waiters, and when they are due.
    pub(super) fn schedule(&self) -> Vec<(Moment, &Waiter)> {
        match self {
            Self::Own(queue) => queue.schedule().collect(),
            Self::Shared(queue) => queue.line().schedule().collect(),
        }
    }

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

    /// Removes a waiter that leaves before its turn, if it waits here. Those behind it move up.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        match self {
            Self::Own(queue) => {
                queue.leave(ticket);
            }
            Self::Shared(queue) => queue.leave(ticket),
        }
    }

    /// Gives back the charge of a turn. The waiters behind it move up.
    pub(super) fn refund(&mut self, charge: Charge, now: Moment) {
        match (self, charge) {
            (Self::Own(queue), Charge::Own(charge)) => queue.refund(charge, now),
            (Self::Shared(queue), charge) => queue.give_back(charge, now),
            // A zone that has moved to another store has other actors.
            (Self::Own(_), _) => {}
        }
    }

    /// What the waiters were charged together.
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
    /// The request once its time has come, with what it was charged.
    pub(super) fn charged(self, charge: Charge) -> DueWaiter {
        DueWaiter {
            waiter: self,
            charge,
        }
    }

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
