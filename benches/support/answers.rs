//! Counts the outcomes of many clients' requests.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts that the clients' thread writes and other threads read.
#[derive(Debug, Default)]
pub struct Counts {
    /// Clients that are connected and begin to send requests.
    connected: AtomicU64,
    passed: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
    /// Status of the last refused request.
    last_refusal: AtomicU64,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// Answered with this status.
    Answered(u16),
    /// The connection failed, or its stream was reset.
    Failed,
    /// The client's timeout expired.
    GivenUp,
}

impl Counts {
    /// Counts a client that has connected.
    pub fn count_client(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of clients that have connected.
    pub fn clients(&self) -> u64 {
        self.connected.load(Ordering::Relaxed)
    }

    pub fn count(&self, outcome: Outcome) {
        let count = match outcome {
            Outcome::Answered(200..300) => &self.passed,
            Outcome::Answered(status) => {
                self.last_refusal.store(status.into(), Ordering::Relaxed);
                &self.refused
            }
            Outcome::Failed => &self.failed,
            Outcome::GivenUp => &self.given_up,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn answers(&self) -> Answers {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Answers {
            passed: read(&self.passed),
            refused: read(&self.refused),
            failed: read(&self.failed),
            given_up: read(&self.given_up),
            last_refusal: read(&self.last_refusal),
        }
    }
}

/// The counts at one instant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers {
    /// Requests answered with 2xx.
    pub passed: u64,
    /// Requests answered with another status.
    pub refused: u64,
    /// Requests without an answer.
    pub failed: u64,
    /// Requests that the client gave up.
    pub given_up: u64,
    /// The status of the last refused request; 0 if there was none.
    pub last_refusal: u64,
}

impl Answers {
    pub fn answered(&self) -> u64 {
        self.passed + self.refused
    }

    /// Returns the counts since an earlier instant.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            passed: self.passed - before.passed,
            refused: self.refused - before.refused,
            failed: self.failed - before.failed,
            given_up: self.given_up - before.given_up,
            last_refusal: self.last_refusal,
        }
    }
}
