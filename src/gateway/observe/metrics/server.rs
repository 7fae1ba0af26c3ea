use std::time::Duration;

use super::atomic_histogram::{AtomicHistogram, Counts};
use super::code_class::CodeClass;
use super::histograms::DurationHistogram;
use super::sharded::Count;

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

/// Metrics of one server of an origin, counted from zero. They end with the server.
///
/// Where the addresses of a name are servers, hundreds may come and go in an hour. What a server never
/// had takes a few bytes.
#[derive(Debug, Default)]
pub struct ServerMetrics {
    outcomes: [DurationHistogram; Outcome::ALL.len()],
    codes: [Count; CodeClass::ALL.len()],
    /// Times to the head of a response, for readers that need their quantiles each second.
    heads: AtomicHistogram,
}

impl ServerMetrics {
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
        self.durations(outcome).count()
    }

    /// How long requests with this outcome took.
    #[must_use]
    pub fn durations(&self, outcome: Outcome) -> &DurationHistogram {
        &self.outcomes[outcome as usize]
    }

    /// Counts a request that ended with `outcome` after `took`.
    pub fn count(&self, outcome: Outcome, took: Duration) {
        self.durations(outcome).record(took);
    }

    /// How many requests got the head of a response.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.counted(Outcome::Answered)
    }

    /// How many requests got no response head.
    #[must_use]
    pub fn failed(&self) -> u64 {
        let all: u64 = self.outcomes.iter().map(DurationHistogram::count).sum();
        all.saturating_sub(self.answered())
    }
}
