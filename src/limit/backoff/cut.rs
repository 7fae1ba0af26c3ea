//! Cuts of a back-off, and the reasons for lowered limits.

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
    /// Number of answers in the window of the cut, plus outstanding requests that were past `slow`.
    pub answers: u64,
    /// Number of `answers` that were trouble, or slow.
    pub bad: u64,
    /// Instant until which the limit does not grow. Only some cuts of the rate set it.
    pub steady_until: Option<Moment>,
    /// Whether another gateway made the cut, from its own answers.
    pub is_elsewhere: bool,
}

/// Limits that are lower than configured, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lowered {
    /// The rate: its effective share of the configured rate, and the cut.
    pub rate: Option<(Percent, Cut)>,
    /// The number in flight: its last cut.
    pub max_in_flight: Option<Cut>,
    /// End of the pause.
    pub paused_until: Option<Moment>,
    /// Whether another gateway received the Retry-After of the pause.
    pub is_paused_elsewhere: bool,
    /// Whether answers are slow and the number in flight is not cut, because a lower number did not
    /// make them faster.
    pub is_kept: bool,
    /// Whether the lowered number in flight grows, because answers are fast enough.
    pub grows: bool,
    /// Mean duration of answers in the last window before any limit was lowered.
    ///
    /// `None` while no limit is lowered.
    pub usual: Option<Duration>,
}

impl Cut {
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
