//! What has become of the requests of many clients.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts that the clients' thread writes and others read.
#[derive(Debug, Default)]
pub struct Counts {
    /// Clients who are connected and begin to ask.
    here: AtomicU64,
    passed: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
    /// The status of the last one that was refused.
    last: AtomicU64,
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// Answered with this status.
    Answered(u16),
    Failed,
    GivenUp,
}

impl Counts {
    pub fn count_client(&self) {
        self.here.fetch_add(1, Ordering::Relaxed);
    }

    pub fn clients(&self) -> u64 {
        self.here.load(Ordering::Relaxed)
    }

    pub fn count(&self, outcome: Outcome) {
        let count = match outcome {
            Outcome::Answered(200..300) => &self.passed,
            Outcome::Answered(status) => {
                self.last.store(status.into(), Ordering::Relaxed);
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
            last_refusal: read(&self.last),
        }
    }
}

/// The same, at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers {
    /// Answered 2xx.
    pub passed: u64,
    /// Answered otherwise.
    pub refused: u64,
    /// Not answered.
    pub failed: u64,
    /// Not waited for.
    pub given_up: u64,
    /// The status of the last one that was refused; 0 where none was.
    pub last_refusal: u64,
}

impl Answers {
    pub fn answered(&self) -> u64 {
        self.passed + self.refused
    }

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
