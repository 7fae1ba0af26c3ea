//! Cuts of a back-off, and the reasons for lowered limits.
//!
//! A *cut* lowers a limit: the rate, or the number of requests in flight. Answers of the origin are
//! counted in *windows* of time. *Trouble* is an answer that counts as a failure. An answer is
//! *slow* if it takes longer than the configured `slow`.

use std::time::Duration;

use crate::{Moment, Percent};

/// Limits that were cut since the last [update](super::Backoff::update).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// Whether the rate was cut, because of trouble.
    pub trouble: bool,
    /// Whether the number in flight was cut, because of slow answers.
    pub slow: bool,
    /// Whether all departures were paused, because of Retry-After.
    pub retry_after: bool,
}

/// Reason why a limit is lower than configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Instant of the last cut.
    pub at: Moment,
    /// Number of answers in the window that caused the cut.
    ///
    /// Requests without an answer that were past `slow` count as slow answers.
    pub answers: u64,
    /// Number of `answers` that were trouble (a cut of the rate), or slow (a cut of the number in
    /// flight).
    pub bad: u64,
    /// Instant until which a cut rate does not grow. `None`: there is no such time.
    pub steady_until: Option<Moment>,
    /// Whether another gateway made the cut, from its own answers.
    pub is_elsewhere: bool,
}

/// Limits that are lower than configured, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lowered {
    /// The rate: its effective share of the configured rate, and the cut.
    pub rate: Option<(Percent, Cut)>,
    /// The number of requests in flight: its last cut.
    pub max_in_flight: Option<Cut>,
    /// End of the pause.
    pub paused_until: Option<Moment>,
    /// Whether another gateway received the Retry-After of the pause.
    pub is_paused_elsewhere: bool,
    /// Whether answers are slow but the number in flight is not cut, because a lower number did not
    /// make them faster before.
    pub is_kept: bool,
    /// Whether the lowered number in flight grows, because answers are fast enough.
    pub grows: bool,
    /// Mean duration of answers in the last window before any limit was lowered.
    ///
    /// `None` while no limit is lowered.
    pub usual: Option<Duration>,
}

impl Cut {
    /// Returns a cut that this gateway made.
    pub(super) fn new(bad: u64, answers: u64, at: Moment) -> Self {
        Self {
            at,
            answers,
            bad,
            steady_until: None,
            is_elsewhere: false,
        }
    }
}
