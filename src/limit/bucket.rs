//! The leaky bucket: nginx's `limit_req` with `burst`, `delay` and `nodelay`, in exact arithmetic.
//!
//! The *level* of a bucket is the number of charged requests that have not leaked yet. It leaks at
//! the rate. nginx calls it the excess. `burst_and_nodelay` compares it with a limit.

mod burst_and_nodelay;

use std::time::Duration;

use super::{Cost, Excess, Limit, Moment, Rate, Reason, Refusal, Verdict};
use burst_and_nodelay::Thresholds;

/// Leaky bucket of one key.
///
/// Levels are measured in *ticks*, of which a request has [`Rate::ticks_per_request`]. Instants are
/// positions on a *tick line*: at instant `t` the line has reached `t * ticks_per_nano`. The bucket
/// is one position on this line, its `tail`: the level is zero when the line reaches it. So the
/// level is `tail - line`, leaking costs no work, and nothing is rounded.
///
/// This is nginx's rule (`ngx_http_limit_req_lookup`): the first request has excess 0, a later one
/// has `max(0, previous - rate * elapsed + 1)`. On the tick line this is
/// `tail = max(line, tail + 1 request)`.
///
/// The wait of a request does not depend on its cost, but its acceptance does: the level with its
/// whole cost must stay within `burst`. A cost above 1 raises the tail further, and so delays later
/// requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Packed to 8 bytes like the other state of a key: padding would add 16 to 24 bytes a key.
#[repr(Rust, packed(8))]
pub struct Bucket {
    tail: i128,
}

/// Tail of an empty bucket: so far in the past that the level is zero, yet far from overflow.
const LONG_AGO: i128 = i128::MIN / 4;

impl Default for Bucket {
    fn default() -> Self {
        Self { tail: LONG_AGO }
    }
}

impl Bucket {
    /// Returns a bucket without any charge.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a bucket that is empty when the tick line has reached `tail`.
    pub(super) fn until(tail: i128) -> Self {
        Self { tail }
    }

    /// Returns a bucket in which a request of cost 1 at `now` makes the level `ticks` (at least 0).
    pub fn next_at_level(rate: Rate, ticks: i128, now: Moment) -> Self {
        Self::until(line(rate, now) + ticks - rate.ticks_per_request())
    }

    /// Returns the same bucket on a clock that is `span` ahead: its level is the same there.
    pub fn later(&self, rate: Rate, span: Duration) -> Self {
        if span.is_zero() || *self == Self::new() {
            return *self;
        }
        Self::until(self.tail() + ticks_in(rate, span))
    }

    /// Decides on a request that arrives at `now`, and charges it unless it is rejected.
    pub fn decide(&mut self, rate: Rate, limit: Limit, now: Moment) -> Verdict {
        let (line, request) = (line(rate, now), rate.ticks_per_request());
        // Tail and level after this request, as if its cost were 1.
        let tail = line.max(self.tail + request);
        let level = tail - line;
        let above_one = i128::from(limit.cost.above_one()) * request;
        let excess = Excess::from_ticks(level + above_one, rate);

        let Thresholds { free, accepted } = Thresholds::new(rate, limit);
        if level > accepted {
            let reason = if level + above_one > i128::from(limit.ceiling(rate)) * request {
                Reason::Burst
            } else {
                Reason::MaxWait
            };
            return Verdict::Reject(Refusal {
                reason,
                excess,
                retry_at: moment(rate, tail - accepted),
            });
        }
        let wait = level.saturating_sub(free).max(0);
        self.tail = tail + above_one;
        if wait == 0 {
            Verdict::Pass { excess }
        } else {
            Verdict::Delay {
                until: moment(rate, line + wait),
                excess,
            }
        }
    }

    /// Returns the reason why a request that arrives at `now` would be rejected, if it would.
    ///
    /// Charges nothing.
    pub fn refuses(&self, rate: Rate, limit: Limit, now: Moment) -> Option<Refusal> {
        match { *self }.decide(rate, limit, now) {
            Verdict::Reject(refusal) => Some(refusal),
            Verdict::Pass { .. } | Verdict::Delay { .. } => None,
        }
    }

    /// Charges a cost at `now`, at any level.
    pub(super) fn charge(&mut self, rate: Rate, cost: Cost, now: Moment) {
        let request = rate.ticks_per_request();
        self.tail = self.tail.max(line(rate, now) - request) + i128::from(cost.get()) * request;
    }

    /// Returns the number of consecutive requests of cost 1 that would be accepted at `now`.
    pub fn remaining(&self, rate: Rate, limit: Limit, now: Moment) -> u32 {
        let request = rate.ticks_per_request();
        let level = (self.tail - line(rate, now)).max(-request);
        let room = Thresholds::new(rate, limit.for_one()).accepted - level;
        // At an unlimited rate a request has no ticks.
        let requests = match (u64::try_from(room.max(0)), u64::try_from(request)) {
            // Nearly always. 64-bit division is one instruction, 128-bit division is a function.
            (Ok(room), Ok(request)) => room.checked_div(request).map(i128::from),
            _ => room.max(0).checked_div(request),
        };
        requests.map_or(u32::MAX, |requests| {
            u32::try_from(requests).unwrap_or(u32::MAX)
        })
    }

