//! Permits that one gateway has leased from a pool that several gateways share.
//!
//! A *permit* is the right to run one request at the origin. A pool has a maximum, and leases some
//! of its permits to each gateway. The gateway starts a request only on a permit that it holds, and
//! only before the end of the lease. It counts the lease by its own clock from the instant at which
//! it *sent* the call that renewed it, so the pool's lease never ends first. A leased permit counts
//! once the reply arrives. A returned permit stops counting before the call is sent. So the gateway
//! never holds more than the pool has leased to it.
//!
//! With fewer permits than gateways, a permit rotates between them. The time for which a gateway
//! then keeps its only permit is its *turn* (see `turn`). Each *call* (see `messages`) reports the
//! gateway's permits to the pool, and its reply leases permits. `calling` schedules the calls.

mod calling;
mod messages;
#[cfg(test)]
mod tests;
mod turn;
mod without;

use std::num::NonZeroU32;
use std::time::Duration;

use super::Moment;
pub use messages::{KnownMembers, LeasedPermits, PermitNeeds, PoolCall, PoolCounts, PoolReply};
use turn::{RoundTrip, Turn};
pub use without::{PermitSource, PoolLimits, WithoutPool};

/// Length of a lease by a gateway's clock. At the pool it is longer, because clocks may be 2 % off.
const LEASE_LENGTH: Duration = Duration::from_millis(2350);
/// Minimum duration for which the largest number of concurrent requests is remembered.
const PEAK_SPAN: Duration = Duration::from_secs(1);
/// Assumed number of gateways if it is unknown. Without the pool, a gateway then takes a tenth.
const DEFAULT_GATEWAYS: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// Permits that a gateway has leased from a pool, and its next call.
///
/// Calls are in sequence: the next one is made after the reply to the last one, or its failure.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent property"
)]
pub struct PoolClient {
    limits: PoolLimits,
    /// Number of permits held.
    held: usize,
    /// Number of permits that the pool has leased to this gateway, as of the last reply.
    leased: usize,
    /// Number of permits that it need not return while other gateways wait, as of the last reply.
    keeps: usize,
    /// End of the lease, by this gateway's clock.
    lease_end: Moment,
    /// Whether another gateway waits, as of the last reply.
    others_wait: bool,
    /// Whether few permits are free, as of the last reply.
    is_scarce: bool,
    /// Whether the lease has ended and the pool cannot be reached.
    is_out: bool,
    /// Number of the last call.
    number: u64,
    /// Instant at which the call that is under way was sent.
    under_way: Option<Moment>,
    /// Instant at which the last call was sent.
    last_call: Moment,
    /// Whether the last call failed.
    has_failed: bool,
    /// Maximum of all gateways together that the last call reported.
    lowered_maximum: Option<usize>,
    /// Number of permits that could be used at once, as the last call reported it.
    reported_usable: usize,
    /// Number of permits that the last call requested to hold.
    ///
    /// `None`: the settings have changed, so a call is due soon.
    requested: Option<usize>,
    /// Largest numbers of concurrent requests, of the current span and of the previous one.
    peaks: [usize; 2],
    /// Start of the current span.
    peak_since: Moment,
    /// Members of the pool, as of the last reply.
    members: KnownMembers,
    /// State of the pool, as of the last reply.
    counts: Option<PoolCounts>,
    /// Whether the gateway leaves the pool: it keeps no unused permit.
    is_leaving: bool,
    /// Since when this gateway is first in line for the next free permit; `None`: it is not.
    first_in_line_since: Option<Moment>,
    /// Turn of its only permit, if it had none before.
    turn: Option<Turn>,
    round_trip: RoundTrip,
}

impl PoolClient {
    /// Returns a gateway that holds no permit yet.
    pub fn new(limits: PoolLimits) -> Self {
        Self {
            limits,
            keeps: usize::MAX,
            ..Self::default()
        }
    }

    /// Applies new settings.
    pub fn retune(&mut self, limits: PoolLimits) {
        self.limits = limits;
        self.requested = None;
    }

    /// Keeps no unused permit from now on.
    pub fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Returns the number of requests at the origin below which one more may start now.
    pub fn max_in_flight(&self, now: Moment) -> usize {
        match self.permit_source() {
            PermitSource::Alone(part) => part,
            PermitSource::Pool if now < self.lease_end => self.held,
            PermitSource::Pool => 0,
        }
    }

    /// Returns the source of its permits.
    pub fn permit_source(&self) -> PermitSource {
        if !self.is_out || self.limits.without == WithoutPool::Closed {
            return PermitSource::Pool;
        }
        let known = self.counts.and_then(|it| NonZeroU32::new(it.gateways));
        let gateways = known
            .or(self.limits.gateways)
            .unwrap_or(DEFAULT_GATEWAYS)
            .get();
        let maximum = self.lowered_maximum.unwrap_or(self.limits.permits);
        let part = maximum / usize::try_from(gateways).unwrap_or(usize::MAX);
        PermitSource::Alone(part.max(1))
    }

    /// Returns whether its lease has ended and the pool cannot be reached.
    pub fn is_out(&self) -> bool {
        self.is_out
    }

    /// Returns the end of its lease.
    pub fn lease_end(&self) -> Moment {
        self.lease_end
    }

