//! Schedule of the calls of a gateway to its pool, and the number of permits it would like.

use std::num::NonZeroU32;
use std::time::Duration;

use super::{Moment, PermitNeeds, PoolClient};

/// Duration between two calls of a gateway that needs nothing.
const RENEWED: Duration = Duration::from_millis(800);
/// Duration between two calls of a gateway that has waiters but no permit.
const POLL_STARVED: Duration = Duration::from_millis(10);
/// Duration between two calls of a gateway that gets the next free permit.
const POLL_NEXT: Duration = Duration::from_millis(1);
/// Duration between two calls while permits are scarce, here or at other gateways.
const POLL_SCARCE: Duration = Duration::from_millis(25);
/// Duration between two calls of a gateway that has unused permits.
const POLL_IDLE: Duration = Duration::from_millis(200);
/// Minimum duration between two calls.
const MIN_INTERVAL: Duration = Duration::from_millis(1);
/// Duration between two calls that fail.
const RETRY: Duration = Duration::from_millis(50);

impl PoolClient {
    /// Returns the instant at which the next call is due; `None` while one is under way.
    pub fn due(&self, needs: PermitNeeds) -> Option<Moment> {
        if self.under_way.is_some() {
            return None;
        }
        if self.number == 0 {
            return Some(self.last);
        }
        if self.is_leaving && needs.in_use == 0 && needs.waiting == 0 {
            return (self.reported_held > 0).then(|| self.last + MIN_INTERVAL);
        }
        let is_idle = self.held > 0 && self.keeps == 0 && needs.in_use == 0;
        let turn = self.turn.filter(|_| is_idle);
        let ends = turn.map(|turn| turn.ends(needs.slot));
        let first = [needs.looks, ends].into_iter().flatten();
        let first = first.fold(self.last + self.pause(needs), Moment::min);
        Some(first.max(self.last + MIN_INTERVAL))
    }

    /// Returns whether the gateway leaves, and the pool knows that it holds only permits in use.
    pub fn has_returned_all(&self, needs: PermitNeeds) -> bool {
        let reported = self.reported_held.max(self.held);
        self.is_leaving && self.under_way.is_none() && reported <= needs.in_use
    }

    fn pause(&self, needs: PermitNeeds) -> Duration {
        let usable = needs.usable();
        if self.has_failed {
            return RETRY;
        }
        if self.others_wait && self.reported_held > self.held {
            return MIN_INTERVAL;
        }
        if usable > self.held {
            // The first waiter must not wait for this call.
            return if self.reported.0 <= self.held {
                MIN_INTERVAL
            } else if let Some(since) = self.next_since {
                // A permit that was not free for long need not be taken at once.
                (self.last.since(since) / 50).clamp(POLL_NEXT, POLL_STARVED)
            } else if self.held == 0 {
                POLL_STARVED
            } else {
                POLL_SCARCE
            };
        }
        // Other gateways have more use for a permit that is not usable at once.
        let gives_back = self.held > usable && needs.is_slot_first;
        if gives_back || self.held == 0 && self.reported.0 > usable {
            return MIN_INTERVAL;
        }
        let has_turn = self.turn.is_some() && self.held == 1;
        if self.held > self.keeps.max(needs.in_use) && !has_turn && self.others_wait {
            return MIN_INTERVAL;
        }
        if self.reported_held > self.held || self.held > self.keeps.max(needs.in_use) {
            return POLL_SCARCE;
        }
        if self.others_wait {
            return POLL_SCARCE;
        }
        let wish = self.wish(needs);
        if wish > self.reported.1 && needs.in_use >= self.held || self.reported.1 == usize::MAX {
            return POLL_SCARCE;
        }
        match self.held > needs.in_use {
            true if self.is_scarce => POLL_SCARCE,
            true => POLL_IDLE,
            false if needs.in_use > 0 && self.contenders().is_some() => POLL_SCARCE,
            false if needs.in_use > 0 && self.is_scarce => POLL_IDLE,
            false => RENEWED,
        }
    }

    /// Returns the number of gateways, if there are more gateways than permits.
    ///
    /// Then any of them may wait for the permit of this one.
    pub(super) fn contenders(&self) -> Option<NonZeroU32> {
        let counts = self.counts?;
        let is_more = usize::try_from(counts.gateways).is_ok_and(|all| all > counts.of);
        NonZeroU32::new(counts.gateways).filter(|_| is_more)
    }

    pub(super) fn wish(&self, needs: PermitNeeds) -> usize {
        let usable = needs.usable();
        if self.is_leaving || needs.is_slot_first {
            return usable;
        }
        let peak = self.peaks[0].max(self.peaks[1]);
        let spare = (peak / 4).max(2);
        let wish = usable.max(peak).saturating_add(spare);
        wish.min(needs.most.max(usable))
    }
}