    /// Returns the first instant, `now` or later, at which one more request would be accepted.
    ///
    /// Assumes that `others` requests of cost 1 come first, at `now`.
    pub fn accepts_at(&self, rate: Rate, limit: Limit, others: u32, now: Moment) -> Moment {
        let request = rate.ticks_per_request();
        // Relative to the line, because small numbers are divided fast.
        let level = (self.tail - line(rate, now)).max(-request);
        let charged = (i128::from(others) + 1) * request;
        let too_high_by = level + charged - Thresholds::new(rate, limit).accepted;
        now + Duration::from_nanos(moment(rate, too_high_by).as_nanos())
    }

    /// Returns the level at `now`, without a new request.
    pub fn excess(&self, rate: Rate, now: Moment) -> Excess {
        Excess::from_ticks(self.tail - line(rate, now), rate)
    }

    /// Returns whether a request at `now` finds the bucket empty: earlier charges do not matter.
    pub fn is_drained(&self, rate: Rate, now: Moment) -> bool {
        self.tail + rate.ticks_per_request() <= line(rate, now)
    }

    /// Returns the first instant at which removing this bucket changes no later verdict.
    ///
    /// It is `(excess + 1) / rate` after the last charge.
    pub fn drained_at(&self, rate: Rate) -> Moment {
        moment(rate, self.tail + rate.ticks_per_request())
    }

    /// Refunds charges. `costs` is the sum of their costs.
    pub fn take_back(&mut self, rate: Rate, costs: u64) {
        self.refund(i128::from(costs) * rate.ticks_per_request());
    }

    /// Refunds a charge or a part of it, in ticks.
    pub(super) fn refund(&mut self, ticks: i128) {
        self.tail -= ticks;
    }

    /// Converts the level at `now` to another rate.
    pub fn retune(&mut self, from: Rate, to: Rate, now: Moment) {
        if self.is_drained(from, now) {
            *self = Self::new();
        } else {
            self.tail = rescale(self.tail, from, to, now);
        }
    }

    /// Returns the position on the tick line at which the level will be zero.
    pub(super) fn tail(&self) -> i128 {
        self.tail
    }
}

/// Returns the position of the tick line at `now`.
pub(super) fn line(rate: Rate, now: Moment) -> i128 {
    i128::from(now.as_nanos()) * rate.ticks_per_nano()
}

/// Returns the first nanosecond at which the tick line has reached `position`.
pub(super) fn moment(rate: Rate, position: i128) -> Moment {
    let leak = rate.ticks_per_nano();
    let position = position.max(0);
    // Nearly every position fits 64 bits, and 64-bit division is one instruction.
    let nanos = match (u64::try_from(position), u64::try_from(leak)) {
        (Ok(position), Ok(leak)) => position.div_ceil(leak),
        _ => u64::try_from((position + leak - 1) / leak).unwrap_or(u64::MAX),
    };
    Moment::from_nanos(nanos)
}

/// Converts a position from `from`'s tick line to `to`'s.
///
/// Keeps the distance from `now` in requests. Rounds down to a tick on both sides of `now`, so that
/// positions that are whole requests apart stay whole requests apart.
pub(super) fn rescale(position: i128, from: Rate, to: Rate, now: Moment) -> i128 {
    let (old, new) = (from.ticks_per_request(), to.ticks_per_request());
    let ahead = position - line(from, now);
    let (whole, part) = (ahead.div_euclid(old), ahead.rem_euclid(old));
    line(to, now) + whole * new + proportion(part, new, old)
}

/// Returns `part * new / old` rounded down, for `part` below `old`.
///
/// The product can exceed 128 bits if both periods are weeks and both counts have many decimals. So
/// this is a long division: `new` is taken as three digits of 32 bits, the highest first.
fn proportion(part: i128, new: i128, old: i128) -> i128 {
    let (quotient, _) = [64, 32, 0]
        .into_iter()
        .fold((0, 0), |(quotient, rest), shift| {
            let digit = (new >> shift) & 0xffff_ffff;
            let rest = (rest << 32) + part * digit;
            ((quotient << 32) + rest / old, rest % old)
        });
    quotient
}

/// Returns the number of ticks that leak in `span`.
fn ticks_in(rate: Rate, span: Duration) -> i128 {
    let nanos = i128::try_from(span.as_nanos()).unwrap_or(i128::MAX);
    nanos.saturating_mul(rate.ticks_per_nano())
}

#[cfg(test)]
mod tests;
