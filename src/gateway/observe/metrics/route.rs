use std::sync::OnceLock;
use std::time::Duration;

use ::metrics::{Histogram, counter, histogram};

use super::atomic_histogram::{AtomicHistogram, Counts};
use super::tally::Tally;
use super::{REFUSED, REQUEST_SECONDS, REQUESTS};

/// Metrics of one route.
#[derive(Debug)]
pub struct RouteMetrics {
    route: String,
    /// Counters by status code, each created when its code is first seen.
    codes: Box<[OnceLock<Box<Tally>>]>,
    /// Created when the first request is refused.
    refused: OnceLock<Tally>,
    seconds: Histogram,
    /// The same durations as in `seconds`, for readers that need their quantiles each second.
    latencies: AtomicHistogram,
}

impl RouteMetrics {
    const FIRST: u16 = 100;
    const LAST: u16 = 599;

    /// The metrics of the route called `route`.
    #[must_use]
    pub fn of(route: &str) -> Self {
        let codes = (Self::FIRST..=Self::LAST)
            .map(|_| OnceLock::new())
            .collect();
        let seconds = histogram!(REQUEST_SECONDS, "route" => route.to_owned());
        Self {
            route: route.to_owned(),
            codes,
            refused: OnceLock::new(),
            seconds,
            latencies: AtomicHistogram::default(),
        }
    }

    /// Counts a response by its status.
    ///
    /// An origin's status above 599 counts as 599, so that the label has few values.
    pub fn count(&self, status: u16, duration: Duration) {
        let status = status.clamp(Self::FIRST, Self::LAST);
        let tally = || {
            let (route, code) = (self.route.clone(), status.to_string());
            let series = counter!(REQUESTS, "route" => route, "code" => code);
            Box::new(Tally::into_series(series))
        };
        if let Some(code) = self.codes.get(usize::from(status - Self::FIRST)) {
            code.get_or_init(tally).add(1);
        }
        self.seconds.record(duration);
        self.latencies.record(duration);
    }

    /// Counts a request whose client may not come.
    pub fn count_refused(&self) {
        let tally = || Tally::into_series(counter!(REFUSED, "route" => self.route.clone()));
        self.refused.get_or_init(tally).add(1);
    }

    /// The statuses of its responses so far, each with its number.
    pub fn statuses(&self) -> impl Iterator<Item = (u16, u64)> {
        let codes = (Self::FIRST..=Self::LAST).zip(&self.codes);
        codes.filter_map(|(status, tally)| Some((status, tally.get()?.get())))
    }

    /// The durations counted so far.
    #[must_use]
    pub fn latencies(&self) -> Counts {
        self.latencies.counts()
    }

    /// Tells Prometheus of what was counted.
    pub fn show(&self) {
        let seen = self.codes.iter().filter_map(OnceLock::get);
        seen.for_each(|tally| tally.show());
        if let Some(refused) = self.refused.get() {
            refused.show();
        }
    }
}

/// What was counted last is not lost.
impl Drop for RouteMetrics {
    fn drop(&mut self) {
        self.show();
    }
}
