//! Windows: counts of an origin's answers in 1 to 10 seconds.
//!
//! *Trouble* is an answer that counts as a failure. An answer is *slow* if it takes longer than the
//! configured `slow`. A *cut* lowers a limit after a window with too much of either. Only answers
//! to requests sent after the last cut are judged.

use std::time::Duration;

use super::Answer;
use super::tally::Tally;
use crate::Moment;

/// Shortest duration of a window.
const MIN_SPAN: Duration = Duration::from_secs(1);
/// Longest duration of a window.
const MAX_SPAN: Duration = Duration::from_secs(10);

/// Lower bound of the answers in a window shorter than [`MAX_SPAN`].
const MIN_ANSWERS: u64 = 10;

/// Counts of an origin's answers in a span of time.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Start of the window.
    pub since: Moment,
    /// Number of answers to requests sent after the last cut.
    ///
    /// The next fields, up to `retry_after`, are about these answers alone.
    pub answers: u64,
    /// Number of answers that are trouble.
    pub trouble: u64,
    /// Answers by the keys of their requests.
    pub by_key: Tally,
    /// Number of answers that are slow.
    pub slow: u64,
    /// Total duration, in nanoseconds, of answers that are neither trouble nor slow.
    pub good_nanos: u128,
    /// Total duration, in nanoseconds, of all answers without trouble.
    pub total_nanos: u128,
    /// Smallest Retry-After of answers that are trouble.
    pub retry_after: Duration,
    /// Number of answers without trouble, also to requests sent before the last cut.
    pub completions: u64,
    /// Total charge of the requests counted in `completions`.
    pub cost: u64,
}

/// A closed window, with the requests at the origin at its end.
#[derive(Debug)]
pub(super) struct Closed {
    pub window: Window,
    /// End of the window.
    pub at: Moment,
    /// Number of requests sent after the last cut that are past `slow` without an answer.
    pub overdue: u64,
    /// Number of requests without an answer.
    ///
    /// A request does not count while its client has to send a part of it.
    pub unanswered: u64,
    /// Number of other requests at the origin.
    ///
    /// Their answer has begun and not ended, they became WebSocket connections, or their
    /// clients still have to send a part of them.
    pub answering: u64,
    /// Generation of the requests sent after the last cut.
    pub generation: u64,
}

impl Closed {
    /// Returns the duration of the window, in nanoseconds, at least 1.
    pub fn span(&self) -> u128 {
        self.at.since(self.window.since).as_nanos().max(1)
    }
}

impl Window {
    /// Returns an empty window that starts at `since`.
    pub fn new(since: Moment) -> Self {
        Self {
            since,
            // No Retry-After: the smallest one of none.
            retry_after: Duration::MAX,
            ..Self::default()
        }
    }

    /// Returns whether no answer was counted.
    pub fn is_empty(&self) -> bool {
        self.answers == 0 && self.completions == 0
    }

    /// Returns the mean duration of answers without trouble. `None`: there were none.
    pub fn mean(&self) -> Option<Duration> {
        let answers = u128::from(self.answers - self.trouble);
        let mean = self.total_nanos.checked_div(answers)?;
        u64::try_from(mean).ok().map(Duration::from_nanos)
    }

    /// Counts an answer without trouble, even if its request was sent before the last cut.
    pub fn complete(&mut self, answer: &Answer) {
        self.completions += 1;
        self.cost += u64::from(answer.cost);
    }

    /// Counts the answer to a request of `key` sent after the last cut.
    pub fn add(
        &mut self,
        key: Option<u64>,
        answer: &Answer,
        took: Duration,
        slow: Option<Duration>,
    ) {
        let by_key = self.by_key.counts(key);
        by_key.answers += 1;
        by_key.trouble += u64::from(answer.trouble);
        self.answers += 1;
        self.trouble += u64::from(answer.trouble);
        if !answer.trouble {
            self.total_nanos += took.as_nanos();
        }
        if let Some(retry_after) = answer.retry_after.filter(|_| answer.trouble) {
            by_key.retries += 1;
            self.retry_after = self.retry_after.min(retry_after);
        }
        match slow {
            Some(slow) if took > slow => {
                by_key.slow += 1;
                self.slow += 1;
            }
            Some(_) if !answer.trouble => self.good_nanos += took.as_nanos(),
            _ => {}
        }
    }

    /// Returns whether the window closes at `now`.
    ///
    /// `overdue` is the number of requests that are past `slow` without an answer.
    pub fn is_over(&self, overdue: u64, now: Moment) -> bool {
        let age = now.since(self.since);
        age >= MAX_SPAN || (age >= MIN_SPAN && self.answers + overdue >= MIN_ANSWERS)
    }
}
