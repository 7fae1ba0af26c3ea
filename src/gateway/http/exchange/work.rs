//! What a request took its origin, where that is what it costs.

use super::forward::Forward;
use crate::http::message::{FieldName, ResponseHead};
use crate::origin::InFlight;

/// Types of bodies that have no end, or one that no work leads to.
const STREAMS: [&[u8]; 2] = [b"text/event-stream", b"multipart/x-mixed-replace"];

impl Forward<'_, '_> {
    /// Whether a request counts only until the head of its answer: it opens a tunnel or a stream.
    pub(super) fn counts_to_head(&self, head: &ResponseHead<'_>) -> bool {
        let is_stream = |value: &[u8]| {
            let media = value.split(|byte| *byte == b';').next().unwrap_or(value);
            let media = media.trim_ascii();
            STREAMS.iter().any(|it| media.eq_ignore_ascii_case(it))
        };
        let mut types = head.fields().all(FieldName::ContentType);
        head.status == 101 || self.is_call || types.any(is_stream)
    }

    /// The origin has done what it had to do for the request: it is charged that, and the next ones
    /// are charged what was learned from it.
    ///
    /// `is_answered`: whether the origin answered. Only once, and only where costs are learned.
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
        if load.is_lowered || self.time.is_stopped() {
            // The back-off slows down already what is slow. And what the origin would do with all of the
            // request, nobody knows.
            return;
        }
        // What fails, or is refused, is done sooner or later than what the origin does usually.
        if is_answered && self.record.status() < 500 && self.record.status() != 429 {
            costs.learn(method, took, load.is_quiet);
        }
        let cost = costs.of_time(took);
        if !costs.rule().is_shadow && self.record.settle_work(cost, &mut self.used) {
            in_flight.settle(cost);
        }
    }
}
