//! Learned costs of one request: measures the time at the origin, and charges the request by it.
//!
//! The *work* of a request is the time that the origin takes for it. `cost` has the other kinds of
//! costs; `http::gateway::learned_costs` has the learned times.

use super::forward::Forward;
use crate::collapse::is_stream;
use crate::http::message::{FieldName, ResponseHead};
use crate::origin::InFlight;

impl Forward<'_, '_> {
    /// Returns whether only the time to the head counts as work: for a tunnel or a stream.
    pub(super) fn counts_only_to_head(&self, head: &ResponseHead<'_>) -> bool {
        let mut types = head.fields().all(FieldName::ContentType);
        head.status == 101 || self.is_grpc_call || types.any(is_stream)
    }

    /// Measures the origin's work, corrects the charge by it, and learns from it.
    ///
    /// `is_answered`: whether the origin answered. Does nothing if costs are not learned, or if it
    /// was called before.
    pub(super) fn end_work(&mut self, in_flight: &InFlight<'_>, is_answered: bool) {
        if self.route.cost.learned().is_none() || self.has_ended_work {
            return;
        }
        self.has_ended_work = true;
        let route = self.record.route;
        let Some(costs) = route.and_then(|route| self.record.gateway.learned_costs(route)) else {
            return;
        };
        let took = self.origin_took(self.record.now());
        let method = self.record.info.head.method();
        costs.count(method, took);
        let load = in_flight.load();
        if load.is_lowered || self.origin_time.is_stopped() {
            // The back-off already lowers the limits of a slow origin. If the stopwatch stands
            // still for a slow client, the total work of the request is unknown.
            return;
        }
        // Failed and rejected requests are no example of the usual time.
        if is_answered && self.record.status < 500 && self.record.status != 429 {
            costs.learn(method, took, load.is_quiet);
        }
        let cost = costs.cost_of_time(took);
        if !costs.rule().is_shadow && self.record.settle_work(cost, &mut self.used) {
            in_flight.settle(cost);
        }
    }
}
