//! Where the answer to a request comes from, on a route that collapses.

use super::RequestRecord;
use crate::observe::metrics::SharedOutcome;

impl RequestRecord<'_> {
    /// Counts the request at its origin, and notes where its answer comes from.
    pub(in crate::http::exchange) fn count_shared(
        &mut self,
        outcome: SharedOutcome,
        origin: usize,
    ) {
        self.shared = outcome;
        if let Some(metrics) = self.gateway.collapse_metrics(origin) {
            metrics.requests.add(outcome, 1);
        }
    }

    /// Records that the answer of the origin is for this request alone.
    pub(in crate::http::exchange) fn share_no_more(&mut self) {
        if self.shared == SharedOutcome::Leader {
            self.shared = SharedOutcome::Alone;
        }
    }
}
