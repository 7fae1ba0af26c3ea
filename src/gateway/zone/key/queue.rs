//! Queue of a key: its level and its waiters, kept by this process alone or with the store.
//!
//! The *level* is what the bucket has been charged and has not leaked yet.

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
    /// Returns a copy of the bucket; of a shared queue, as of the store's last reply.
    pub(super) fn bucket(&self) -> Bucket {
        match self {
            Self::Own(queue) => queue.bucket(),
            Self::Shared(queue) => queue.bucket,
        }
    }

    /// Returns the rate in force.
    pub(super) fn rate(&self) -> Rate {
        match self {
            Self::Own(queue) => queue.rate(),
            Self::Shared(queue) => queue.rate,
        }
    }

    /// Returns the rate of this gateway's file. Another rate may be in force.
    pub(super) fn file_rate(&self) -> Rate {
        match self {
            Self::Own(queue) => queue.rate(),
            Self::Shared(queue) => queue.file_rate,
        }
    }

    /// Returns the bucket, converted to the rate of this gateway's file.
    ///
    /// The supervisor keeps the bucket in this form after the actor has ended.
    pub(super) fn bucket_at_file_rate(&self, now: Moment) -> Bucket {
        let (mut bucket, rate, file_rate) = (self.bucket(), self.rate(), self.file_rate());
        if rate != file_rate {
            bucket.retune(rate, file_rate, now);
        }
        bucket
    }

    /// Returns the number of waiters.
    pub(super) fn depth(&self) -> usize {
        match self {
            Self::Own(queue) => queue.depth(),
            Self::Shared(queue) => queue.waiters.depth(),
        }
    }

    /// Returns when the oldest waiter joined.
    pub(super) fn oldest(&self) -> Option<Moment> {
        match self {
            Self::Own(queue) => queue.first_waiters().map(|waiter| waiter.since).min(),
            Self::Shared(queue) => queue.waiters.oldest(),
        }
    }

    /// Returns the first departure time.
    pub(super) fn due(&self) -> Option<Moment> {
        match self {
            Self::Own(queue) => queue.due(),
            Self::Shared(queue) => queue.waiters.due(),
        }
    }

    /// Returns the waiters with their departures.
    pub(super) fn schedule(&self) -> Vec<(Moment, &Waiter)> {
        match self {
            Self::Own(queue) => queue.schedule().collect(),
            Self::Shared(queue) => queue.waiters.schedule().collect(),
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
            (Self::Shared(queue), charge) => queue.refund_and_move_up(charge, now),
            // Nothing was charged, or the zone was in the store at the time of the charge.
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

    /// Removes and returns all waiters. A shared queue also refunds their charges.
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
