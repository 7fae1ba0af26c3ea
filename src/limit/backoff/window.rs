use std::time::Duration;

use super::Answer;
use super::tally::Tally;
use crate::Moment;

const MIN_SPAN: Duration = Duration::from_secs(1);
const MAX_SPAN: Duration = Duration::from_secs(10);

/// A window shorter than [`MAX_SPAN`] has at least so many answers.
const ENOUGH: u64 = 10;

/// What an origin answered in a span of time.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub since: Moment,
    /// Answers to requests sent after the last cut. So are the next six.
    pub answers: u64,
    /// Those that are trouble.
    pub trouble: u64,
    /// The answers by the keys of their requests.
    pub by_key: Tally,
    /// Those that are slow.
    pub slow: u64,
    /// The nanoseconds that the answers took which are neither.
    pub good_nanos: u128,
    /// The nanoseconds that all answers without trouble took.
    pub nanos: u128,
    /// The smallest Retry-After of troubled answers.
    pub retry_after: Duration,
    /// Answers without trouble, also to requests sent before the last cut.
    pub completions: u64,
    /// What these cost.
    pub cost: u64,
}

/// A window that has closed, and what is at the origin then.
#[derive(Debug)]
pub(super) struct Closed {
    pub window: Window,
    pub at: Moment,
    /// Requests sent after the last cut that are past `slow` and have no answer.
    pub overdue: u64,
    /// All requests without an answer that the origin has as far as they have come.
    pub unanswered: u64,
    /// Requests whose answer has begun and not ended, that became a WebSocket, or whose client still
    /// has to send a part of them.
    pub answering: u64,
    /// The generation of the requests sent after the last cut.
    pub generation: u64,
}

impl Closed {
    /// How long it was open, in nanoseconds.
    pub fn span(&self) -> u128 {
        self.at.since(self.window.since).as_nanos().max(1)
    }
}

impl Window {
    pub fn new(since: Moment) -> Self {
        Self {
            since,
            retry_after: Duration::MAX,
            ..Self::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.answers == 0 && self.completions == 0
    }

    /// How long the answers without trouble took, on average; `None` without any.
    pub fn mean(&self) -> Option<Duration> {
        let answers = u128::from(self.answers - self.trouble);
        let mean = self.nanos.checked_div(answers)?;
        u64::try_from(mean).ok().map(Duration::from_nanos)
    }

    /// Counts an answer without trouble, whenever its request was sent.
    pub fn complete(&mut self, answer: &Answer) {
        self.completions += 1;
        self.cost += u64::from(answer.cost);
    }

    /// Counts the answer to a request sent after the last cut.
    ///
    /// `key`: that of its request.
    pub fn add(
        &mut self,
        key: Option<u64>,
        answer: &Answer,
        took: Duration,
        slow: Option<Duration>,
    ) {
        let by_key = self.by_key.of(key);
        by_key.answers += 1;
        by_key.trouble += u64::from(answer.trouble);
        self.answers += 1;
        self.trouble += u64::from(answer.trouble);
        if !answer.trouble {
            self.nanos += took.as_nanos();
        }
        if let Some(span) = answer.retry_after.filter(|_| answer.trouble) {
            by_key.retries += 1;
            self.retry_after = self.retry_after.min(span);
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

    /// Whether it closes at `now`, with so many requests past `slow` that have no answer yet.
    pub fn is_over(&self, overdue: u64, now: Moment) -> bool {
        let age = now.since(self.since);
        age >= MAX_SPAN || (age >= MIN_SPAN && self.answers + overdue >= ENOUGH)
    }
}
