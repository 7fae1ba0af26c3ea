//! Schedule of the calls of a gateway to its pool, and the number of permits that it requests.
//!
//! A *permit* is the right to run one request at the origin. A *pool* leases permits to several
//! gateways. Each *call* reports the gateway's permits to the pool, and gets a reply. With fewer
//! permits than gateways, a permit *rotates*: a gateway keeps it for a *turn*.

use std::num::NonZeroU32;
use std::time::Duration;

use super::{Moment, PermitNeeds, PoolClient};

/// Duration between two calls of a gateway that needs nothing.
const RENEWAL: Duration = Duration::from_millis(800);
/// Duration between two calls of a gateway that has waiters but no permit.
const POLL_STARVED: Duration = Duration::from_millis(10);
/// Lower bound of the duration between two calls of a gateway that gets the next free permit.
///
/// The duration is the time for which it has waited for this permit, divided by
/// [`POLL_NEXT_DIVISOR`], but at most [`POLL_STARVED`]. The longer it has waited, the less it
/// matters to take the permit at once.
const POLL_NEXT: Duration = Duration::from_millis(1);
const POLL_NEXT_DIVISOR: u32 = 50;
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
            return Some(self.last_call);
        }
        if self.is_leaving && needs.in_use == 0 && needs.waiting == 0 {
            return (self.leased > 0).then(|| self.last_call + MIN_INTERVAL);
        }
        let is_idle = self.held > 0 && self.keeps == 0 && needs.in_use == 0;
        let turn = self.turn.filter(|_| is_idle);
        let turn_ends = turn.map(|turn| turn.ends(needs.slot));
        let events = [needs.looks, turn_ends].into_iter().flatten();
        let due = events.fold(self.last_call + self.interval(needs), Moment::min);
        Some(due.max(self.last_call + MIN_INTERVAL))
    }

    /// Returns whether the gateway leaves, and the pool knows that it holds only permits in use.
    pub fn has_returned_all(&self, needs: PermitNeeds) -> bool {
        let known = self.leased.max(self.held);
        self.is_leaving && self.under_way.is_none() && known <= needs.in_use
    }

    /// Returns the duration between the last call and the next one, if nothing changes.
    fn interval(&self, needs: PermitNeeds) -> Duration {
        let usable = needs.usable();
        // The pool does not know yet that some permits were given back.
        let has_unreported = self.leased > self.held;
        if self.has_failed {
            return RETRY;
        }
        if self.others_wait && has_unreported {
            return MIN_INTERVAL;
        }
        if usable > self.held {
            return self.interval_while_lacking();
        }
        // Other gateways have more use for a permit that is not usable at once.
        let gives_back = self.held > usable && needs.is_slot_first;
        let needs_none_now = self.held == 0 && self.reported_usable > usable;
        let has_surplus = self.held > self.keeps.max(needs.in_use);
        let has_turn = self.turn.is_some() && self.held == 1;
        let is_surplus_requested = has_surplus && self.others_wait && !has_turn;
        if gives_back || needs_none_now || is_surplus_requested {
            return MIN_INTERVAL;
        }
        let all_in_use = needs.in_use >= self.held;
        let requested = self.number_to_request(needs);
        // The pool must know that more permits are requested now, or that settings have changed.
        let must_report = |reported| requested > reported && all_in_use;
        let must_report = self.requested.is_none_or(must_report);
        if has_unreported || has_surplus || self.others_wait || must_report {
            return POLL_SCARCE;
        }
        let has_contenders = needs.in_use > 0 && self.contenders().is_some();
        match (all_in_use, self.is_scarce) {
            (false, true) => POLL_SCARCE,
            (false, false) => POLL_IDLE,
            (true, _) if has_contenders => POLL_SCARCE,
            (true, true) if needs.in_use > 0 => POLL_IDLE,
            (true, _) => RENEWAL,
        }
    }

    /// Returns the duration between two calls while the gateway could use more permits than it
    /// holds.
    fn interval_while_lacking(&self) -> Duration {
        if self.reported_usable <= self.held {
            // The first waiter must not wait for this call.
            return MIN_INTERVAL;
        }
        match self.first_in_line_since {
            Some(since) => {
                (self.last_call.since(since) / POLL_NEXT_DIVISOR).clamp(POLL_NEXT, POLL_STARVED)
            }
            None if self.held == 0 => POLL_STARVED,
            None => POLL_SCARCE,
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

    /// Returns the number of permits that the gateway requests to hold.
    pub(super) fn number_to_request(&self, needs: PermitNeeds) -> usize {
        let usable = needs.usable();
        if self.is_leaving || needs.is_slot_first {
            return usable;
        }
        let peak = self.peaks[0].max(self.peaks[1]);
        // Permits for requests that come before the next call.
        let spare = (peak / 4).max(2);
        let requested = usable.max(peak).saturating_add(spare);
        requested.min(needs.max_permits.max(usable))
    }
}
