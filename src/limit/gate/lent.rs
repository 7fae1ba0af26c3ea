//! Permits that a pool lends to this gateway, and their use together with slots.
//!
//! A *permit* is the right to run one request at the origin. A *pool* leases permits to several
//! gateways. A *slot* is an instant at which one request may leave. Slots of a shared *grid* are
//! granted to each gateway. With fewer permits than gateways, the permits *rotate* between them.

use std::hash::Hash;
use std::time::Duration;

use super::granted::MAX_LATENESS;
use super::{Gate, Moment};
use crate::{LeasedPermits, PermitNeeds};

/// Lower bound of the slot interval at which a gate gets a slot first, and then a permit for it.
///
/// It is the interval of one gate, if all gateways have equal parts of the rate. With a shorter
/// interval, the transfer of a permit takes longer than the interval. Then a gate gets a permit
/// first, and claims slots while it has the permit.
const MIN_SLOT_FIRST: Duration = Duration::from_millis(10);

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// Sets the permits that the gate has from a pool. `None`: it has no pool.
    pub fn set_lent(&mut self, lent: Option<LeasedPermits>, now: Moment) {
        self.change_permits(now, |gate| gate.lent = lent);
    }

    /// Returns how many permits of a pool the gate needs, and when.
    ///
    /// `ahead` is the time before its use at which a permit must be requested.
    pub fn permit_needs(&self, now: Moment, ahead: Duration) -> PermitNeeds {
        let in_use = self.in_flight;
        let depth = self.depth();
        let mut slot = self.first_slot(now).filter(|_| depth > 0);
        // Instant at which the needs change without an event.
        let mut looks = None;
        // Number of waiters that could leave at once if they had a permit.
        let waiting = if self.is_out() || self.opens > now {
            0
        } else if self.rate.is_none() {
            depth
        } else if self.takes_slot_first() {
            let near_slot = slot.filter(|slot| *slot <= now + ahead);
            looks = match near_slot {
                None => slot.map(|slot| slot.before(ahead)),
                // After this instant the permit comes too late for the slot.
                Some(near_slot) => Some(near_slot + MAX_LATENESS),
            };
            slot = near_slot;
            usize::from(near_slot.is_some())
        } else if depth > 0 && self.lent.is_some_and(|lent| in_use >= lent.permits) {
            // With a rate, only a part of the waiters can use a permit soon.
            depth.min((in_use / 2).max(1))
        } else {
            0
        };
        let weight = if self.limits.queue.is_some() {
            let keys = self.waiting.weights();
            let weights = keys.map(|(class, keys, _)| u64::from(class.weight).saturating_mul(keys));
            weights.sum()
        } else {
            (in_use + depth) as u64
        };
        PermitNeeds {
            in_use,
            waiting,
            max_permits: self.max_permits().unwrap_or(usize::MAX),
            maximum: self.limits.max_in_flight,
            weight,
            slot,
            is_slot_first: self.is_slot_first(),
            looks,
        }
    }

    /// Returns the number of permits that it can use within `span`, for slots of the shared grid.
    pub(super) fn permits_within(&self, span: Duration, now: Moment) -> u64 {
        let lent = self.lent.map(|lent| lent.permits);
        let limits = [self.limits.max_in_flight, lent];
        let Some(limit) = limits.into_iter().flatten().min() else {
            return u64::MAX;
        };
        let free = limit.saturating_sub(self.in_flight) as u64;
        let permits = free.saturating_add(self.turnover.permits_in(span, now));
        if self.takes_slot_first() && self.in_flight == 0 {
            return permits.max(1);
        }
        let (Some(lent), Some(granted)) = (self.lent, &self.granted) else {
            return permits;
        };
        match lent.until {
            // A slot after the end of the permit is unusable.
            Some(until) => {
                let turn = until.since(now);
                let in_turn = granted.slots_in(turn).max(u64::from(!turn.is_zero()));
                permits.min(in_turn)
            }
            None if lent.permits == 0 && lent.among.is_some() => 0,
            None => permits,
        }
    }

    /// Returns whether requests wait and need no permit yet, because no slot is near.
    pub fn is_between_slots(&self, now: Moment) -> bool {
        self.takes_slot_first() && self.first_slot(now).is_none_or(|slot| slot > now)
    }

    /// Returns whether the gate now gets a slot first, and then borrows its only permit for it.
    fn takes_slot_first(&self) -> bool {
        self.is_slot_first() && self.lent.is_some_and(|lent| lent.permits <= 1)
    }

    /// Returns whether permits rotate, and slots are far enough apart to borrow a permit for each.
    fn is_slot_first(&self) -> bool {
        let rate = self.limits.rate.filter(|_| self.shares_grid());
        let among = self.lent.and_then(|lent| lent.among);
        let pace = rate.zip(among);
        pace.is_some_and(|(rate, gateways)| rate.interval() * gateways.get() >= MIN_SLOT_FIRST)
    }

    /// Returns the first granted slot that a request could use.
    fn first_slot(&self, now: Moment) -> Option<Moment> {
        self.granted.as_ref()?.first(now.max(self.opens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{at, nonzero};
    use crate::{Cost, GateLimits, Share};

    /// Time before its use at which a permit must be requested.
    const AHEAD: Duration = Duration::from_millis(6);

    /// Permits that rotate between three gateways.
    const ROTATING: LeasedPermits = LeasedPermits {
        permits: 0,
        until: None,
        among: Some(nonzero(3)),
    };
    /// Permits of which there is one for each gateway.
    const KEPT: LeasedPermits = LeasedPermits {
        among: None,
        ..ROTATING
    };

    /// Creates a gate with a shared rate and three waiters.
    fn waiting(rate: &str, lent: LeasedPermits) -> Gate<u8, u32> {
        let mut gate = Gate::new(GateLimits {
            rate: rate.parse().ok(),
            max_in_flight: Some(2),
            ..GateLimits::NONE
        });
        gate.share_grid();
        gate.set_lent(Some(lent), at(0));
        for number in 0..3 {
            gate.join(&Share::of(1), Cost::ONE, at(0), || number);
        }
        gate
    }

    /// Gives the gate one permit of a pool.
    fn lend_one(gate: &mut Gate<u8, u32>, lent: LeasedPermits, now: u64) {
        gate.set_lent(Some(LeasedPermits { permits: 1, ..lent }), at(now));
    }

    /// Returns the number of waiters that a permit would help, whether slots come first, and the
    /// next change of the needs.
    fn needs(gate: &Gate<u8, u32>, now: u64) -> (usize, bool, Option<Moment>) {
        let needs = gate.permit_needs(at(now), AHEAD);
        (needs.waiting, needs.is_slot_first, needs.looks)
    }

    #[test]
    fn a_rotating_permit_is_requested_for_a_near_slot() {
        let mut gate = waiting("20r/s", ROTATING);
        assert_eq!(gate.slots_to_request(at(0)), 1, "one, without a permit");
        assert_eq!(needs(&gate, 0), (0, true, None));
        gate.grant(&[at(40)], at(90), 0.5, at(0));
        assert_eq!(gate.slots_to_request(at(0)), 0);
        assert_eq!(needs(&gate, 33), (0, true, Some(at(34))));
        assert_eq!(needs(&gate, 34), (1, true, Some(at(45))));
        // A permit that it already has is kept for the slot.
        lend_one(&mut gate, ROTATING, 35);
        assert_eq!(needs(&gate, 35), (1, true, Some(at(45))));
        assert!(gate.take(at(39)).is_none());
        assert!(gate.take(at(40)).is_some());
        // The only permit is taken, so the gate claims no further slot.
        assert_eq!(gate.slots_to_request(at(40)), 0);
        assert_eq!(needs(&gate, 40), (0, true, None));
    }

    #[test]
    fn a_slot_without_a_permit_in_time_is_dropped() {
        let mut gate = waiting("20r/s", ROTATING);
        gate.grant(&[at(40)], at(90), 0.5, at(0));
        assert!(gate.is_between_slots(at(39)));
        assert!(!gate.is_between_slots(at(40)));
        assert_eq!(needs(&gate, 45).0, 1);
        assert_eq!(needs(&gate, 46), (0, true, None));
        assert!(gate.is_between_slots(at(46)));
        assert_eq!(gate.slots_to_request(at(46)), 1, "another one is claimed");
    }

    #[test]
    fn an_idle_gate_needs_no_rotating_permit() {
        let mut gate = waiting("20r/s", ROTATING);
        assert_eq!(gate.clear().len(), 3);
        lend_one(&mut gate, ROTATING, 10);
        assert_eq!(needs(&gate, 20), (0, true, None));
        lend_one(&mut gate, KEPT, 30);
        assert_eq!(needs(&gate, 30), (0, false, None));
    }

    #[test]
    fn at_a_fast_rate_a_permit_comes_first_and_slots_for_its_time() {
        let mut gate = waiting("1000r/s", ROTATING);
        assert_eq!(gate.slots_to_request(at(0)), 0);
        assert_eq!(needs(&gate, 0), (1, false, None));
        // Its part is a half: a slot each 2 ms. Two slots are left until the permit ends.
        gate.grant(&[], at(1), 0.5, at(0));
        let until = Some(at(5));
        lend_one(&mut gate, LeasedPermits { until, ..ROTATING }, 0);
        // Two requests end at once, so the permit becomes free each millisecond.
        for now in [0, 1] {
            gate.grant(&[at(now)], at(now + 1), 0.5, at(now));
            assert!(gate.take(at(now)).is_some());
            gate.give_back(at(now));
        }
        assert_eq!(gate.slots_to_request(at(1)), 1, "one waits");
        assert_eq!(gate.slots_to_request(at(5)), 0, "its turn is over");
    }

    #[test]
    fn with_a_permit_for_each_gateway_permits_come_first() {
        let mut gate = waiting("20r/s", KEPT);
        assert_eq!(gate.slots_to_request(at(0)), 0);
        assert_eq!(needs(&gate, 0), (1, false, None));
        lend_one(&mut gate, KEPT, 0);
        assert_eq!(gate.slots_to_request(at(0)), 1);
    }
}
