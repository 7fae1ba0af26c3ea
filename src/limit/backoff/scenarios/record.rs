//! The record of a simulated scenario of a back-off: what happened, by time since the start.
//!
//! A *cut* is a lowering of a limit by the back-off.

use std::time::Duration;

use super::super::Cuts;

/// An answer of the origin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Instant at which the request was sent.
    pub sent: Duration,
    /// Instant of the answer.
    pub at: Duration,
    /// Whether it was no trouble.
    pub good: bool,
}

/// The limits that are in force from an instant on.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub at: Duration,
    /// Requests a second.
    pub rate: f64,
    pub max_in_flight: Option<usize>,
}

/// Events of a simulation.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub answers: Vec<Seen>,
    /// Instants of all departures.
    pub sent: Vec<Duration>,
    /// One for each change of a limit.
    pub states: Vec<State>,
    /// Instant and kind of each cut.
    pub cuts: Vec<(Duration, Cuts)>,
    /// Instant of each cut of the rate, and the time without growth after it.
    pub steady_times: Vec<(Duration, Duration)>,
    /// Start and length of each pause.
    pub pauses: Vec<(Duration, Duration)>,
}

#[allow(clippy::cast_precision_loss)]
impl Record {
    /// Returns the answers between two seconds.
    fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &Seen> {
        let (from, to) = (Duration::from_secs(from), Duration::from_secs(to));
        let answers = self.answers.iter();
        answers.filter(move |seen| seen.at >= from && seen.at < to)
    }

    /// Returns the number of good answers a second between two seconds.
    pub fn good(&self, from: u64, to: u64) -> f64 {
        let good = self.between(from, to).filter(|seen| seen.good).count();
        good as f64 / (to - from) as f64
    }

    /// Returns the share of trouble in the answers between two seconds.
    pub fn errors(&self, from: u64, to: u64) -> f64 {
        let bad = self.between(from, to).filter(|seen| !seen.good).count();
        bad as f64 / self.between(from, to).count().max(1) as f64
    }

    /// Returns a percentile of the duration of answers between two seconds.
    pub fn percentile(&self, percent: usize, from: u64, to: u64) -> Duration {
        let mut took: Vec<_> = self
            .between(from, to)
            .map(|seen| seen.at.saturating_sub(seen.sent))
            .collect();
        took.sort_unstable();
        took[(took.len() * percent).div_ceil(100) - 1]
    }

    /// Returns the first instant from the second `from` on at which `is_there(rate)`.
    pub fn first(&self, from: u64, is_there: impl Fn(f64) -> bool) -> Option<Duration> {
        let from = Duration::from_secs(from);
        let mut states = self.states.iter();
        let first = states.find(|state| state.at >= from && is_there(state.rate))?;
        Some(first.at)
    }

    /// Returns the least limit of the number of requests in flight, if there ever was one.
    pub fn least_limit(&self) -> Option<usize> {
        let limits = self.states.iter().filter_map(|state| state.max_in_flight);
        limits.min()
    }

    /// Returns the longest time without growth after a cut of the rate.
    pub fn longest_steady(&self) -> Duration {
        let times = self.steady_times.iter().map(|(_, steady)| *steady);
        times.max().unwrap_or_default()
    }
}
