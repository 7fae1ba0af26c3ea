//! Queue of a key whose slots come from the store (Redis), which several gateways share.
//!
//! A *slot* is a departure time. The store keeps one schedule of slots for the key. While the store
//! is unavailable, this gateway assigns *local slots* itself. A `delay_level` is the `delay` of a
//! limit: the level, in requests, above which a request waits.

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
    pub(super) link: Rc<StoreLink>,
    key: Key,
    /// Waiters, with slots from the store.
    pub(super) waiters: ExternalSchedule<Waiter, Charge>,
    /// Sum of the waiters' charges.
    pub(super) costs: u64,
    /// State of the key as of the store's last reply.
    ///
    /// Includes charges made here since then, while the store was unavailable.
    pub(super) bucket: Bucket,
    /// Rate of this gateway's file.
    pub(super) file_rate: Rate,
    /// Rate in force.
    pub(super) rate: Rate,
    /// Whether any waiter may have a local slot.
    may_have_local_slots: bool,
    /// Number of local slots for which a slot of the store is requested at present.
    rescheduling: usize,
}

/// Upper bound of the local slots for which slots of the store are requested at the same time.
const MAX_RESCHEDULED: usize = 32;

impl SharedQueue {
    /// Creates the queue of a key with this rate in the file, without waiters.
    pub(super) fn new(link: Rc<StoreLink>, key: Key, file_rate: Rate, bucket: Bucket) -> Self {
        Self {
            link,
            key,
            waiters: ExternalSchedule::default(),
            costs: 0,
            bucket,
            file_rate,
            rate: file_rate,
            may_have_local_slots: false,
            rescheduling: 0,
        }
    }

    /// Returns the `in_flight` of waiters that are due by `moment`. Skips waiters without one.
    pub(super) fn due_by(&self, moment: Moment) -> impl Iterator<Item = NonZeroU32> {
        let due = self.waiters.due_by(moment);
        due.filter_map(|waiter| waiter.limit.in_flight)
    }

    /// Adopts the rate in force and the key's state from a reply of the store.
    pub(super) fn adopt_decision(&mut self, decision: &Decision, now: Moment) {
        let InForce { rate, since, .. } = decision.in_force;
        self.change_rate(rate, since.unwrap_or(now), now);
        if let Account::Bucket(bucket) = decision.account {
            self.bucket = bucket;
        }
    }

    /// Decides without the store, from the state in its last reply.
    pub(super) fn decide_alone(&mut self, limit: Limit, now: Moment) -> Verdict {
        self.bucket.decide(self.rate, limit, now)
    }

    /// Adds a waiter with its slot. If its client has disconnected, it leaves at once.
    pub(super) fn add_waiter(
        &mut self,
        delay_level: u32,
        waiter: Waiter,
        due: Moment,
        charge: Charge,
    ) {
        let (ticket, is_disconnected) = (waiter.ticket, waiter.reply.is_closed());
        self.costs += cost_of(&charge);
        self.may_have_local_slots |= is_local(&charge) && self.link.is_out();
        self.waiters
            .seat(delay_level, ticket, waiter.since, waiter, (due, charge));
        if is_disconnected {
            self.leave(ticket);
        }
    }

    /// Returns the delay level and the cost of waiters whose local slots the store should replace.
    ///
    /// Returns none while the store is unavailable, or while earlier requests for slots are
    /// pending. Until a waiter has a slot of the store, it leaves in addition to the waiters of the
    /// shared schedule.
    pub(super) fn start_rescheduling(&mut self) -> Vec<(u32, Cost)> {
        if !self.may_have_local_slots || self.rescheduling > 0 || self.link.is_out() {
            return Vec::new();
        }
        let local_slots = self.waiters.times().filter(|(.., charge)| is_local(charge));
        let replaceable = local_slots.map(|(delay_level, _, charge)| (delay_level, charge.cost()));
        let replaceable: Vec<_> = replaceable.take(MAX_RESCHEDULED).collect();
        self.rescheduling = replaceable.len();
        self.may_have_local_slots = !replaceable.is_empty();
        replaceable
    }

