//! Whether one more request may leave, or wait at a gate, and for how long it would.

use std::hash::Hash;
use std::time::Duration;

use super::{Gate, Moment, Share, WaitLimits};
use crate::MAX_WAIT_ABOVE_BURST;

/// Why a request may not wait at a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// Whether there is no room for any key. If not, there is none for this one.
    pub for_all: bool,
    /// When a retry would be accepted, if nobody else comes.
    pub retry_at: Moment,
}

/// Why one more request would wait in vain at a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InVain {
    /// It may not wait.
    Full(Full),
    /// It would wait longer than [`WaitLimits::most`], by this.
    MaxWait(Duration),
    /// It would wait longer than [`WaitLimits::queue_timeout`], by this.
    QueueTimeout(Duration),
}

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// Sets how many requests the servers of the origin take at once now, beside the limits.
    pub fn set_room(&mut self, room: Option<usize>, now: Moment) {
        let was_full = !self.has_place();
        self.room = room;
        self.note_free_place(was_full, now);
    }

    /// Requests that may be at the origin at once by the limits of this gateway; `None`: no limit.
    pub(super) fn most_places(&self) -> Option<usize> {
        let limits = [self.limits.max_in_flight, self.room];
        limits.into_iter().flatten().min()
    }

    /// Whether others have fewer than half of the places, beside one request at the origin.
    ///
    /// Not if it has no bound on the number at once, or shares its places with other gateways:
    /// nobody knows then what the origin has to do.
    pub fn is_quiet(&self) -> bool {
        let places = self.most_places();
        let others = self.in_flight.saturating_sub(1);
        self.lent.is_none() && places.is_some_and(|places| others.saturating_mul(2) < places)
    }

    /// How long one more request of this share would wait, if nobody else comes and places come
    /// free as fast as they did lately.
    ///
    /// # Errors
    ///
    /// Returns an error if it may not wait.
    pub fn predict(&self, share: &Share<K>, now: Moment) -> Result<Duration, Full> {
        if self.is_free(now) {
            return Ok(Duration::ZERO);
        }
        let queue = self.queue(share);
        let room = self.limits.max_queue.saturating_sub(self.outage.len());
        if !self.waiting.has_room(&share.key, queue, room) {
            return Err(self.full(share, now));
        }
        let ahead = self.outage.costs() + self.waiting.ahead_of_new(share);
        let wait = self.wait_behind(ahead, now);
        // Above its own bound a request is held only for so long.
        if wait > MAX_WAIT_ABOVE_BURST
            && !self.waiting.has_room(&share.key, self.limits.queue, room)
        {
            return Err(Full {
                for_all: false,
                retry_at: now + wait.saturating_sub(MAX_WAIT_ABOVE_BURST),
            });
        }
        Ok(wait)
    }

    /// Checks that one more request of this share would not wait longer than `limits` allow, if nobody else
    /// comes.
    ///
    /// `queue_timeout` is compared with the wait for the pace alone, which is known. It is not known when
    /// permits come free, or when an outage or a pause ends.
    ///
    /// # Errors
    ///
    /// Returns an error if it may not wait, or would wait in vain.
    pub fn check_wait(
        &self,
        share: &Share<K>,
        limits: &WaitLimits,
        now: Moment,
    ) -> Result<(), InVain> {
        let wait = self.predict(share, now).map_err(InVain::Full)?;
        if let Some(most) = limits.most.filter(|most| wait > *most) {
            return Err(InVain::MaxWait(wait.saturating_sub(most)));
        }
        let by_pace = self.predict_by_pace(share, now);
        if by_pace > limits.queue_timeout {
            let over = by_pace.saturating_sub(limits.queue_timeout);
            return Err(InVain::QueueTimeout(over));
        }
        Ok(())
    }

    /// Returns how long one more request of this share would wait for the pace alone. Zero in an outage.
    ///
    /// As [`Self::predict`], it is at most one round of the keys too long.
    fn predict_by_pace(&self, share: &Share<K>, now: Moment) -> Duration {
        if self.is_out() || self.is_free(now) {
            return Duration::ZERO;
        }
        let ahead = self.waiting.ahead_of_new(share);
        self.leaves_behind(ahead, now).since(now)
    }

    pub(super) fn wait_behind(&self, costs: u64, now: Moment) -> Duration {
        let by_pace = self.leaves_behind(costs, now.max(self.opens)).since(now);
        if self.has_place() {
            return by_pace;
        }
        by_pace.max(self.turnover.time_for(costs.saturating_add(1), now))
    }

    /// When one leaves that is ready at `ready` and has so many costs ahead, by the pace alone.
    pub(super) fn leaves_behind(&self, costs: u64, ready: Moment) -> Moment {
        if let Some(granted) = &self.granted {
            return granted.predict(ready, costs);
        }
        let (slot, at) = self.slot(ready);
        let behind = self.rate.map(|rate| {
            let delay = self.reserved.delay(rate, slot, costs);
            rate.time_for(costs).saturating_add(delay)
        });
        at + behind.unwrap_or_default()
    }

    /// Requests of the key of this share that may wait.
    pub(super) fn queue(&self, share: &Share<K>) -> Option<usize> {
        let above_queue = usize::try_from(share.above_queue).unwrap_or(usize::MAX);
        self.limits
            .queue
            .map(|queue| queue.saturating_add(above_queue))
    }

    pub(super) fn full(&self, share: &Share<K>, now: Moment) -> Full {
        let (queue, max_queue) = (self.queue(share), self.limits.max_queue);
        let (all, of_key) = (self.depth(), self.waiting.depth(&share.key));
        let for_all = all >= max_queue;
        // There is room again when the first waiter leaves: of this key, or of all. More must
        // leave first if the bound was lowered below what waits.
        let ahead = if for_all {
            u64::try_from(all - max_queue).unwrap_or(u64::MAX)
        } else {
            let above = of_key.saturating_sub(queue.unwrap_or(usize::MAX));
            let above = above.max((of_key + all).saturating_sub(max_queue) / 2);
            let above = u32::try_from(above).unwrap_or(u32::MAX);
            let ahead = self.waiting.ahead_of_nth(share, above);
            ahead.unwrap_or_default()
        };
        Full {
            for_all,
            retry_at: now + self.wait_behind(self.outage.costs() + ahead, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cost, GateLimits, LentPlaces};

    #[test]
    fn an_origin_is_quiet_while_others_have_fewer_than_half_of_its_places() {
        let now = Moment::from_nanos(1_000_000_000);
        let gate = |max_in_flight| {
            let limits = GateLimits {
                max_in_flight,
                ..GateLimits::NONE
            };
            Gate::<char, u32>::new(limits)
        };
        let mut four = gate(Some(4));
        let quiet: Vec<bool> = (0..4)
            .map(|_| four.pass(Cost::ONE, now) && four.is_quiet())
            .collect();
        assert_eq!(quiet, [true, true, false, false]);
        four.give_back(now);
        four.give_back(now);
        assert!(four.is_quiet());
        // What others do with places that they borrow, nobody knows, nor what no bound says.
        let lent = LentPlaces {
            places: 4,
            until: None,
            among: None,
        };
        four.set_lent(Some(lent), now);
        assert!(!four.is_quiet());
        assert!(!gate(None).is_quiet());
        // The servers' own bounds count, too.
        let mut served = gate(None);
        served.set_room(Some(1), now);
        assert!(served.pass(Cost::ONE, now) && served.is_quiet());
    }
}
