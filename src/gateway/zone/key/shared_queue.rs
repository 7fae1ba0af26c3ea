//! Queue of a key whose slots come from the store.

use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use limit::{
    Account, Bucket, Cost, Departure, ExternalSchedule, Limit, Moment, Rate, Ticket, Verdict,
};

use super::super::answer::Charge;
use super::super::join::Key;
use super::super::store_link::{Decision, ExtraCharge, StoreLink};
use super::waiter::Waiter;
use crate::store::{self, InForce};

/// Local state of a key that is kept in the store, with its waiters at this gateway.
pub(super) struct SharedQueue {
    pub(super) zone: Rc<StoreLink>,
    key: Key,
    /// Waiters, with slots from the store.
    pub(super) line: ExternalSchedule<Waiter, Charge>,
    /// Sum of the waiters' charges.
    pub(super) costs: u64,
    /// State of the key as of the store's last reply.
    ///
    /// Includes charges made here since then, while the store was unavailable.
    pub(super) bucket: Bucket,
    /// Rate of this gateway's file.
    pub(super) own: Rate,
    /// Rate in force.
    pub(super) rate: Rate,
    /// Whether any waiter may have a slot that was assigned while the store was unavailable.
    alone: bool,
    /// Number of such slots that the store is being asked to replace.
    rescheduling: usize,
}

/// Upper bound of the slots that the store is asked to replace at the same time.
const MAX_RESCHEDULED: usize = 32;

impl SharedQueue {
    pub(super) fn new(zone: Rc<StoreLink>, key: Key, rate: Rate, bucket: Bucket) -> Self {
        Self {
            zone,
            key,
            line: ExternalSchedule::default(),
            costs: 0,
            bucket,
            own: rate,
            rate,
            alone: false,
            rescheduling: 0,
        }
    }

    /// Returns the `in_flight` of waiters that are due by `moment`. Skips waiters without one.
    pub(super) fn due_by(&self, moment: Moment) -> impl Iterator<Item = NonZeroU32> {
        let due = self.line.due_by(moment);
        due.filter_map(|waiter| waiter.limit.in_flight)
    }

    /// Adopts the zone's new settings, in which the key has this rate.
    pub(super) fn adopt(&mut self, zone: Rc<StoreLink>, own: Rate) {
        (self.zone, self.own) = (zone, own);
    }

    /// Adopts the rate in force and the key's state from a reply of the store.
    pub(super) fn learn(&mut self, decision: &Decision, now: Moment) {
        let InForce { rate, since, .. } = decision.in_force;
        self.follow(rate, since.unwrap_or(now), now);
        if let Account::Bucket(bucket) = decision.account {
            self.bucket = bucket;
        }
    }

    /// Decides without the store, from the state in its last reply.
    pub(super) fn decide(&mut self, limit: Limit, now: Moment) -> Verdict {
        self.bucket.decide(self.rate, limit, now)
    }

    /// Adds a waiter with its slot. If it has disconnected meanwhile, it leaves at once.
    pub(super) fn seat(&mut self, delay: u32, waiter: Waiter, due: Moment, charge: Charge) {
        let (ticket, is_disconnected) = (waiter.ticket, waiter.reply.is_closed());
        self.costs += charged(&charge);
        self.alone |= matches!(charge, Charge::Alone(_)) && self.zone.is_out();
        self.line
            .seat(delay, ticket, waiter.since, waiter, (due, charge));
        if is_disconnected {
            self.leave(ticket);
        }
    }

    /// Takes delay and cost of the waiters whose slots the store should replace, once it is back.
    ///
    /// Until these waiters have slots on the shared schedule, they leave in addition to the waiters
    /// that have.
    pub(super) fn take_unscheduled(&mut self) -> Vec<(u32, Cost)> {
        if !self.alone || self.rescheduling > 0 || self.zone.is_out() {
            return Vec::new();
        }
        let alone = self.line.times();
        let alone = alone.filter(|(.., charge)| matches!(charge, Charge::Alone(_)));
        let unscheduled = alone.map(|(delay, _, charge)| (delay, charge.cost()));
        let unscheduled: Vec<_> = unscheduled.take(MAX_RESCHEDULED).collect();
        self.rescheduling = unscheduled.len();
        self.alone = !unscheduled.is_empty();
        unscheduled
    }

    /// Notes that the store has replied to one of the requests for a slot, or failed to.
    pub(super) fn rescheduled(&mut self) {
        self.rescheduling = self.rescheduling.saturating_sub(1);
    }

    /// Ends the requests for slots, unless the store fails again and comes back.
    pub(super) fn stop_rescheduling(&mut self) {
        self.alone = self.zone.is_out();
    }

    /// Replaces a slot that this gateway assigned alone by a slot of the store.
    pub(super) fn exchange(&mut self, delay: u32, due: Moment, charge: Charge) {
        let new = charge.cost();
        let is_old = |charge: &Charge| matches!(charge, Charge::Alone(cost) if *cost == new);
        if let Err(charge) = self.line.exchange(delay, is_old, (due, charge)) {
            self.refund(charge);
        }
    }

    /// Forgets all charges but those of the waiters, which keep their slots. Later requests follow.
    pub(super) fn forget(&mut self, now: Moment) {
        let times = self.line.times();
        let own_charges = times.filter_map(|(delay, due, charge)| match charge {
            Charge::Store(charge) => Some((due, delay, *charge)),
            _ => None,
        });
        let last = own_charges.max_by_key(|(due, ..)| *due);
        self.bucket = last.map_or_else(Bucket::new, |(due, delay, charge)| {
            let rate = self.rate;
            let waits = i128::try_from(due.since(now).as_nanos()).unwrap_or(i128::MAX);
            let level = waits.saturating_mul(rate.ticks_per_nano());
            let cost = i128::from(charge.cost().get());
            let free = (i128::from(delay) + cost) * rate.ticks_per_request();
            Bucket::next_at_level(rate, level.saturating_add(free), now)
        });
        let last = last.map(|(.., charge)| charge);
        self.zone.forget(&self.key, last);
    }

