//! Level and waiters of a key, kept here or together with the store.

use limit::{self, Bucket, Departure, Moment, Queue, Rate, Ticket};

use super::super::answer::Charge;
use super::shared_queue::SharedQueue;
use super::waiter::Waiter;

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
            Self::Shared(queue) => queue.bucket,
        }
    }

    pub(super) fn rate(&self) -> Rate {
        match self {
            Self::Own(queue) => queue.rate(),
            Self::Shared(queue) => queue.rate,
        }
    }

    /// Returns the rate of this gateway's file. Another rate may be in force.
    pub(super) fn rate_of_file(&self) -> Rate {
        match self {
            Self::Own(queue) => queue.rate(),
            Self::Shared(queue) => queue.own,
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
            Self::Shared(queue) => queue.line.depth(),
        }
    }

    /// Returns when the oldest waiter joined.
    pub(super) fn oldest(&self) -> Option<Moment> {
        match self {
            Self::Own(queue) => queue.first_waiters().map(|it| it.since).min(),
            Self::Shared(queue) => queue.line.oldest(),
        }
    }

    /// Returns the first departure time.
    pub(super) fn due(&self) -> Option<Moment> {
        match self {
            Self::Own(queue) => queue.due(),
            Self::Shared(queue) => queue.line.due(),
        }
    }

    /// Returns the waiters with their departure times.
    pub(super) fn schedule(&self) -> Vec<(Moment, &Waiter)> {
        match self {
            Self::Own(queue) => queue.schedule().collect(),
            Self::Shared(queue) => queue.line.schedule().collect(),
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
            Self::Shared(queue) => queue.costs,
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
