//! Timeout of a waiter at a gate: `queue_timeout` while the origin is reachable, `hold` in an
//! outage.

use std::time::Duration;

use crate::Moment;

/// Limits of a request's wait at a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitLimits {
    /// Longest wait while the origin is reachable.
    pub queue_timeout: Duration,
    /// Longest wait for an unreachable origin. Zero: outages change nothing.
    pub hold: Duration,
    /// Longest total wait, if an outage makes it longer than predicted. `None`: no limit.
    pub max_wait: Option<Duration>,
}

/// Timeout of one waiter at a gate.
///
/// While the origin is reachable, only `queue_timeout` applies, without the time of outages. In an
/// outage only `hold` applies, from the first failed attempt to send the request, or from the start
/// of the first outage in its wait.
#[derive(Clone, Copy, Debug)]
pub struct WaitTimeout {
    limits: WaitLimits,
    /// Instant at which the wait began.
    since: Moment,
    /// Time waited before `noted` while the origin was reachable.
    spent: Duration,
    /// Instant up to which the wait is recorded: the last [`note`](Self::note), or the start of the
    /// outage that it recorded.
    noted: Moment,
    /// Whether there was an outage at the last [`note`](Self::note).
    is_out: bool,
    /// Start of `hold`: the first failed attempt to send it, or the first outage in its wait.
    held_since: Option<Moment>,
}

/// Reason of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutReason {
    /// The request has waited for `queue_timeout`.
    QueueTimeout,
    /// The request has waited for `hold`, and the origin is still unreachable.
    Hold,
    /// The request has waited for `max_wait` in total, because of an outage.
    MaxWait,
}

impl WaitTimeout {
    /// Creates the timeout of a request that waits from `since` on.
    ///
    /// `held_since` is the instant of the first failed attempt to send it, if there was one.
    pub fn new(limits: WaitLimits, since: Moment, held_since: Option<Moment>) -> Self {
        Self {
            limits,
            since,
            spent: Duration::ZERO,
            noted: since,
            is_out: false,
            held_since,
        }
    }

    /// Records whether there is an outage at `now`.
    ///
    /// `out_since` is its start; `None`: the origin is reachable.
    pub fn note(&mut self, out_since: Option<Moment>, now: Moment) {
        let until = out_since.unwrap_or(now).max(self.noted);
        if !self.is_out {
            self.spent = self.spent.saturating_add(until.since(self.noted));
        }
        self.noted = until;
        self.is_out = out_since.is_some();
        if self.is_out {
            self.held_since.get_or_insert(until);
        }
    }

    /// Returns instant and reason of the timeout, if the origin stays in its last recorded state.
    pub fn timeout_at(&self) -> (Moment, TimeoutReason) {
        if !self.is_out {
            let rest = self.limits.queue_timeout.saturating_sub(self.spent);
            return (self.noted + rest, TimeoutReason::QueueTimeout);
        }
        let hold_ends = self.held_since.unwrap_or(self.noted) + self.limits.hold;
        match self.limits.max_wait.map(|max_wait| self.since + max_wait) {
            Some(ends) if ends < hold_ends => (ends, TimeoutReason::MaxWait),
            _ => (hold_ends, TimeoutReason::Hold),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: WaitLimits = WaitLimits {
        queue_timeout: Duration::from_secs(3),
        hold: Duration::from_secs(5),
        max_wait: None,
    };

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(1_000_000_000 * (100 + seconds))
    }

    #[test]
    fn the_time_of_an_outage_does_not_count_for_the_queue() {
        let mut timeout = WaitTimeout::new(LIMITS, at(0), None);
        assert_eq!(timeout.timeout_at(), (at(3), TimeoutReason::QueueTimeout));
        // The outage is reported late.
        timeout.note(Some(at(2)), at(3));
        assert_eq!(timeout.timeout_at(), (at(7), TimeoutReason::Hold));
        timeout.note(None, at(6));
        assert_eq!(timeout.timeout_at(), (at(7), TimeoutReason::QueueTimeout));
    }

    #[test]
    fn a_second_outage_does_not_restart_hold() {
        let mut timeout = WaitTimeout::new(LIMITS, at(0), None);
        timeout.note(Some(at(1)), at(1));
        timeout.note(None, at(2));
        timeout.note(Some(at(3)), at(3));
        assert_eq!(timeout.timeout_at(), (at(6), TimeoutReason::Hold));
        let mut again = WaitTimeout::new(LIMITS, at(4), Some(at(1)));
        again.note(Some(at(3)), at(4));
        assert_eq!(again.timeout_at(), (at(6), TimeoutReason::Hold));
    }

    #[test]
    fn the_longest_total_wait_applies_in_an_outage_only() {
        let max_wait = Some(Duration::from_secs(2));
        let mut timeout = WaitTimeout::new(WaitLimits { max_wait, ..LIMITS }, at(0), None);
        assert_eq!(timeout.timeout_at(), (at(3), TimeoutReason::QueueTimeout));
        timeout.note(Some(at(1)), at(1));
        assert_eq!(timeout.timeout_at(), (at(2), TimeoutReason::MaxWait));
    }
}