    /// Returns the permits that a gate may use now.
    pub fn leased_permits(&self, now: Moment) -> LeasedPermits {
        let turn = self.turn.filter(|_| self.keeps == 0 && self.held <= 1);
        LeasedPermits {
            permits: self.max_in_flight(now),
            until: turn.map(|turn| turn.until),
            among: self.contenders(),
        }
    }

    /// Returns how long before its use a permit must be requested.
    pub fn ahead(&self) -> Duration {
        self.round_trip.ahead()
    }

    /// Returns the number of permits held.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns the state of the pool, as of the last reply.
    pub fn counts(&self) -> Option<PoolCounts> {
        self.counts
    }

    /// Records that a request has started: `in_use` permits are in use now.
    pub fn started(&mut self, in_use: usize) {
        self.peaks[0] = self.peaks[0].max(in_use);
    }

    /// Records that a request has ended. Its permit goes back if the gateway may not keep it.
    ///
    /// `in_use` permits are still in use.
    pub fn ended(&mut self, in_use: usize, now: Moment) {
        if in_use == 0
            && let Some(turn) = &mut self.turn
        {
            turn.ended(now);
        }
        self.held = self.held.min(self.may_keep(in_use, None, now));
    }

    /// Returns the number of permits that the gateway may keep.
    ///
    /// While other gateways wait for its only permit, it may keep this permit until its turn ends.
    fn may_keep(&self, in_use: usize, slot: Option<Moment>, now: Moment) -> usize {
        let keeps = self.keeps.max(in_use);
        if keeps == 0 && self.turn.is_some_and(|turn| now < turn.ends(slot)) {
            return 1;
        }
        keeps
    }

    /// Returns the instant until which the pool certainly leases its permits to no other gateway.
    ///
    /// After the end of a lease, the pool still withholds the permits for the time `orphan`.
    fn withheld_until(&self) -> Moment {
        // Clocks may be 2 % too fast or too slow.
        self.lease_end + self.limits.orphan.saturating_sub(self.limits.orphan / 50)
    }

    /// Returns the next call, to be sent now. Permits that it gives back are unused from now on.
    pub fn call(&mut self, needs: PermitNeeds, now: Moment) -> PoolCall {
        if now.since(self.peak_since) >= PEAK_SPAN {
            self.peaks = [needs.in_use, self.peaks[0]];
            self.peak_since = now;
        }
        if now >= self.withheld_until() {
            // Other gateways may have leased these permits meanwhile. A pool that has lost its
            // state would trust this call.
            self.held = self.held.min(needs.in_use);
        }
        let (usable, requested) = (needs.usable(), self.number_to_request(needs));
        let may_keep = self.may_keep(needs.in_use, needs.slot, now);
        let keeps = requested.min(may_keep).max(needs.in_use);
        self.held = self.held.min(keeps);
        // The pool still has this gateway among its members.
        let is_member = now < self.lease_end || (self.held > 0 && now < self.withheld_until());
        self.number += 1;
        (self.under_way, self.last_call) = (Some(now), now);
        (self.reported_usable, self.requested) = (usable, Some(requested));
        let configured = self.limits.permits;
        self.lowered_maximum = needs.maximum.filter(|maximum| *maximum < configured);
        PoolCall {
            number: self.number,
            held: self.held,
            in_use: needs.in_use,
            lowered_maximum: self.lowered_maximum,
            usable,
            requested,
            weight: needs.weight.max(1),
            members: if is_member {
                self.members
            } else {
                KnownMembers::default()
            },
            leaves: self.is_leaving,
        }
    }

    /// Processes the reply to the call that is under way.
    pub fn answered(&mut self, reply: &PoolReply, needs: PermitNeeds, now: Moment) {
        let Some(sent) = self.under_way.take() else {
            return;
        };
        self.round_trip.note(now.since(sent));
        if reply.leased != 1 {
            self.turn = None;
        } else if self.leased == 0 {
            self.turn = Some(Turn::new(now, self.round_trip.usual));
        }
        (self.leased, self.keeps) = (reply.leased, reply.keeps);
        // A permit that other gateways request, or that is leased twice, is not used again.
        let may_keep = self.may_keep(needs.in_use, needs.slot, now);
        self.held = reply.leased.min(may_keep);
        self.lease_end = self.lease_end.max(sent + LEASE_LENGTH);
        let is_next = reply.leased == 0 && reply.keeps > 0;
        self.first_in_line_since = is_next.then(|| self.first_in_line_since.unwrap_or(sent));
        self.others_wait = reply.others_wait;
        // A pool that is recovering is called at short intervals, to get a lease soon.
        self.is_scarce = reply.is_scarce || reply.counts.is_recovering;
        (self.members, self.counts) = (reply.members, Some(reply.counts));
        (self.has_failed, self.is_out) = (false, false);
    }

    /// Switches to another connection to the pool. A call that is under way gets no reply.
    ///
    /// The lease continues: the next call reports the permits held, and has the next number.
    pub fn reconnect(&mut self) {
        self.under_way = None;
        (self.has_failed, self.last_call) = (true, Moment::default());
    }

    /// Records that the call under way failed. Permits that it might have leased are not held.
    pub fn failed(&mut self) {
        let Some(sent) = self.under_way.take() else {
            return;
        };
        self.has_failed = true;
        // A call that was sent before the lease ended does not show that the pool is unreachable:
        // the gateway may have been suspended since.
        self.is_out = sent >= self.lease_end;
    }
}
