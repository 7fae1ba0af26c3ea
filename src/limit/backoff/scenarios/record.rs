//! The record of a simulated scenario.

use std::time::Duration;

use super::super::Cuts;

/// An answer of the origin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub sent: Duration,
    pub at: Duration,
    pub good: bool,
}

/// Events of a simulation.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub answers: Vec<Seen>,
    /// Instants of all departures.
    pub sent: Vec<Duration>,
    /// One row for each update: instant, rate a second, limit of the number in flight.
    pub states: Vec<(Duration, f64, Option<usize>)>,
    pub cuts: Vec<(Duration, Cuts)>,
    /// Time without growth after each cut of the rate, with the instant of the cut.
    pub steady_times: Vec<(Duration, Duration)>,
    pub pauses: Vec<(Duration, Duration)>,
}

#[allow(clippy::cast_precision_loss)]
impl Record {
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

    /// Returns a percentile (`of_100`) of the duration of answers.
    pub fn percentile(&self, of_100: usize, from: u64, to: u64) -> Duration {
        let mut took: Vec<_> = self
            .between(from, to)
            .map(|seen| seen.at.saturating_sub(seen.sent))
            .collect();
        took.sort_unstable();
        took[(took.len() * of_100).div_ceil(100) - 1]
    }

    /// Returns when the rate is first in a range, from a second on.
    pub fn first(&self, from: u64, is_there: impl Fn(f64) -> bool) -> Option<Duration> {
        let after = |at: &Duration| *at >= Duration::from_secs(from);
        let mut states = self.states.iter().filter(|(at, ..)| after(at));
        states
            .find(|(_, rate, _)| is_there(*rate))
            .map(|(at, ..)| *at)
    }

    pub fn longest_steady(&self) -> Duration {
        self.steady_times
            .iter()
            .map(|(_, steady)| *steady)
            .max()
            .unwrap_or_default()
    }
}
