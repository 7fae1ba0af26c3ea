//! Simulated outcome of a request: passed, delayed or rejected, by the zones and by the gate.
//!
//! The *gate* of an origin limits its requests. The *level* of a key's bucket is what was charged
//! and has not leaked yet.

use std::time::Duration;

use limit::{Excess, Moment, Verdict};

use crate::observe::metrics::{GateRejected, LimitStatus};

/// Simulated outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Instant of arrival: the latest time of this line and of all lines before it.
    pub time: Moment,
    /// Verdict of all limits together. `Rejected` also if the origin's gate rejected the request.
    pub status: LimitStatus,
    /// Instant of departure to the origin; `None` if the request was rejected.
    pub departure: Option<Moment>,
    /// Level that the request reached, or would have reached, at the limit that decided.
    pub excess: Excess,
    /// Outcome at the origin's gate; `None` if the request did not reach a gate.
    pub at_gate: Option<AtGate>,
}

/// Outcome of a request at an origin's gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtGate {
    /// Instant at which the request joined the gate.
    pub since: Moment,
    /// Instant at which the request passed the gate or was rejected.
    pub until: Moment,
    /// Reason for a rejection; `None` if the request passed.
    pub rejected: Option<GateRejected>,
}

impl Outcome {
    /// Returns the total wait; `None` if the request was rejected.
    pub fn delay(&self) -> Option<Duration> {
        self.departure.map(|departure| departure.since(self.time))
    }

    /// Returns the instant of the departure or the rejection.
    pub fn ended(&self) -> Moment {
        let rejected = self.at_gate.map_or(self.time, |gate| gate.until);
        self.departure.unwrap_or(rejected)
    }

    /// Returns the outcome of a request that a zone rejects.
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

    /// Returns the outcome of a request that all zones accept, given their verdicts.
    pub(crate) fn accepted(dry_run: bool, verdicts: &[Verdict], now: Moment) -> Self {
        let waits = verdicts.iter().map(|verdict| match *verdict {
            Verdict::Delay { until, excess } => (Some(until), excess),
            Verdict::Pass { excess } => (None, excess),
            Verdict::Reject(refusal) => (None, refusal.excess),
        });
        // The limit with the longest wait decides; of equal ones the first, so the last in reverse.
        let decisive = waits.rev().max_by_key(|(until, _)| *until);
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
