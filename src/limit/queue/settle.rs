//! Refunds of charges, and corrections of their cost, after the requests have left the queue.
//!
//! A *charge* is what a request raised the level of the bucket by, in whole requests (its cost).
//! The level leaks at the rate, and stops at zero. A *tick* is the unit of the level: `request`
//! ticks are one request. `arrival` is the number of an accepted request. See the parent module.

use super::lane::Lane;
use super::{Charge, Queue};
use crate::bucket::line;
use crate::{Cost, Moment};

impl<W> Queue<W> {
    /// Refunds a request that did not use its slot. The waiters behind it move up.
    ///
    /// The result is exactly as if the request had never joined, if each later request found a
    /// level of at least its cost. Refunded requests count as later requests, too.
    ///
    /// Else the bucket would have been empty for a while without this request. The leak of that
    /// time cannot be refunded. Then the refund is the part that has certainly not leaked: its cost
    /// minus the leak since it joined. So a refund is never larger than the effect of the request.
    /// The refund is zero if it depends on an earlier queue or an earlier rate.
    ///
    /// Waiters may become due before now: take them at once.
    pub fn refund(&mut self, charge: Charge, now: Moment) {
        self.credit(charge, charge.cost, now);
    }

    /// Changes the charge of a request that has left to its actual cost.
    ///
    /// A lower cost is returned as in a [refund](Self::refund). A higher cost is charged in full,
    /// at `now` if the bucket is empty: the waiters behind the request move back in their order.
    pub fn settle(&mut self, charge: Charge, cost: Cost, now: Moment) {
        if let Some(surplus) = charge.cost.above(cost) {
            self.credit(charge, surplus, now);
        }
        if let Some(missing) = cost.above(charge.cost) {
            self.bill(charge, missing, now);
        }
    }

    /// Refunds a part of a charge, as far as it has not leaked.
    fn credit(&mut self, charge: Charge, part: Cost, now: Moment) {
        if charge.arrival < self.forgiven {
            return;
        }
        let refund = self.refundable(charge, part, now);
        self.give_back(charge.arrival, part, refund);
    }

    /// Charges the cost `more` in addition to a charge.
    fn bill(&mut self, charge: Charge, more: Cost, now: Moment) {
        if charge.arrival < self.forgiven {
            return;
        }
        let request = self.rate.ticks_per_request();
        if self.lanes.is_empty() {
            self.bucket.charge(self.rate, more, now);
        } else {
            // The bucket is not empty while a request waits.
            self.bucket.refund(-i128::from(more.get()) * request);
        }
        // A request that joined before this queue began has no arrival number here.
        let is_older = charge.at < self.opened;
        let arrival = if is_older { 0 } else { charge.arrival };
        self.ledger.bill(arrival, more);
        for lane in &mut self.lanes {
            if is_older {
                lane.shift(i128::from(more.get()) * request);
            } else {
                lane.shift_behind(charge.arrival, more.get().into(), request);
            }
        }
    }

    /// Returns the ticks of a part of a charge that have certainly not leaked by `now`.
    pub(super) fn refundable(&self, charge: Charge, part: Cost, now: Moment) -> i128 {
        let request = self.rate.ticks_per_request();
        let in_ticks = |cost: Cost| i128::from(cost.get()) * request;
        if charge.at < self.opened {
            return 0;
        }
        // The bucket is never empty while a request waits, unless a refund moved its due instant
        // into the past.
        let last_change = line(self.rate, self.last_joined.max(self.retuned));
        let has_waited_since = |lane: &Lane<W>| {
            let head = lane.head(request);
            head.is_some_and(|(due, arrival)| arrival <= charge.arrival && due > last_change)
        };
        let is_whole = self.ledger.is_whole(charge.arrival, part);
        if is_whole || self.lanes.iter().any(has_waited_since) {
            return in_ticks(part);
        }
        // A refund of less than `part` moves up all waiters, so no waiter may be older than the
        // charge.
        let mut lanes = self.lanes.iter();
        if charge.at < self.retuned || lanes.any(|lane| lane.has_waiter_before(charge.arrival)) {
            return 0;
        }
        let leaked = line(self.rate, now) - line(self.rate, charge.at);
        (in_ticks(charge.cost) - leaked).clamp(0, in_ticks(part))
    }

    /// Refunds `ticks` of a part of the charge of `arrival`, and moves up the waiters behind it.
    ///
    /// If `ticks` is less than `part`, there are no older waiters, and all move up.
    pub(super) fn give_back(&mut self, arrival: u64, part: Cost, ticks: i128) {
        if ticks == 0 {
            return;
        }
        let request = self.rate.ticks_per_request();
        self.bucket.refund(ticks);
        self.ledger.release(arrival, part);
        for lane in &mut self.lanes {
            if ticks == i128::from(part.get()) * request {
                lane.shift_behind(arrival, -i64::from(part.get()), request);
            } else {
                lane.shift(-ticks);
            }
        }
    }
}
