use std::time::Duration;

use ::metrics::{Gauge, Histogram, Label, counter, gauge, histogram};

use super::atomic_histogram::{AtomicHistogram, Counts};
use super::code_class::CodeClass;
use super::tally::Tally;
use super::{ORIGIN_HEALTHY, ORIGIN_IN_FLIGHT, ORIGIN_REQUESTS, ORIGIN_RESPONSES, ORIGIN_SECONDS};

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
    /// All outcomes.
    pub const ALL: [Self; 4] = [
        Self::Answered,
        Self::Unreachable,
        Self::Timeout,
        Self::Broken,
    ];

    /// The value of the label `outcome`.
    #[must_use]
    pub fn label(self) -> &'static str {
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
    codes: [Tally; CodeClass::ALL.len()],
    /// Times to the head of a response, for readers that need their quantiles each second.
    heads: AtomicHistogram,
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
        let codes = CodeClass::ALL.map(|code| {
            let labels = [&labels[..], &[Label::new("code", code.label())]].concat();
            Tally::into_series(counter!(ORIGIN_RESPONSES, labels))
        });
        let in_flight = gauge!(ORIGIN_IN_FLIGHT, labels.to_vec());
        Self {
            outcomes,
            codes,
            heads: AtomicHistogram::default(),
            in_flight,
            healthy: gauge!(ORIGIN_HEALTHY, labels.to_vec()),
        }
    }

    /// Counts a request whose response had this status, and its head arrived after `took`.
    pub fn count_response(&self, status: u16, took: Duration) {
        self.count(Outcome::Answered, took);
        self.codes[CodeClass::of(status) as usize].add(1);
        self.heads.record(took);
    }

    /// How many responses had a status of this class.
    #[must_use]
    pub fn responses(&self, code: CodeClass) -> u64 {
        self.codes[code as usize].get()
    }

    /// The times to the head of a response so far.
    #[must_use]
    pub fn latencies(&self) -> Counts {
        self.heads.counts()
    }

    /// How many requests had this outcome.
    #[must_use]
    pub fn counted(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize].0.get()
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
        self.counted(Outcome::Answered)
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
        self.codes.iter().for_each(Tally::show);
    }
}

/// Reports the last counts, so that they are not lost.
impl Drop for ServerMetrics {
    fn drop(&mut self) {
        self.show_outcomes();
    }
}
