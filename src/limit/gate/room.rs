//! Room at a gate: whether one more request may leave or wait, and its predicted wait.
//!
//! A *permit* is the right to run one request at the origin. A *slot* is an instant on the gate's
//! schedule at which one request may leave. A request waits for both.

use std::hash::Hash;
use std::time::Duration;

use super::{Gate, Moment, Share, WaitLimits};
use crate::MAX_WAIT_ABOVE_BURST;

/// Reason why a request may not wait at a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// Whether the queue of all keys is full. If false, only the queue of this key is full.
    pub for_all: bool,
    /// Predicted instant from which a retry is accepted, without further requests.
    pub retry_at: Moment,
}

/// Reason why a further request is rejected at a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitRejection {
    /// The request may not wait.
    Full(Full),
    /// Its wait would exceed [`WaitLimits::max_wait`] by this duration.
    MaxWait(Duration),
    /// Its wait would exceed [`WaitLimits::queue_timeout`] by this duration.
    QueueTimeout(Duration),
}

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// Sets the number of requests that the origin's servers accept now. `None`: no limit.
    ///
    /// The limits of the gate apply as well.
    pub fn set_room(&mut self, room: Option<usize>, now: Moment) {
        self.change_permits(now, |gate| gate.room = room);
    }

    /// Returns this gateway's limit of requests at the origin. `None`: no limit.
    pub(super) fn max_permits(&self) -> Option<usize> {
        let limits = [self.limits.max_in_flight, self.room];
        limits.into_iter().flatten().min()
    }

    /// Returns whether the origin has little to do: other requests use less than half of the
    /// permits.
    ///
    /// One of the requests at the origin is not counted, because the caller asks for it. Returns
    /// false without a limit, and with permits of a pool: the load of the origin is unknown then.
    pub fn is_quiet(&self) -> bool {
        let permits = self.max_permits();
        let others = self.in_flight.saturating_sub(1);
        self.lent.is_none() && permits.is_some_and(|permits| others.saturating_mul(2) < permits)
    }

    /// Predicts the wait of one more request of this share, without further requests.
    ///
    /// Permits are expected to become free at the measured rate.
    ///
    /// # Errors
    ///
    /// Returns an error if the request may not wait.
    pub fn predict(&self, share: &Share<K>, now: Moment) -> Result<Duration, Full> {
        if self.is_free(now) {
            return Ok(Duration::ZERO);
        }
        let queue = self.queue(share);
        let room = self.limits.max_queue.saturating_sub(self.outage.len());
        if !self.waiting.has_room(&share.key, queue, room) {
            return Err(self.full(share, now));
        }
        let ahead = self.outage.costs + self.waiting.ahead_of_new(share);
        let wait = self.wait_behind(ahead, now);
        // A request above the queue of its key waits for a limited time only.
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

    /// Checks that one more request of this share would not wait longer than `limits` allow.
    ///
    /// `queue_timeout` is compared with the wait for slots alone, because that wait is certain. It
    /// is uncertain when permits become free, and when an outage or a pause ends.
    ///
    /// # Errors
    ///
    /// Returns an error if the request may not wait, or would wait too long.
    pub fn check_wait(
        &self,
        share: &Share<K>,
        limits: &WaitLimits,
        now: Moment,
    ) -> Result<(), WaitRejection> {
        let wait = self.predict(share, now).map_err(WaitRejection::Full)?;
        if let Some(max_wait) = limits.max_wait.filter(|max_wait| wait > *max_wait) {
            return Err(WaitRejection::MaxWait(wait.saturating_sub(max_wait)));
        }
        let by_pace = self.predict_by_pace(share, now);
        if by_pace > limits.queue_timeout {
            let over = by_pace.saturating_sub(limits.queue_timeout);
            return Err(WaitRejection::QueueTimeout(over));
        }
        Ok(())
    }

    /// Predicts the wait of one more request of this share for slots alone. Zero in an outage.
    ///
    /// Like [`Self::predict`], it is too long by at most one round of the keys.
    fn predict_by_pace(&self, share: &Share<K>, now: Moment) -> Duration {
        if self.is_out() || self.is_free(now) {
            return Duration::ZERO;
        }
        let ahead = self.waiting.ahead_of_new(share);
        self.leaves_behind(ahead, now).since(now)
    }

    /// Predicts the wait behind `costs`: for slots, and for permits if none is free.
    pub(super) fn wait_behind(&self, costs: u64, now: Moment) -> Duration {
        let by_pace = self.leaves_behind(costs, now.max(self.opens)).since(now);
        if self.has_permit() {
            return by_pace;
        }
        by_pace.max(self.turnover.time_for(costs.saturating_add(1), now))
    }

    /// Returns the instant at which a request leaves behind `costs`, by slots alone.
    ///
    /// `ready` is the instant from which it could leave.
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

    /// Returns the number of requests of this share's key that may wait. `None`: no limit.
    pub(super) fn queue(&self, share: &Share<K>) -> Option<usize> {
        let above_queue = usize::try_from(share.above_queue).unwrap_or(usize::MAX);
        let queue = self.limits.queue;
        queue.map(|queue| queue.saturating_add(above_queue))
    }

    /// Returns the rejection of a request of this share, with the instant of a retry.
    pub(super) fn full(&self, share: &Share<K>, now: Moment) -> Full {
        let (queue, max_queue) = (self.queue(share), self.limits.max_queue);
        let (all, of_key) = (self.depth(), self.waiting.depth(&share.key));
        let for_all = all >= max_queue;
        // The next waiter to leave makes room: of this key, or of all keys. If the bound was
        // lowered below the number of waiters, more waiters must leave first.
        let ahead = if for_all {
            u64::try_from(all - max_queue).unwrap_or(u64::MAX)
        } else {
            let above_queue = of_key.saturating_sub(queue.unwrap_or(usize::MAX));
            // A key must have fewer waiters than are free of `max_queue`. Each of its waiters that
            // leaves lowers the one number and raises the other one.
            let above_free = (of_key + all).saturating_sub(max_queue) / 2;
            let above = u32::try_from(above_queue.max(above_free)).unwrap_or(u32::MAX);
            let ahead = self.waiting.ahead_of_nth(share, above);
            ahead.unwrap_or_default()
        };
        Full {
            for_all,
            retry_at: now + self.wait_behind(self.outage.costs + ahead, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cost, GateLimits, LeasedPermits};

    #[test]
    fn an_origin_is_quiet_while_other_requests_use_less_than_half_of_its_permits() {
        let now = Moment::from_nanos(1_000_000_000);
        let gate = |max_in_flight| {
            Gate::<char, u32>::new(GateLimits {
                max_in_flight,
                ..GateLimits::NONE
            })
        };
        let mut four = gate(Some(4));
        let quiet = [(); 4].map(|()| four.pass(Cost::ONE, now) && four.is_quiet());
        assert_eq!(quiet, [true, true, false, false]);
        four.give_back(now);
        four.give_back(now);
        assert!(four.is_quiet());
        // The load of borrowed permits is unknown, and so is the load without a bound.
        let lent = LeasedPermits {
            permits: 4,
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
