use std::time::Duration;

use ::metrics::{
    Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

use super::atomic_histogram::{AtomicHistogram, Counts};
use super::tally::Tally;

const SHARED_REQUESTS: &str = "drip_shared_requests_total";
const SHARED_WAITING: &str = "drip_shared_waiting";
const SHARED_WAIT: &str = "drip_shared_wait_seconds";

/// Registers the help texts.
pub(super) fn describe() {
    describe_counter!(
        SHARED_REQUESTS,
        "Requests of routes that collapse, and fetches behind stale answers, by where the answer came from."
    );
    describe_gauge!(
        SHARED_WAITING,
        "Requests that wait for the answer of another one now."
    );
    describe_histogram!(
        SHARED_WAIT,
        Unit::Seconds,
        "Time that requests waited for the answer of another one."
    );
}

/// Where the answer to a request of a route that collapses came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedOutcome {
    /// From the origin, for this one alone.
    #[default]
    Alone,
    /// From the origin, for this one and those that waited for it.
    Leader,
    /// From the exchange of another request.
    Follower,
    /// From memory.
    Kept,
    /// From memory, although it was stale.
    Stale,
    /// From the origin, behind a stale answer. No client waits for it.
    Refresh,
}

impl SharedOutcome {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Alone,
        Self::Leader,
        Self::Follower,
        Self::Kept,
        Self::Stale,
        Self::Refresh,
    ];

    /// The value of the label `outcome`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Leader => "leader",
            Self::Follower => "follower",
            Self::Kept => "kept",
            Self::Stale => "stale",
            Self::Refresh => "refresh",
        }
    }

    /// Whether others may wait for the answer.
    #[must_use]
    pub fn is_led(self) -> bool {
        matches!(self, Self::Leader | Self::Refresh)
    }

    /// Whether it is the outcome of a client's request.
    #[must_use]
    pub fn is_asked(self) -> bool {
        self != Self::Refresh
    }

    /// Whether the origin had a request for it.
    #[must_use]
    pub fn is_sent(self) -> bool {
        matches!(self, Self::Alone | Self::Leader | Self::Refresh)
    }
}

/// Metrics of the requests of an origin whose routes collapse.
#[derive(Debug)]
pub struct CollapseMetrics {
    requests: [Tally; SharedOutcome::ALL.len()],
    waiting: Gauge,
    wait: Histogram,
    /// The same waits as in `wait`, for readers that need their quantiles each second.
    waits: AtomicHistogram,
}

/// A request that waits for the answer of another one, counted until this is dropped.
#[derive(Debug)]
pub struct SharedWait<'a>(&'a CollapseMetrics);

impl Drop for SharedWait<'_> {
    fn drop(&mut self) {
        self.0.waiting.decrement(1.0);
    }
}

impl CollapseMetrics {
    /// The metrics of `origin`; each call returns the same series.
    #[must_use]
    pub fn of(origin: &str) -> Self {
        let origin = origin.to_owned();
        Self {
            requests: SharedOutcome::ALL.map(|outcome| {
                let outcome = outcome.label().to_owned();
                let labels = [("origin", origin.clone()), ("outcome", outcome)];
                Tally::into_series(counter!(SHARED_REQUESTS, &labels))
            }),
            waiting: gauge!(SHARED_WAITING, "origin" => origin.clone()),
            wait: histogram!(SHARED_WAIT, "origin" => origin),
            waits: AtomicHistogram::default(),
        }
    }

    /// Counts a request.
    pub fn count(&self, outcome: SharedOutcome) {
        self.requests[outcome as usize].add(1);
    }

    /// How many requests had this outcome.
    #[must_use]
    pub fn counted(&self, outcome: SharedOutcome) -> u64 {
        self.requests[outcome as usize].get()
    }

    /// Counts a request that waits for the answer of another one.
    #[must_use]
    pub fn wait(&self) -> SharedWait<'_> {
        self.waiting.increment(1.0);
        SharedWait(self)
    }

    /// Records how long a request waited for the answer of another one.
    pub fn waited(&self, span: Duration) {
        self.wait.record(span);
        self.waits.record(span);
    }

    /// The waits recorded so far.
    #[must_use]
    pub fn waits(&self) -> Counts {
        self.waits.counts()
    }

    /// Reports the counts to Prometheus.
    pub fn show(&self) {
        self.requests.iter().for_each(Tally::show);
    }
}

/// Reports the last counts, so that they are not lost.
impl Drop for CollapseMetrics {
    fn drop(&mut self) {
        self.show();
    }
}
