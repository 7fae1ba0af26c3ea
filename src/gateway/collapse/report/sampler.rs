//! Samples of shared responses: their counts in the last second.

use super::sample::{SharedAnswers, SharedSample};
use super::{answers, shared_status};
use crate::http::gateway::Gateway;
use crate::observe::metrics::{CollapseMetrics, Counts};
use crate::status::counts::{Labelled, counted};
use crate::status::growth::Before;
use crate::status::timestamp::seconds;

/// Counts of shared responses one second ago.
#[derive(Default)]
pub(crate) struct Shared {
    /// Requests by the source of their response, and waits, by origin.
    origins: Before<String, (Labelled, Counts)>,
    /// Number of evicted responses of all routes.
    evicted: u64,
}

impl Shared {
    /// Begins a new second.
    pub(crate) fn begin(&mut self) {
        self.origins.begin();
    }

    /// Sample of the requests of an origin's routes with `collapse`.
    pub(crate) fn sample(&mut self, origin: &str, metrics: &CollapseMetrics) -> SharedSample {
        let now = (counted(metrics.requests.each()), metrics.waits.counts());
        let (requests, waits) = self.origins.since(origin.to_owned(), now);
        SharedSample {
            shared: shared_status(requests),
            wait_p50: waits.quantile(0.5).map(seconds),
            wait_p99: waits.quantile(0.99).map(seconds),
        }
    }

    /// Memory of the responses of all routes.
    pub(crate) fn answers(&mut self, gateway: &Gateway) -> Option<SharedAnswers> {
        let mut now = answers(gateway)?;
        let before = std::mem::replace(&mut self.evicted, now.evicted);
        now.evicted = now.evicted.saturating_sub(before);
        Some(now)
    }
}
