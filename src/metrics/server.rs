use std::time::Duration;

use ::metrics::{Gauge, Histogram, Label, counter, gauge, histogram};

use super::tally::Tally;
use super::{ORIGIN_HEALTHY, ORIGIN_IN_FLIGHT, ORIGIN_REQUESTS, ORIGIN_SECONDS};

/// What came of a request at a server of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The head of an answer, whatever its status.
    Answered,
    /// No connection.
    Unreachable,
    /// No answer in time.
    Timeout,
    /// A connection that broke, or an answer that makes no sense.
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

/// What is counted of one server of an origin.
#[derive(Debug)]
pub struct ServerMetrics {
    outcomes: [(Tally, Histogram); Outcome::ALL.len()],
    in_flight: Gauge,
    /// 1 while the server is asked.
    pub healthy: Gauge,
}

impl ServerMetrics {
    /// The metrics of a server; the same ones each time that it is asked for.
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

    /// Counts a request that came to `outcome` after `took`.
    pub fn count(&self, outcome: Outcome, took: Duration) {
        let (tally, seconds) = &self.outcomes[outcome as usize];
        tally.add(1);
        seconds.record(took);
    }

    /// How many requests came to a head of an answer.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.outcomes[Outcome::Answered as usize].0.get()
    }

    /// How many came to nothing.
    #[must_use]
    pub fn failed(&self) -> u64 {
        let all: u64 = self.outcomes.iter().map(|(tally, _)| tally.get()).sum();
        all.saturating_sub(self.answered())
    }

    /// Tells Prometheus of what was counted, and how many requests are there now.
    #[allow(clippy::cast_precision_loss)]
    pub fn show(&self, in_flight: usize) {
        self.show_outcomes();
        // There are far fewer than a float can count.
        self.in_flight.set(in_flight as f64);
    }

    fn show_outcomes(&self) {
        self.outcomes.iter().for_each(|(tally, _)| tally.show());
    }
}

/// What was counted last is not lost.
impl Drop for ServerMetrics {
    fn drop(&mut self) {
        self.show_outcomes();
    }
}
