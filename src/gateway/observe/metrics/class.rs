use ::metrics::counter;

use super::tally::Tally;

pub(super) const ORIGIN_CLASS_REQUESTS: &str = "drip_origin_class_requests_total";

/// Metrics of one class of traffic at an origin's gate.
#[derive(Debug)]
pub struct ClassMetrics {
    requests: Tally,
}

impl ClassMetrics {
    /// The metrics of the class called `class` at the gate of `origin`.
    pub(super) fn of(origin: &str, class: &str) -> Self {
        let labels = [("origin", origin.to_owned()), ("class", class.to_owned())];
        Self {
            requests: Tally::into_series(counter!(ORIGIN_CLASS_REQUESTS, &labels)),
        }
    }

    /// Counts a request that passed the gate.
    pub fn count(&self) {
        self.requests.add(1);
    }

    /// Reports the count to Prometheus.
    pub(super) fn show(&self) {
        self.requests.show();
    }
}

/// Reports the last count, so that it is not lost.
impl Drop for ClassMetrics {
    fn drop(&mut self) {
        self.show();
    }
}
