//! Counts of requests, kept by the clients and the origin of the demo.
//!
//! The scene `fair` uses only the requests that reached the origin. A tenth is a tenth of a second.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use limit::Moment;

#[cfg(test)]
mod tests;

/// Duration that one bar of a picture represents.
pub(super) const TENTH: Duration = Duration::from_millis(100);

/// Number of tenths in a second, and so of bars in a line.
pub(super) const TENTHS: usize = 10;

/// Counts that the clients and the origin update from their own threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(Arc<Mutex<Counts>>);

impl Tally {
    /// Reads or changes the counts.
    pub(super) fn with<T>(&self, count: impl FnOnce(&mut Counts) -> T) -> T {
        // A panic elsewhere cannot leave these numbers half changed, so a poisoned lock is safe to
        // use.
        count(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts of the current second and of the whole run, with what is needed to keep them.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Counts of the current second.
    now: Second,
    /// Sums of the seconds that have ended.
    pub(super) total: Second,
    /// Requests sent and not answered yet.
    pub(super) in_flight: usize,
    /// Requests sent that have not reached the origin yet.
    waiting: usize,
    /// Start of the second of [`Counts::now`].
    began: Moment,
    /// Interval between two departures at the configured rate.
    interval: Duration,
    /// Instant of the last departure, if another request was waiting then.
    last_departure: Option<Moment>,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The origin answered.
    Answered,
    /// The gateway rejected it.
    Rejected,
    /// The request got another answer, or none.
    Failed,
}

/// The counts of one second, or the sums of several seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Second {
    /// Requests that the clients sent, in each tenth.
    pub(super) sent: [u32; TENTHS],
    /// Requests that reached the origin, in each tenth.
    pub(super) reached: [u32; TENTHS],
    pub(super) rejected: u32,
    /// Requests that got neither the origin's answer nor a rejection.
    pub(super) failed: u32,
    /// Requests waiting at the end of the second.
    pub(super) waiting: usize,
    pub(super) gaps: Gaps,
}

impl Second {
    /// Adds the next second.
    fn add(&mut self, next: &Self) {
        for tenth in 0..TENTHS {
            self.sent[tenth] += next.sent[tenth];
            self.reached[tenth] += next.reached[tenth];
        }
        self.rejected += next.rejected;
        self.failed += next.failed;
        self.waiting = next.waiting;
        self.gaps.merge(next.gaps);
    }
}

/// The gaps between departures while a request was waiting, compared with the configured interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gaps {
    /// Number of gaps.
    count: f64,
    /// Sum of the gaps, in seconds.
    seconds: f64,
    /// Sum of the squared deviations from the interval, in seconds squared.
    squares: f64,
}

impl Gaps {
    fn add(&mut self, gap: Duration, expected: Duration) {
        self.count += 1.0;
        self.seconds += gap.as_secs_f64();
        self.squares += (gap.as_secs_f64() - expected.as_secs_f64()).powi(2);
    }

    fn merge(&mut self, more: Self) {
        self.count += more.count;
        self.seconds += more.seconds;
        self.squares += more.squares;
    }

    /// Returns the mean gap, and the root mean square of the deviations from the interval.
    ///
    /// Both are in seconds. `None` without gaps.
    pub(super) fn evenness(self) -> Option<(f64, f64)> {
        let (mean, variance) = (self.seconds / self.count, self.squares / self.count);
        (self.count > 0.0).then(|| (mean, variance.sqrt()))
    }
}

impl Counts {
    /// Records that the clients send a request, in this tenth of the second.
    pub(super) fn record_sent(&mut self, tenth: usize) {
        if let Some(count) = self.now.sent.get_mut(tenth) {
            *count += 1;
        }
        self.in_flight += 1;
        self.waiting += 1;
    }

    /// Records that a request reached the origin at `now`. `is_own`: a client of the demo sent it.
    pub(super) fn record_reached(&mut self, now: Moment, is_own: bool) {
        if is_own {
            self.waiting = self.waiting.saturating_sub(1);
        }
        let tenth = now.since(self.began).as_nanos() / TENTH.as_nanos();
        let tenth = usize::try_from(tenth).unwrap_or(usize::MAX).min(TENTHS - 1);
        self.now.reached[tenth] += 1;
        if let Some(last) = self.last_departure {
            self.now.gaps.add(now.since(last), self.interval);
        }
        self.last_departure = (self.waiting > 0).then_some(now);
    }

    /// Records the end of a request.
    pub(super) fn record_end(&mut self, outcome: Outcome) {
        self.now.rejected += u32::from(outcome == Outcome::Rejected);
        self.now.failed += u32::from(outcome == Outcome::Failed);
        if outcome != Outcome::Answered {
            self.waiting = self.waiting.saturating_sub(1);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.in_flight == 0 {
            // A request that fails after it reached the origin was subtracted twice. Without
            // requests in flight, the right number is known.
            self.waiting = 0;
        }
    }

    /// Sets the interval of a new rate.
    ///
    /// The gap in which the rate changes belongs to neither rate, so it is not counted. The gaps
    /// collected so far move to the total, so that a second shows the gaps of one rate only.
    pub(super) fn retune(&mut self, interval: Duration) {
        self.total.gaps.merge(std::mem::take(&mut self.now.gaps));
        self.interval = interval;
        self.last_departure = None;
    }

    /// Ends the current second, and begins the next at `began`.
    pub(super) fn next_second(&mut self, began: Moment) -> Second {
        self.began = began;
        let ended = Second {
            waiting: self.waiting,
            ..std::mem::take(&mut self.now)
        };
        self.total.add(&ended);
        ended
    }
}
