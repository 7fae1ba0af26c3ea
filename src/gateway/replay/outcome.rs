use std::time::Duration;

use limit::{Excess, Moment, Verdict};

use crate::observe::metrics::{GateRejected, LimitStatus};

/// The simulated outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// When it came: the time on its line, or the latest time of an earlier line if that is later.
    pub time: Moment,
    /// The verdict of all its limits together; `Rejected` also if the origin's gate rejected it.
    pub status: LimitStatus,
    /// When it would have left for its origin; `None` if it was rejected.
    pub departure: Option<Moment>,
    /// The level that it reached, or would have reached, at the limit that decided.
    pub excess: Excess,
    /// What became of it at its origin's gate; `None` if it was at none.
    pub at_gate: Option<AtGate>,
}

/// What became of a request at an origin's gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtGate {
    /// When it came to the gate.
    pub since: Moment,
    /// When it left the gate or was rejected there.
    pub until: Moment,
    /// Why it was rejected there; `None` if it was not.
    pub rejected: Option<GateRejected>,
}

impl Outcome {
    /// How long it would have waited.
    pub fn delay(&self) -> Option<Duration> {
        self.departure.map(|departure| departure.since(self.time))
    }

    /// When it would have left or been rejected.
    pub fn ended(&self) -> Moment {
        let rejected = self.at_gate.map_or(self.time, |gate| gate.until);
        self.departure.unwrap_or(rejected)
    }

    /// The outcome of a request that a zone rejects.
    pub(crate) fn rejected(dry_run: bool, excess: Excess, now: Moment) -> Self {
        let (status, departure) = if dry_run {
            (LimitStatus::RejectedDryRun, Some(now))
        } else {
            (LimitStatus::Rejected, None)
        };
        Self {
            time: now,
            status,
            departure,
            excess,
            at_gate: None,
        }
    }

    /// The outcome of a request that the zones accept, with these verdicts.
    pub(crate) fn accepted(dry_run: bool, verdicts: &[Verdict], now: Moment) -> Self {
        let told = verdicts.iter().map(|verdict| match *verdict {
            Verdict::Delay { until, excess } => (Some(until), excess),
            Verdict::Pass { excess } => (None, excess),
            Verdict::Reject(refusal) => (None, refusal.excess),
        });
        // The first of the limits with the longest wait.
        let decisive = told.rev().max_by_key(|(until, _)| *until);
        let (until, excess) = decisive.unwrap_or((None, Excess::default()));
        let (status, departure) = match until {
            None => (LimitStatus::Passed, now),
            Some(_) if dry_run => (LimitStatus::DelayedDryRun, now),
            Some(until) => (LimitStatus::Delayed, until),
        };
        Self {
            time: now,
            status,
            departure: Some(departure),
            excess,
            at_gate: None,
        }
    }
}

impl AtGate {
    /// How long it was there.
    pub fn waited(&self) -> Duration {
        self.until.since(self.since)
    }
}
