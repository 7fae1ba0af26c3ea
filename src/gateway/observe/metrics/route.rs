//! Metrics of a route.

use std::sync::OnceLock;
use std::time::Duration;

use super::count::Count;
use super::durations::Durations;

/// Metrics of one route.
pub struct RouteMetrics {
    /// Counts by status code, each created when its code is first seen.
    codes: Box<[OnceLock<Box<Count>>]>,
    /// Requests of clients that the route refuses.
    pub refused: Count,
    /// Durations from the head of a request to the last byte of the response.
    pub durations: Durations,
}

impl Default for RouteMetrics {
    fn default() -> Self {
        let codes = Self::FIRST..=Self::LAST;
        Self {
            codes: codes.map(|_| OnceLock::new()).collect(),
            refused: Count::default(),
            durations: Durations::default(),
        }
    }
}

impl RouteMetrics {
    /// First status with a count.
    const FIRST: u16 = 100;
    /// Last status with a count.
    const LAST: u16 = 599;

    /// Counts a response by its status.
    ///
    /// An origin's status above 599 counts as 599, so that the label has few values.
    pub fn count(&self, status: u16, duration: Duration) {
        let status = status.clamp(Self::FIRST, Self::LAST);
        if let Some(code) = self.codes.get(usize::from(status - Self::FIRST)) {
            code.get_or_init(Box::default).add(1);
        }
        self.durations.record(duration);
    }

    /// Returns the statuses of the responses so far, each with the number of responses.
    pub fn statuses(&self) -> impl Iterator<Item = (u16, u64)> {
        let codes = (Self::FIRST..=Self::LAST).zip(&self.codes);
        codes.filter_map(|(status, count)| Some((status, count.get()?.get())))
    }
}
