//! Metrics of a server of an origin.
//!
//! An origin has one or more servers, which share its requests.

use std::time::Duration;

use super::atomic_histogram::{AtomicHistogram, Counts};
use super::durations::DurationHistogram;
use super::label::{CountBy, labels};

labels! {
    /// Outcome of a request at a server of an origin.
    pub enum Outcome {
        /// The head of a response arrived, whatever its status.
        Answered = "answered",
        /// There was no connection.
        Unreachable = "unreachable",
        /// No response arrived in time.
        Timeout = "timeout",
        /// The connection broke, or the response was invalid.
        Broken = "broken",
    }
}

/// Metrics of one server of an origin, counted from zero. They end with the server.
///
/// Where the addresses of a name are servers, hundreds may come and go in an hour. An unused metric
/// takes a few bytes.
#[derive(Default)]
pub struct ServerMetrics {
    /// Durations of the requests with each outcome, in the order of `Outcome::ALL`.
    outcomes: [DurationHistogram; Outcome::ALL.len()],
    /// Responses by status class.
    pub responses: CountBy<CodeClass>,
    /// Times to the head of a response, for quantiles each second.
    heads: AtomicHistogram,
}

impl ServerMetrics {
    /// Counts a response with this status. `took`: time to its head.
    pub fn count_response(&self, status: u16, took: Duration) {
        self.count(Outcome::Answered, took);
        self.responses.add(CodeClass::of(status), 1);
        self.heads.record(took);
    }

    /// Returns the times to the head of a response so far.
    pub fn latencies(&self) -> Counts {
        self.heads.counts()
    }

    /// Returns the number of requests with this outcome.
    pub fn counted(&self, outcome: Outcome) -> u64 {
        self.durations(outcome).count()
    }

    /// Returns the durations of requests with this outcome.
    pub fn durations(&self, outcome: Outcome) -> &DurationHistogram {
        &self.outcomes[outcome as usize]
    }

    /// Counts a request that ended with `outcome` after `took`.
    pub fn count(&self, outcome: Outcome, took: Duration) {
        self.durations(outcome).record(took);
    }

    /// Returns the number of requests that got the head of a response.
    pub fn answered(&self) -> u64 {
        self.counted(Outcome::Answered)
    }

    /// Returns the number of requests that got no head of a response.
    pub fn failed(&self) -> u64 {
        let all: u64 = self.outcomes.iter().map(DurationHistogram::count).sum();
        all.saturating_sub(self.answered())
    }
}

labels! {
    /// Class of a response's status.
    pub enum CodeClass {
        /// 100 to 199.
        Interim = "1xx",
        /// 200 to 299.
        Success = "2xx",
        /// 300 to 399.
        Redirection = "3xx",
        /// 400 to 499.
        ClientError = "4xx",
        /// 500 and above.
        ServerError = "5xx",
    }
}

impl CodeClass {
    /// Returns the class of `status`.
    pub fn of(status: u16) -> Self {
        match status {
            0..200 => Self::Interim,
            200..300 => Self::Success,
            300..400 => Self::Redirection,
            400..500 => Self::ClientError,
            500.. => Self::ServerError,
        }
    }
}
