use std::time::Duration;

use ::metrics::{Gauge, Histogram, Label, counter, gauge, histogram};

use super::tally::Tally;
use super::{ORIGIN_HEALTHY, ORIGIN_IN_FLIGHT, ORIGIN_REQUESTS, ORIGIN_SECONDS};

/// Result of a request at a server of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The head of a response arrived, whatever its status.
    Answered,
    /// There was no connection.
    Unreachable,
    /// No response arrived in time.
    Timeout,
    /// The connection broke, or the response was invalid.
    Broken,
}

impl Outcome {
    const ALL: [Self; 4] = [
        Self::Answered,
        Self::Unreachable,
        Self::Timeout,
        Self::Broken,
    ];

    fn label(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
        }
    }
}

/// Metrics of one server of an origin.
#[derive(Debug)]
pub struct ServerMetrics {
    outcomes: [(Tally, Histogram); Outcome::ALL.len()],
    in_flight: Gauge,
    /// 1 while the server gets requests.
    pub healthy: Gauge,
}

impl ServerMetrics {
    /// The metrics of a server; each call returns the same series.
    #[must_use]
    pub fn of(origin: &str, server: &str) -> Self {
        let labels = [
            Label::new("origin", origin.to_owned()),
            Label::new("server", server.to_owned()),
        ];
        let outcomes = Outcome::ALL.map(|outcome| {
            let labels = [&labels[..], &[Label::new("outcome", outcome.label())]].concat();
            (
                Tally::into_series(counter!(ORIGIN_REQUESTS, labels.clone())),
                histogram!(ORIGIN_SECONDS, labels),
            )
        });
        let in_flight = gauge!(ORIGIN_IN_FLIGHT, labels.to_vec());
        Self {
            outcomes,
            in_flight,
            healthy: gauge!(ORIGIN_HEALTHY, labels.to_vec()),
        }
    }

    /// Counts a request that ended with `outcome` after `took`.
    pub fn count(&self, outcome: Outcome, took: Duration) {
        let (tally, seconds) = &self.outcomes[outcome as usize];
        tally.add(1);
        seconds.record(took);
    }

    /// How many requests got the head of a response.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.outcomes[Outcome::Answered as usize].0.get()
    }

    /// How many requests got no response head.
    #[must_use]
    pub fn failed(&self) -> u64 {
        let all: u64 = self.outcomes.iter().map(|(tally, _)| tally.get()).sum();
        all.saturating_sub(self.answered())
    }

    /// Reports the counts to Prometheus, and how many requests are at the server now.
    #[allow(clippy::cast_precision_loss)]
    pub fn show(&self, in_flight: usize) {
        self.show_outcomes();
        // The count is far below the largest whole number that a float holds exactly.
        self.in_flight.set(in_flight as f64);
    }

    fn show_outcomes(&self) {
        self.outcomes.iter().for_each(|(tally, _)| tally.show());
    }
}

/// Reports the last counts, so that they are not lost.
impl Drop for ServerMetrics {
    fn drop(&mut self) {
        self.show_outcomes();
    }
}