    /// Notes that the store has replied to one of these requests for a slot, or has not answered.
    pub(super) fn count_rescheduled(&mut self) {
        self.rescheduling = self.rescheduling.saturating_sub(1);
    }

    /// Keeps the remaining local slots. After another outage, they are replaced again.
    pub(super) fn stop_rescheduling(&mut self) {
        self.may_have_local_slots = self.link.is_out();
    }

    /// Replaces a local slot by a slot of the store with the same cost.
    pub(super) fn replace_slot(&mut self, delay_level: u32, due: Moment, charge: Charge) {
        let is_replaced = |old: &Charge| is_local(old) && old.cost() == charge.cost();
        let exchanged = self
            .waiters
            .exchange(delay_level, is_replaced, (due, charge));
        if let Err(unused) = exchanged {
            self.refund(unused);
        }
    }

    /// Forgets all charges except those of the waiters, which keep their slots.
    ///
    /// Later requests get slots behind them.
    pub(super) fn forget(&mut self, now: Moment) {
        let slots = self.waiters.times();
        let store_slots = slots.filter_map(|(delay_level, due, charge)| match charge {
            Charge::Store(charge) => Some((due, delay_level, *charge)),
            _ => None,
        });
        let last = store_slots.max_by_key(|(due, ..)| *due);
        // The bucket is as full as the last waiter needs: when it is due, the level is its
        // `delay_level` and its cost. Without waiters, the bucket is empty.
        self.bucket = last.map_or_else(Bucket::new, |(due, delay_level, charge)| {
            let rate = self.rate;
            let wait = i128::try_from(due.since(now).as_nanos()).unwrap_or(i128::MAX);
            let leaked_until_due = wait.saturating_mul(rate.ticks_per_nano());
            let requests = i128::from(delay_level) + i128::from(charge.cost().get());
            let level_when_due = requests * rate.ticks_per_request();
            Bucket::next_at_level(rate, leaked_until_due.saturating_add(level_when_due), now)
        });
        let last_charge = last.map(|(.., charge)| charge);
        self.link.forget(&self.key, last_charge);
    }

