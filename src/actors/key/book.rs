use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::super::messages::{Answer, Charge, Key};
use super::super::shared::{InForce, Shared};
use crate::limit::{Bucket, Departure, Excess, Limit, Line, Moment, Queue, Rate, Ticket, Verdict};

/// One who waits for its turn.
pub(super) struct Waiter {
    pub(super) since: Moment,
    pub(super) limit: Limit,
    pub(super) excess: Excess,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// A key's level and those who wait.
pub(super) enum Book {
    /// All of it is here.
    Own(Queue<Waiter>),
    /// The store hands out the times, and here is what it has told.
    Shared(SharedBook),
}

/// What is known here of a key that is kept in the store, and those who wait here.
pub(super) struct SharedBook {
    zone: Rc<Shared>,
    key: Key,
    line: Line<Waiter, Charge>,
    /// How the key stood when the store told last, and what was charged here since, while the store was out.
    bucket: Bucket,
    /// The rate in force.
    rate: Rate,
}

impl Book {
    pub(super) fn bucket(&self) -> Bucket {
        match self {
            Self::Own(queue) => queue.bucket(),
            Self::Shared(book) => book.bucket,
        }
    }

    pub(super) fn rate(&self) -> Rate {
        match self {
            Self::Own(queue) => queue.rate(),
            Self::Shared(book) => book.rate,
        }
    }

    pub(super) fn depth(&self) -> usize {
        match self {
            Self::Own(queue) => queue.depth(),
            Self::Shared(book) => book.line.depth(),
        }
    }

    pub(super) fn oldest(&self) -> Option<Moment> {
        match self {
            Self::Own(queue) => queue.oldest(),
            Self::Shared(book) => book.line.oldest(),
        }
    }

    pub(super) fn due(&self) -> Option<Moment> {
        match self {
            Self::Own(queue) => queue.due(),
            Self::Shared(book) => book.line.due(),
        }
    }

    pub(super) fn take_due(&mut self, now: Moment) -> Option<Departure<Waiter, Charge>> {
        match self {
            Self::Own(queue) => queue.take_due(now).map(|departure| Departure {
                due: departure.due,
                charge: Charge::Own(departure.charge),
                waiter: departure.waiter,
            }),
            Self::Shared(book) => book.line.take_due(now),
        }
    }

    /// Takes out one who leaves before its turn; those behind it move up.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        match self {
            Self::Own(queue) => {
                queue.leave(ticket);
            }
            Self::Shared(book) => book.leave(ticket),
        }
    }

    /// Gives back what a turn was charged that was not used.
    pub(super) fn refund(&mut self, charge: Charge, now: Moment) {
        match (self, charge) {
            (Self::Own(queue), Charge::Own(charge)) => queue.refund(charge, now),
            (Self::Shared(book), charge) => book.refund(charge),
            // A zone that is kept elsewhere now has other actors.
            (Self::Own(_), _) => {}
        }
    }

    /// Sends all who wait away.
    pub(super) fn dismiss(&mut self) -> Vec<Waiter> {
        match self {
            Self::Own(queue) => queue.dismiss(),
            Self::Shared(book) => {
                let (gone, charges) = book.line.dismiss();
                for charge in charges {
                    book.refund(charge);
                }
                gone
            }
        }
    }

    /// Forgets what was charged for others than those who wait.
    pub(super) fn forget(&mut self, now: Moment) {
        match self {
            Self::Own(queue) => queue.forget(now),
            Self::Shared(book) => {
                book.bucket = Bucket::new();
                book.zone.forget(&book.key);
            }
        }
    }
}

impl SharedBook {
    pub(super) fn new(zone: Rc<Shared>, key: Key, rate: Rate, bucket: Bucket) -> Self {
        Self {
            zone,
            key,
            line: Line::default(),
            bucket,
            rate,
        }
    }

    pub(super) fn zone(&self) -> &Rc<Shared> {
        &self.zone
    }

    /// Goes on as the zone's settings are now.
    pub(super) fn adopt(&mut self, zone: Rc<Shared>) {
        self.zone = zone;
    }

    /// How the key stands, as the store has told.
    pub(super) fn stands(&mut self, bucket: Bucket) {
        self.bucket = bucket;
    }

    /// Decides without the store, from what it told last.
    pub(super) fn decide(&mut self, limit: Limit, now: Moment) -> Verdict {
        self.bucket.decide(self.rate, limit, now)
    }

    /// Whether one with this `delay` has to wait for others first.
    pub(super) fn is_busy(&self, delay: u32) -> bool {
        self.line.is_busy(delay)
    }

    pub(super) fn seat(
        &mut self,
        delay: u32,
        ticket: Ticket,
        waiter: Waiter,
        due: Moment,
        charge: Charge,
    ) {
        let has_gone = waiter.reply.is_closed();
        self.line
            .seat(delay, ticket, waiter.since, waiter, (due, charge));
        if has_gone {
            self.leave(ticket);
        }
    }

    fn leave(&mut self, ticket: Ticket) {
        if let Some(charge) = self.line.leave(ticket) {
            self.refund(charge);
        }
    }

    fn refund(&mut self, charge: Charge) {
        match charge {
            Charge::Store(charge) => self.zone.refund(&self.key, charge),
            Charge::Alone => self.bucket.take_back(self.rate),
            Charge::Own(_) | Charge::Nothing => {}
        }
    }

    /// Goes on at the rate in force: who waits since before it keeps its place, as all gateways reckon it.
    pub(super) fn follow(&mut self, in_force: InForce, now: Moment) {
        if in_force.rate == self.rate {
            return;
        }
        let since = in_force.since.unwrap_or(now);
        let stretch = interval(in_force.rate) / interval(self.rate);
        self.line.retime(|due| {
            let ahead = due.since(since).as_secs_f64() * stretch;
            if due <= since {
                return due;
            }
            since + Duration::try_from_secs_f64(ahead).unwrap_or(Duration::MAX)
        });
        self.bucket.retune(self.rate, in_force.rate, now);
        self.rate = in_force.rate;
    }
}

/// How long one request takes to leak, in seconds.
#[allow(clippy::cast_precision_loss)]
fn interval(rate: Rate) -> f64 {
    rate.ticks_per_request() as f64 / rate.ticks_per_nano() as f64
}
