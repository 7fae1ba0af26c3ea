use super::{Delay, Excess, Limit, Moment, Rate, Reason, Refusal, Verdict};

/// A key's leaky bucket: what was charged and has not leaked yet.
///
/// Levels are kept on a *tick line*: at moment `t` the line has reached `t * ticks_per_nano`, and a request is
/// `ticks_per_request` long. The bucket is one position on it, its `tail`: where the line must be for the level
/// to be zero. So the level is `tail - line`, leaking costs no work, and nothing is ever rounded.
///
/// This is nginx's rule (`ngx_http_limit_req_lookup`): the first request has excess 0; a later one
/// `max(0, previous - rate * elapsed + 1)`. In tick-line terms: `tail = max(line, tail + 1 request)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    tail: i128,
}

/// Far enough back that a request is drained whatever the rate, and far from overflow when a request is added.
const LONG_AGO: i128 = i128::MIN / 4;

impl Default for Bucket {
    fn default() -> Self {
        Self { tail: LONG_AGO }
    }
}

impl Bucket {
    /// A bucket that has never been charged.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A bucket that is empty when the tick line has reached `tail`.
    pub(super) fn until(tail: i128) -> Self {
        Self { tail }
    }

    /// A bucket in which a request that comes at `now` makes this level, in ticks and not below zero.
    #[must_use]
    pub(crate) fn next_at_level(rate: Rate, ticks: i128, now: Moment) -> Self {
        Self::until(line(rate, now) + ticks - rate.ticks_per_request())
    }

    /// Judges one request that arrives at `now`, and charges it unless it is rejected.
    pub fn decide(&mut self, rate: Rate, limit: Limit, now: Moment) -> Verdict {
        let (line, request) = (line(rate, now), rate.ticks_per_request());
        let tail = line.max(self.tail + request);
        let level = tail - line;
        let excess = Excess::from_ticks(level, rate);

        let Ceiling { free, accepted } = Ceiling::new(rate, limit);
        if level > accepted {
            let reason = if level > i128::from(limit.burst) * request {
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
        self.tail = tail;
        if wait == 0 {
            Verdict::Pass { excess }
        } else {
            Verdict::Delay {
                until: moment(rate, line + wait),
                excess,
            }
        }
    }

    /// Why a request that arrives at `now` would be rejected, if it would. Charges nothing.
    #[must_use]
    pub fn refuses(&self, rate: Rate, limit: Limit, now: Moment) -> Option<Refusal> {
        match { *self }.decide(rate, limit, now) {
            Verdict::Reject(refusal) => Some(refusal),
            Verdict::Pass { .. } | Verdict::Delay { .. } => None,
        }
    }

    /// How many requests would be accepted at `now`, one right after the other.
    #[must_use]
    pub fn remaining(&self, rate: Rate, limit: Limit, now: Moment) -> u32 {
        let request = rate.ticks_per_request();
        let level = (self.tail - line(rate, now)).max(-request);
        let room = Ceiling::new(rate, limit).accepted - level;
        u32::try_from(room.max(0) / request).unwrap_or(u32::MAX)
    }

    /// The first moment from `now` on at which a request would be accepted after `others` that come at `now`.
    #[must_use]
    pub fn accepts_at(&self, rate: Rate, limit: Limit, others: u32, now: Moment) -> Moment {
        let request = rate.ticks_per_request();
        let tail = self.tail.max(line(rate, now) - request);
        let charged = (i128::from(others) + 1) * request;
        moment(rate, tail + charged - Ceiling::new(rate, limit).accepted).max(now)
    }

    /// The level at `now`, without a new request.
    #[must_use]
    pub fn excess(&self, rate: Rate, now: Moment) -> Excess {
        Excess::from_ticks(self.tail - line(rate, now), rate)
    }

    /// From when on forgetting this bucket changes no verdict: `(excess + 1) / rate` after its last charge.
    #[must_use]
    pub fn drained_at(&self, rate: Rate) -> Moment {
        moment(rate, self.tail + rate.ticks_per_request())
    }

    /// Takes the last charge back, whole.
    pub(crate) fn take_back(&mut self, rate: Rate) {
        self.refund(rate.ticks_per_request());
    }

    /// Takes a charge back, in ticks of a request.
    pub(super) fn refund(&mut self, ticks: i128) {
        self.tail -= ticks;
    }

    /// Carries the level at `now` over to another rate.
    pub fn retune(&mut self, from: Rate, to: Rate, now: Moment) {
        if self.tail + from.ticks_per_request() <= line(from, now) {
            *self = Self::new();
        } else {
            self.tail = rescale(self.tail, from, to, now);
        }
    }

    pub(super) fn tail(&self) -> i128 {
        self.tail
    }
}

/// A limit's numbers in ticks of level.
struct Ceiling {
    /// Up to here a request need not wait.
    free: i128,
    /// Up to here it is accepted: it neither exceeds `burst` nor waits longer than `max_wait`.
    accepted: i128,
}

impl Ceiling {
    fn new(rate: Rate, limit: Limit) -> Self {
        let request = rate.ticks_per_request();
        let free = match limit.delay {
            Delay::Never => i128::MAX,
            Delay::Above(free) => i128::from(free) * request,
        };
        let patience = limit.max_wait.map_or(i128::MAX, |max| ticks_in(rate, max));
        let accepted = (i128::from(limit.burst) * request).min(free.saturating_add(patience));
        Self { free, accepted }
    }
}

/// How far the tick line has come at `now`.
pub(super) fn line(rate: Rate, now: Moment) -> i128 {
    i128::from(now.as_nanos()) * rate.ticks_per_nano()
}

/// The first nanosecond at which the tick line has reached `position`.
pub(super) fn moment(rate: Rate, position: i128) -> Moment {
    let leak = rate.ticks_per_nano();
    let position = position.max(0);
    // Nearly every position is short enough for the processor's own division.
    let nanos = match (u64::try_from(position), u64::try_from(leak)) {
        (Ok(position), Ok(leak)) => position.div_ceil(leak),
        _ => u64::try_from((position + leak - 1) / leak).unwrap_or(u64::MAX),
    };
    Moment::from_nanos(nanos)
}

/// A position on `from`'s line, as far from `now` in requests on `to`'s line, less a part of a tick.
///
/// Rounded down on both sides of `now`, so that positions whole requests apart stay whole requests apart.
pub(super) fn rescale(position: i128, from: Rate, to: Rate, now: Moment) -> i128 {
    let (old, new) = (from.ticks_per_request(), to.ticks_per_request());
    let ahead = position - line(from, now);
    let (whole, part) = (ahead.div_euclid(old), ahead.rem_euclid(old));
    line(to, now) + whole * new + proportion(part, new, old)
}

/// `part * new / old` rounded down, for a `part` below `old`. The product can be longer than 128 bits where both
/// periods are weeks and both counts have many decimals, so it is made and divided in three 32-bit steps.
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

fn ticks_in(rate: Rate, span: std::time::Duration) -> i128 {
    let nanos = i128::try_from(span.as_nanos()).unwrap_or(i128::MAX);
    nanos.saturating_mul(rate.ticks_per_nano())
}

#[cfg(test)]
mod tests;