    /// Takes the next waiter that is due.
    ///
    /// The waiter gets the first slot, which may have been charged for another request.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<Departure<Waiter, Charge>> {
        let mut departure = self.waiters.take_due(now)?;
        self.costs -= cost_of(&departure.charge);
        departure.charge = departure.charge.reduced_to(departure.waiter.limit.cost);
        Some(departure)
    }

    /// Removes and returns all waiters, and refunds their charges.
    pub(super) fn reject_all(&mut self) -> Vec<Waiter> {
        let (waiters, charges) = self.waiters.reject_all();
        self.costs = 0;
        for charge in charges {
            self.refund(charge);
        }
        waiters
    }

    /// Removes a waiter that leaves before its slot. The waiters behind it move up.
    ///
    /// The last slot with the same cost is then free, and is refunded.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        let fits = |waiter: &Waiter, charge: &Charge| charge.cost() == waiter.limit.cost;
        if let Some(charge) = self.waiters.leave(ticket, fits) {
            self.costs -= cost_of(&charge);
            self.refund(charge);
        }
    }

    /// Returns the delay level of the waiter that is due next; 0 without waiters.
    pub(super) fn next_delay_level(&self) -> u32 {
        self.waiters.next_delay().unwrap_or(0)
    }

    /// Moves waiters to later slots, because an admitted request cost more than it was charged.
    ///
    /// The store has decided on the additional charge, with slots behind all others. The first
    /// slots of the waiters stay unused, and the waiters take the slots of the additional charge.
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
        // A slot does not move if it is behind the additional charge or before the request's
        // charge.
        let keeps_slot = |slot: &store::Charge| {
            let is_before_request =
                matches!(&extra_charge.charge, Charge::Store(first) if !slot.is_behind(first));
            slot.is_behind(&charge) || is_before_request
        };
        let moved_cost = |slot: &Charge| match slot {
            Charge::Store(slot) if keeps_slot(slot) => None,
            _ => Some(slot.cost()),
        };
        let new_slot = |from: u32, cost| {
            let due = due + rate.time_for(from.into());
            (due, Charge::Store(charge.part(from, cost)))
        };
        let (delay_level, more) = (extra_charge.delay_level, extra_charge.more);
        self.waiters
            .postpone(delay_level, more, moved_cost, new_slot);
        // Count again: a slot without a charge may have been replaced by a charged one.
        self.costs = self.waiters.times().map(|(.., it)| cost_of(it)).sum();
    }

    /// Refunds a charge. Waiters move up.
    ///
    /// Waiters whose slots follow the charge without a gap move up into its slots, as far as these
    /// are still in the future. The last slots of these waiters are then free, and are refunded in
    /// place of the freed ones.
    pub(super) fn refund_and_move_up(&mut self, charge: Charge, now: Moment) {
        let Charge::Store(freed) = charge else {
            return self.refund(charge);
        };
        let follows = |slot: &Charge| matches!(slot, Charge::Store(it) if it.follows(&freed));
        let due_of = |(_, due, slot): (u32, Moment, &Charge)| follows(slot).then_some(due);
        let next_due = self.waiters.times().find_map(due_of);
        // Slots between now and the next waiter: those of the charge that are still in the future.
        let future_slots = next_due.map_or(0, |due| self.rate.count_in(due.since(now)));
        let future_slots = u32::try_from(future_slots).unwrap_or(u32::MAX);
        let Some(move_by) = Cost::new(future_slots.min(freed.cost().get())) else {
            return self.refund(charge);
        };
        let earlier_by = self.rate.time_for(move_by.get().into());
        // The charge that the next moved waiter must follow.
        let mut last = freed;
        self.waiters.exchange_some(|due, charge| match charge {
            Charge::Store(charge) if charge.follows(&last) => {
                last = *charge;
                let moved = Charge::Store(charge.moved_up(move_by));
                Some((due.before(earlier_by), moved))
            }
            _ => None,
        });
        let behind = last.part(last.cost().get(), move_by);
        self.refund(Charge::Store(behind.moved_up(move_by)));
        // The store refunds those of the remaining slots that are still in the future.
        if let Some(rest) = freed.cost().above(move_by) {
            self.refund(Charge::Store(freed.part(0, rest)));
        }
    }

    /// Refunds a charge without moving waiters.
    fn refund(&mut self, charge: Charge) {
        match charge {
            Charge::Store(charge) => self.link.refund(&self.key, charge),
            Charge::Alone(cost) => self.bucket.take_back(self.rate, cost.get().into()),
            Charge::Own(_) | Charge::Nothing => {}
        }
    }

    /// Changes to `rate`, which is in force since `since`.
    ///
    /// Waiters keep their order. The part of each wait that is after `since` is scaled, in the same
    /// way at all gateways.
    pub(super) fn change_rate(&mut self, rate: Rate, since: Moment, now: Moment) {
        if rate == self.rate {
            return;
        }
        let factor = interval(rate) / interval(self.rate);
        self.waiters.retime(|due| {
            if due <= since {
                return due;
            }
            let remaining = due.since(since).as_secs_f64() * factor;
            since + Duration::try_from_secs_f64(remaining).unwrap_or(Duration::MAX)
        });
        self.bucket.retune(self.rate, rate, now);
        self.rate = rate;
    }
}

/// Returns whether a slot with this charge was assigned without the store.
fn is_local(charge: &Charge) -> bool {
    matches!(charge, Charge::Alone(_))
}

/// Returns the cost of a charge; 0 if nothing was charged.
fn cost_of(charge: &Charge) -> u64 {
    match charge {
        Charge::Nothing => 0,
        charge => charge.cost().get().into(),
    }
}

/// Returns the time in which one request leaks, in seconds.
fn interval(rate: Rate) -> f64 {
    rate.ticks_per_request() as f64 / rate.ticks_per_nano() as f64
}
