use std::time::Duration;

use ::metrics::{Gauge, Histogram, gauge, histogram};

use super::{STORE_SECONDS, STORE_UP};

/// What came of an operation in the store that gateways share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreResult {
    /// It was done.
    Ok,
    /// No answer came in time.
    Late,
    /// There was no connection, or it broke.
    Unreachable,
    /// The store did not do it.
    Refused,
    /// It was not tried, as the store was out.
    Skipped,
}

impl StoreResult {
    pub(super) const ALL: [Self; 5] = [
        Self::Ok,
        Self::Late,
        Self::Unreachable,
        Self::Refused,
        Self::Skipped,
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
        }
    }
}

/// What is measured of the store as a whole.
#[derive(Debug)]
pub struct StoreMetrics {
    up: Gauge,
    seconds: Histogram,
}

impl StoreMetrics {
    /// Of the store that this process asks.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self {
            up: gauge!(STORE_UP),
            seconds: histogram!(STORE_SECONDS),
        }
    }

    /// Shows whether the store is asked, or out.
    pub fn show_up(&self, up: bool) {
        self.up.set(if up { 1.0 } else { 0.0 });
    }

    /// Measures a round trip, whatever came of it.
    pub fn asked(&self, span: Duration) {
        self.seconds.record(span);
    }
}
