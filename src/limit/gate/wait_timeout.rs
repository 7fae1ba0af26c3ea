use std::time::Duration;

use crate::Moment;

/// How long a request may wait at a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitLimits {
    /// Longest wait while the origin can be reached.
    pub queue_timeout: Duration,
    /// Longest wait for an origin that cannot be reached; zero: outages change nothing.
    pub hold: Duration,
    /// Longest wait in all, where an outage makes it longer than was predicted; `None`: any.
    pub most: Option<Duration>,
}

/// When a request gives up waiting at a gate.
///
/// While the origin can be reached, only `queue_timeout` counts, and the time of outages does not
/// count for it. In an outage only `hold` counts, from when the request first could not be sent.
#[derive(Clone, Copy, Debug)]
pub struct WaitTimeout {
    limits: WaitLimits,
    /// When the wait began.
    since: Moment,
    /// How long it has waited before `noted` while the origin could be reached.
    spent: Duration,
    noted: Moment,
    is_out: bool,
    /// When it first could not be sent.
    held_since: Option<Moment>,
}

/// Why a request gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivesUp {
    /// It has waited for `queue_timeout`.
    QueueTimeout,
    /// It has waited for `hold`, and the origin still cannot be reached.
    Hold,
    /// It has waited for `most` in all, because of an outage.
    Most,
}

impl WaitTimeout {
    /// The patience of a request that waits `since` then.
    ///
    /// `held_since`: when it first could not be sent, if that was before.
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

    /// Notes at `now` whether there is an outage, and since when.
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

    /// When and why the request gives up, if the origin stays as it was last noted.
    pub fn gives_up(&self) -> (Moment, GivesUp) {
        let WaitLimits {
            queue_timeout,
            hold,
            most,
        } = self.limits;
        if !self.is_out {
            let left = queue_timeout.saturating_sub(self.spent);
            return (self.noted + left, GivesUp::QueueTimeout);
        }
        let held = self.held_since.unwrap_or(self.noted) + hold;
        match most.map(|most| self.since + most) {
            Some(most) if most < held => (most, GivesUp::Most),
            _ => (held, GivesUp::Hold),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: WaitLimits = WaitLimits {
        queue_timeout: Duration::from_secs(3),
        hold: Duration::from_secs(5),
        most: None,
    };

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(1_000_000_000 * (100 + seconds))
    }

    #[test]
    fn the_time_of_an_outage_does_not_count_for_the_queue() {
        let mut it = WaitTimeout::new(LIMITS, at(0), None);
        assert_eq!(it.gives_up(), (at(3), GivesUp::QueueTimeout));
        // It hears of it late.
        it.note(Some(at(2)), at(3));
        assert_eq!(it.gives_up(), (at(7), GivesUp::Hold));
        it.note(None, at(6));
        assert_eq!(it.gives_up(), (at(7), GivesUp::QueueTimeout));
    }

    #[test]
    fn a_second_outage_does_not_begin_the_count_again() {
        let mut it = WaitTimeout::new(LIMITS, at(0), None);
        it.note(Some(at(1)), at(1));
        it.note(None, at(2));
        it.note(Some(at(3)), at(3));
        assert_eq!(it.gives_up(), (at(6), GivesUp::Hold));
        let mut again = WaitTimeout::new(LIMITS, at(4), Some(at(1)));
        again.note(Some(at(3)), at(4));
        assert_eq!(again.gives_up(), (at(6), GivesUp::Hold));
    }

    #[test]
    fn the_longest_wait_in_all_counts_in_an_outage_only() {
        let most = Some(Duration::from_secs(2));
        let mut it = WaitTimeout::new(WaitLimits { most, ..LIMITS }, at(0), None);
        assert_eq!(it.gives_up(), (at(3), GivesUp::QueueTimeout));
        it.note(Some(at(1)), at(1));
        assert_eq!(it.gives_up(), (at(2), GivesUp::Most));
    }
}
