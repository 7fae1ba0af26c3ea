use std::time::Duration;

use ::metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::atomic_histogram::{AtomicHistogram, Counts};
use super::{STORE_OPERATIONS, STORE_SECONDS, STORE_UP};

/// Result of an operation in the store that gateways share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreResult {
    /// The store did it.
    Ok,
    /// No response arrived in time.
    Late,
    /// There was no connection, or it broke.
    Unreachable,
    /// The store refused it.
    Refused,
    /// It was not tried, because the store was out.
    Skipped,
    /// It was not needed: a lease decided.
    Leased,
}

impl StoreResult {
    /// All results.
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::Late,
        Self::Unreachable,
        Self::Refused,
        Self::Skipped,
        Self::Leased,
    ];

    /// The value of the label `result`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Late => "late",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::Skipped => "skipped",
            Self::Leased => "leased",
        }
    }
}

/// Counts of the claims of an origin's gate, by result.
#[derive(Debug)]
pub struct ClaimMetrics([(StoreResult, Counter); 4]);

impl ClaimMetrics {
    /// The counts of the gate of `origin`. The series exist once this is called.
    #[must_use]
    pub fn of(origin: &str) -> Self {
        use StoreResult::{Late, Ok, Refused, Unreachable};
        Self([Ok, Late, Unreachable, Refused].map(|result| {
            let labels = [
                ("origin", origin.to_owned()),
                ("result", result.label().to_owned()),
            ];
            let claims = counter!(STORE_OPERATIONS, &labels);
            claims.increment(0);
            (result, claims)
        }))
    }

    /// Counts a claim that was sent.
    pub fn count(&self, result: StoreResult) {
        let claims = self.0.iter().find(|(counted, _)| *counted == result);
        if let Some((_, claims)) = claims {
            claims.increment(1);
        }
    }
}

/// Metrics of the store as a whole.
#[derive(Debug)]
pub struct StoreMetrics {
    up: Gauge,
    seconds: Histogram,
    /// The same times as in `seconds`, for readers that need their quantiles each second.
    latencies: AtomicHistogram,
}

impl StoreMetrics {
    /// The metrics of the store that this process uses.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self {
            up: gauge!(STORE_UP),
            seconds: histogram!(STORE_SECONDS),
            latencies: AtomicHistogram::default(),
        }
    }

    /// Reports whether the store is in use, or out.
    pub fn show_up(&self, up: bool) {
        self.up.set(if up { 1.0 } else { 0.0 });
    }

    /// Records the time of a round trip, whatever its result.
    pub fn asked(&self, span: Duration) {
        self.seconds.record(span);
        self.latencies.record(span);
    }

    /// The times of the round trips so far.
    #[must_use]
    pub fn latencies(&self) -> Counts {
        self.latencies.counts()
    }
}