    /// Takes the next waiter that is due.
    ///
    /// The waiter gets the first slot, which may have been charged for another request.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<Departure<Waiter, Charge>> {
        let departure = self.line.take_due(now)?;
        self.costs -= charged(&departure.charge);
        Some(Departure {
            charge: departure.charge.at_most(departure.waiter.limit.cost),
            ..departure
        })
    }

    /// Removes and returns all waiters, and refunds their charges.
    pub(super) fn reject_all(&mut self) -> Vec<Waiter> {
        let (waiters, charges) = self.line.reject_all();
        self.costs = 0;
        for charge in charges {
            self.refund(charge);
        }
        waiters
    }

    /// Removes a waiter that leaves before its slot. Refunds the last slot that is then free.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        let is_of = |waiter: &Waiter, charge: &Charge| charge.cost() == waiter.limit.cost;
        if let Some(charge) = self.line.leave(ticket, is_of) {
            self.costs -= charged(&charge);
            self.refund(charge);
        }
    }

    /// Returns the `delay` of the waiter that is due next.
    pub(super) fn next_delay(&self) -> u32 {
        self.line.next_delay().unwrap_or(0)
    }

    /// Moves waiters back behind a request that cost more than expected and was charged the rest.
    ///
    /// Their first slots stay unused. They take the slots of the additional charge.
    pub(super) fn move_back(
        &mut self,
        extra_charge: ExtraCharge,
        decision: &Decision,
        now: Moment,
    ) {
        let Some(charge) = decision.charge else {
            return;
        };
        let (due, rate) = (decision.due(now), self.rate);
        let stays = |other: &store::Charge| {
            let is_before = |billed: &store::Charge| !other.is_behind(billed);
            other.is_behind(&charge)
                || matches!(&extra_charge.charge, Charge::Store(it) if is_before(it))
        };
        let cost_of = |other: &Charge| match other {
            Charge::Store(other) if stays(other) => None,
            _ => Some(other.cost()),
        };
        let later = |from: u32, cost| {
            let due = due + rate.time_for(from.into());
            (due, Charge::Store(charge.part(from, cost)))
        };
        self.line
            .postpone(extra_charge.delay, extra_charge.more, cost_of, later);
        // A slot without a charge may have been replaced by a charged one.
        self.costs = self.line.times().map(|(.., charge)| charged(charge)).sum();
    }

    /// Refunds a charge or a part of it.
    ///
    /// The waiters whose slots follow without a gap move up into the freed slots that are still in
    /// the future. The last slots of these waiters are refunded instead.
    pub(super) fn give_back(&mut self, charge: Charge, now: Moment) {
        let Charge::Store(free) = charge else {
            return self.refund(charge);
        };
        let follows = |other: &Charge| matches!(other, Charge::Store(it) if it.follows(&free));
        let next = self
            .line
            .times()
            .find_map(|(_, due, other)| follows(other).then_some(due));
        let to_come = next.map_or(0, |due| self.rate.count_in(due.since(now)));
        let to_come = u32::try_from(to_come).unwrap_or(u32::MAX);
        let Some(up) = Cost::new(to_come.min(free.cost().get())) else {
            return self.refund(charge);
        };
        let (earlier, mut last) = (self.rate.time_for(up.get().into()), free);
        self.line.exchange_some(|due, charge| match charge {
            Charge::Store(charge) if charge.follows(&last) => {
                last = *charge;
                Some((due.before(earlier), Charge::Store(charge.moved_up(up))))
            }
            _ => None,
        });
        let behind = last.part(last.cost().get(), up);
        self.refund(Charge::Store(behind.moved_up(up)));
        // The store knows which of these slots are still in the future.
        if let Some(rest) = free.cost().above(up) {
            self.refund(Charge::Store(free.part(0, rest)));
        }
    }

    /// Refunds a charge without moving waiters.
    fn refund(&mut self, charge: Charge) {
        match charge {
            Charge::Store(charge) => self.zone.refund(&self.key, charge),
            Charge::Alone(cost) => self.bucket.take_back(self.rate, cost.get().into()),
            Charge::Own(_) | Charge::Nothing => {}
        }
    }

    /// Switches to the rate in force.
    ///
    /// Waiters keep their order. Each waiter's remaining time after `since` is scaled, in the same
    /// way at all gateways.
    pub(super) fn follow(&mut self, rate: Rate, since: Moment, now: Moment) {
        if rate == self.rate {
            return;
        }
        let stretch = interval(rate) / interval(self.rate);
        self.line.retime(|due| {
            let ahead = due.since(since).as_secs_f64() * stretch;
            if due <= since {
                return due;
            }
            since + Duration::try_from_secs_f64(ahead).unwrap_or(Duration::MAX)
        });
        self.bucket.retune(self.rate, rate, now);
        self.rate = rate;
    }
}

/// Returns the cost of a charge; 0 for none.
fn charged(charge: &Charge) -> u64 {
    match charge {
        Charge::Nothing => 0,
        charge => charge.cost().get().into(),
    }
}

/// Returns the time in which one request leaks, in seconds.
fn interval(rate: Rate) -> f64 {
    rate.ticks_per_request() as f64 / rate.ticks_per_nano() as f64
}
