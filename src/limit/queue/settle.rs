//! Changes what requests were charged after they have left, or gives it back.

use super::lane::Lane;
use super::{Charge, Queue};
use crate::bucket::line;
use crate::{Cost, Moment};

impl<W> Queue<W> {
    /// Gives back the charge of an unused turn. The waiters behind it move up.
    ///
    /// The result is exactly as if the request had never joined, provided that each later request,
    /// refunded since or not, found a level of at least its cost. Otherwise the bucket would have
    /// been empty for a while without this request, and what leaked in that time cannot be given
    /// back. Then only what has certainly not leaked that way is given back: its cost minus what
    /// has leaked since it joined. So a refund never gives back more than if the request had never
    /// joined. It gives back nothing if only an earlier queue or an earlier rate could tell how
    /// much.
    ///
    /// The waiters behind it may become due before now: take them at once.
    pub fn refund(&mut self, charge: Charge, now: Moment) {
        self.credit(charge, charge.cost, now);
    }

    /// Changes what a request that has left was charged to what it turned out to cost.
    ///
    /// What it cost less is given back as in a [refund](Self::refund). What it cost more is charged
    /// in full, at `now` if the bucket has run empty: the waiters behind it move back in their
    /// order.
    pub fn settle(&mut self, charge: Charge, cost: Cost, now: Moment) {
        if let Some(less) = charge.cost.above(cost) {
            self.credit(charge, less, now);
        }
        if let Some(more) = cost.above(charge.cost) {
            self.bill(charge, more, now);
        }
    }

    /// Gives back a part of a charge.
    fn credit(&mut self, charge: Charge, less: Cost, now: Moment) {
        if charge.place < self.forgiven {
            return;
        }
        let rest = self.rest(charge, less, now);
        self.give_back(charge.place, less, rest);
    }

    fn bill(&mut self, charge: Charge, more: Cost, now: Moment) {
        if charge.place < self.forgiven {
            return;
        }
        let request = self.rate.ticks_per_request();
        if self.lanes.is_empty() {
            self.bucket.charge(self.rate, more, now);
        } else {
            // The bucket is not empty while a request waits.
            self.bucket.refund(-i128::from(more.get()) * request);
        }
        // Whether it joined before everybody who is here.
        let is_older = charge.at < self.opened;
        self.ledger
            .bill(if is_older { 0 } else { charge.place }, more);
        for lane in &mut self.lanes {
            if is_older {
                lane.move_back(more, request);
            } else {
                lane.move_back_behind(charge.place, more, request);
            }
        }
    }

    /// How many ticks of this part of a charge can certainly be given back at `now`: they have not
    /// leaked away.
    pub(super) fn rest(&self, charge: Charge, part: Cost, now: Moment) -> i128 {
        let request = self.rate.ticks_per_request();
        let in_ticks = |cost: Cost| i128::from(cost.get()) * request;
        if charge.at < self.opened {
            return 0;
        }
        // The bucket is never empty while a request waits, unless a refund moved its turn into the
        // past.
        let seen = line(self.rate, self.last.max(self.retuned));
        let is_behind = |(position, head)| head <= charge.place && position > seen;
        let waits = |lane: &Lane<W>| lane.head(request).is_some_and(is_behind);
        if self.ledger.is_whole(charge.place, part) || self.lanes.iter().any(waits) {
            return in_ticks(part);
        }
        // Giving back a part moves all waiters, so no waiter may be older than the charge.
        let mut lanes = self.lanes.iter();
        if charge.at < self.retuned || lanes.any(|lane| lane.waits_before(charge.place)) {
            return 0;
        }
        let leaked = line(self.rate, now) - line(self.rate, charge.at);
        (in_ticks(charge.cost) - leaked).clamp(0, in_ticks(part))
    }

    pub(super) fn give_back(&mut self, place: u64, part: Cost, ticks: i128) {
        if ticks == 0 {
            return;
        }
        let request = self.rate.ticks_per_request();
        self.bucket.refund(ticks);
        self.ledger.release(place, part);
        for lane in &mut self.lanes {
            if ticks == i128::from(part.get()) * request {
                lane.move_up_behind(place, part, request);
            } else {
                lane.move_up(ticks);
            }
        }
    }
}
