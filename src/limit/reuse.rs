//! Reuse of connections: decides whether a connection may carry another request.
//!
//! The rules are the same for HTTP/1 and HTTP/2. They use age, idle time, number of requests, and
//! the idle time that the server reports.

use std::time::Duration;

use super::moment::Moment;
use super::stable_hash::spread;

/// Duration by which a connection is closed before the server would close it.
///
/// Otherwise the server could close it while a request is on its way.
const MARGIN: Duration = Duration::from_secs(1);

/// Limits of the connections to an origin, or of the connections of clients.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReuseLimits {
    /// `keep_alive_timeout`, the longest idle time.
    pub idle: Duration,
    /// `keep_alive_time`, the longest age; zero: no limit. Applies to connections opened from now
    /// on.
    pub age: Duration,
    /// `keep_alive_requests`; zero: no limit.
    pub requests: u32,
}

/// Usage of a connection so far.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Instant at which the connection is too old.
    end: Moment,
    /// Number of requests that it has carried.
    requests: u32,
    /// Idle seconds after which the server closes it; `u32::MAX` if it reports none.
    server_idle: u32,
}

impl Usage {
    /// Starts the usage of a connection that was opened `now`.
    ///
    /// The connection ends at its longest age or up to a tenth earlier, so that connections that
    /// were opened together do not end together.
    pub fn new(limits: &ReuseLimits, now: Moment) -> Self {
        let early = (limits.age / 10).mul_f64(spread(now.as_nanos()));
        let end = match limits.age {
            Duration::ZERO => Moment::from_nanos(u64::MAX),
            age => now + age.saturating_sub(early),
        };
        Self {
            end,
            requests: 0,
            server_idle: u32::MAX,
        }
    }

    /// Returns whether the connection has carried any request.
    pub fn has_carried(&self) -> bool {
        self.requests > 0
    }

    /// Counts one request.
    pub fn count(&mut self) {
        self.requests = self.requests.saturating_add(1);
    }

    /// Records the `timeout` of the server's `Keep-Alive` field, in seconds.
    pub fn note_server_idle(&mut self, seconds: u32) {
        self.server_idle = seconds;
    }

    /// Returns whether a connection in use may carry another request.
    pub fn may_carry(&self, limits: &ReuseLimits, now: Moment) -> bool {
        now < self.end && (limits.requests == 0 || self.requests < limits.requests)
    }

    /// Returns the instant until which a connection that is idle since `now` may be used.
    ///
    /// `None`: it may not be used.
    pub fn idle_until(&self, limits: &ReuseLimits, now: Moment) -> Option<Moment> {
        let end = self.idle_end(limits, now)?.min(self.end);
        self.may_carry(limits, now).then_some(end)
    }

    /// Returns the same as `idle_until`, but ignores the age and the number of requests.
    pub fn idle_end(&self, limits: &ReuseLimits, now: Moment) -> Option<Moment> {
        let idle = match self.server_idle {
            u32::MAX => limits.idle,
            seconds => {
                let server = Duration::from_secs(seconds.into()).saturating_sub(MARGIN);
                limits.idle.min(server)
            }
        };
        (!idle.is_zero()).then(|| now + idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ReuseLimits = ReuseLimits {
        idle: Duration::from_secs(60),
        age: Duration::from_secs(3600),
        requests: 3,
    };

    fn at(seconds: u64) -> Moment {
        Moment::default() + Duration::from_secs(1_000_000 + seconds)
    }

    #[test]
    fn an_idle_connection_is_used_until_its_idle_time_has_passed() {
        let usage = Usage::new(&LIMITS, at(0));
        assert_eq!(usage.idle_until(&LIMITS, at(10)), Some(at(70)));
    }

    #[test]
    fn a_connection_is_closed_a_second_before_the_server_closes_it() {
        // `timeout` of the server in seconds, and the end of the idle time.
        let mut usage = Usage::new(&LIMITS, at(0));
        for (seconds, expected) in [
            (0, None),
            (1, None),
            (2, Some(at(1))),
            (5, Some(at(4))),
            (61, Some(at(60))),
            (1000, Some(at(60))),
        ] {
            usage.note_server_idle(seconds);
            assert_eq!(usage.idle_until(&LIMITS, at(0)), expected, "{seconds} s");
        }
    }

    #[test]
    fn a_connection_carries_no_more_requests_than_allowed() {
        let mut usage = Usage::new(&LIMITS, at(0));
        for _ in 0..3 {
            assert!(usage.may_carry(&LIMITS, at(0)));
            usage.count();
        }
        assert!(!usage.may_carry(&LIMITS, at(0)));
        assert_eq!(usage.idle_until(&LIMITS, at(0)), None);
        let unlimited = ReuseLimits {
            requests: 0,
            ..LIMITS
        };
        assert!(usage.may_carry(&unlimited, at(0)));
    }

    #[test]
    fn connections_end_at_their_age_or_up_to_a_tenth_earlier_and_not_all_at_once() {
        // Checks the end of a connection that is opened then, and returns it.
        let check_end = |nanos: u64| {
            let opened = at(0) + Duration::from_nanos(nanos);
            let usage = Usage::new(&LIMITS, opened);
            let end = usage.end;
            assert!(usage.may_carry(&LIMITS, end.before(Duration::from_nanos(1))));
            assert!(!usage.may_carry(&LIMITS, end));
            assert!(end <= opened + LIMITS.age && end >= opened + LIMITS.age * 9 / 10);
            // An idle connection is not used after its age either.
            let late = end.before(Duration::from_secs(1));
            assert_eq!(usage.idle_until(&LIMITS, late), Some(end));
            end
        };
        let mut ends: Vec<_> = (0..100).map(|nth| check_end(nth * 1000)).collect();
        ends.sort();
        let (first, last) = (ends[0], ends[99]);
        assert!(last.since(first) > LIMITS.age / 20, "{first:?} {last:?}");
        let ageless = ReuseLimits {
            age: Duration::ZERO,
            ..LIMITS
        };
        let usage = Usage::new(&ageless, at(0));
        assert!(usage.may_carry(&ageless, at(1 << 32)));
    }
}
