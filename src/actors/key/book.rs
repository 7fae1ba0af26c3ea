use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::super::messages::{Answer, Charge, Key};
use super::super::shared::{Decision, InForce, Shared};
use crate::limit::{
    Account, Bucket, Departure, Excess, Limit, Line, Moment, Queue, Rate, Ticket, Verdict,
};

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
    /// Whether some wait for times that were told while the store was out.
    alone: bool,
    /// How many of those the store is asked to replace.
    placing: usize,
}

/// How many such times the store is asked to replace at once.
const MOST_PLACED: usize = 32;

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

    /// The bucket at the rate of this gateway's file, by which it is kept when the actor has gone: another may be in force.
    pub(super) fn bucket_of_file(&self, now: Moment) -> Bucket {
        let mut bucket = self.bucket();
        if let Self::Shared(book) = self
            && book.rate != book.zone.rate()
        {
            bucket.retune(book.rate, book.zone.rate(), now);
        }
        bucket
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
            Self::Shared(book) => book.forget(now),
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
            alone: false,
            placing: 0,
        }
    }

    pub(super) fn zone(&self) -> &Rc<Shared> {
        &self.zone
    }

    /// Goes on as the zone's settings are now.
    pub(super) fn adopt(&mut self, zone: Rc<Shared>) {
        self.zone = zone;
    }

    /// Goes on as the store has told: at the rate in force, and from how the key stands.
    pub(super) fn learn(&mut self, decision: &Decision, now: Moment) {
        self.follow(decision.in_force, now);
        if let Account::Bucket(bucket) = decision.account {
            self.bucket = bucket;
        }
    }

    /// Decides without the store, from what it told last.
    pub(super) fn decide(&mut self, limit: Limit, now: Moment) -> Verdict {
        self.bucket.decide(self.rate, limit, now)
    }

    pub(super) fn has_no_waiters(&self) -> bool {
        self.line.depth() == 0
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
        self.alone |= charge == Charge::Alone && self.zone.is_out();
        self.line
            .seat(delay, ticket, waiter.since, waiter, (due, charge));
        if has_gone {
            self.leave(ticket);
        }
    }

    /// With which delays those wait whose times are to be asked of the store, now that it is back: until they have times of
    /// the schedule that all share, they leave beside those who do.
    pub(super) fn take_unplaced(&mut self) -> Vec<u32> {
        if !self.alone || self.placing > 0 || self.zone.is_out() {
            return Vec::new();
        }
        let alone = self.line.times();
        let alone = alone.filter(|(.., charge)| **charge == Charge::Alone);
        let delays: Vec<u32> = alone.take(MOST_PLACED).map(|(delay, ..)| delay).collect();
        self.placing = delays.len();
        self.alone = !delays.is_empty();
        delays
    }

    /// One of them was told, or not.
    pub(super) fn placed(&mut self) {
        self.placing = self.placing.saturating_sub(1);
    }

    /// No more of them are asked for, unless the store is out again, and then back.
    pub(super) fn stays_alone(&mut self) {
        self.alone = self.zone.is_out();
    }

    /// Has one who waits for a time of this gateway's alone wait for one of the store's.
    pub(super) fn exchange(&mut self, delay: u32, due: Moment, charge: Charge) {
        let is_old = |charge: &Charge| *charge == Charge::Alone;
        if let Err(charge) = self.line.exchange(delay, is_old, (due, charge)) {
            self.refund(charge);
        }
    }

    /// Those who wait keep their times, and newcomers come behind them.
    fn forget(&mut self, now: Moment) {
        let times = self.line.times();
        let told = times.filter_map(|(delay, due, charge)| match charge {
            Charge::Store(charge) => Some((due, delay, *charge)),
            _ => None,
        });
        let last = told.max_by_key(|(due, ..)| *due);
        self.bucket = last.map_or_else(Bucket::new, |(due, delay, _)| {
            let rate = self.rate;
            let waits = i128::try_from(due.since(now).as_nanos()).unwrap_or(i128::MAX);
            let level = waits.saturating_mul(rate.ticks_per_nano());
            let free = (i128::from(delay) + 1) * rate.ticks_per_request();
            Bucket::next_at_level(rate, level.saturating_add(free), now)
        });
        let last = last.map(|(.., charge)| charge);
        self.zone.forget(&self.key, last);
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
