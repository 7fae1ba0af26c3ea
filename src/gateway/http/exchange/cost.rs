//! What a request counts for, and what its answer makes of that.

use config::CostRule;
use limit::Cost;

use super::forward::Forward;
use super::request_info::RequestInfo;
use crate::http::gateway::RouteCosts;
use crate::http::message::{BodyLength, FieldName, ResponseHead};
use crate::origin::InFlight;
use crate::zone::UsedTurn;

/// What a request of a route counts for before its answer is there.
///
/// `learned`: what was learned of the route, if its costs are.
pub(super) fn before(
    rule: &CostRule,
    info: &RequestInfo<'_>,
    learned: Option<&RouteCosts>,
) -> Cost {
    match rule {
        CostRule::Fixed(cost) => *cost,
        CostRule::Header(of) => {
            let told = info.named(&of.header).next();
            let told = told.filter(|_| info.client.trusted);
            told.and_then(|value| CostRule::parse(value, of.max))
                .unwrap_or(of.default)
        }
        CostRule::BodyPer(of) => match info.head.length() {
            BodyLength::None | BodyLength::UntilClose => Cost::ONE,
            BodyLength::Length(length) => {
                let cost = u32::try_from(length / of.body_per.get() + 1).ok();
                cost.and_then(Cost::new).unwrap_or(of.max).min(of.max)
            }
            BodyLength::Chunked => of.max,
        },
        CostRule::Response(of) => of.estimate,
        CostRule::Learned(_) => {
            learned.map_or(Cost::ONE, |costs| costs.charged(info.head.method()))
        }
    }
}

/// What a request turned out to cost; `None` if its answer does not tell.
pub(super) fn billed(rule: &CostRule, answer: &ResponseHead<'_>) -> Option<Cost> {
    let CostRule::Response(of) = rule else {
        return None;
    };
    let value = answer.fields().named(&of.response_header).next()?;
    CostRule::parse(value, of.max)
}

/// Whether a field of an answer tells its cost. The client does not get it.
pub(super) fn is_told_by(rule: &CostRule, name: &[u8]) -> bool {
    matches!(rule, CostRule::Response(of) if name.eq_ignore_ascii_case(of.response_header.as_bytes()))
}

/// The turns that a request has used, as long as its answer may change what they cost.
#[derive(Debug, Default)]
pub(super) struct UsedTurns<'r>(pub(super) Vec<UsedTurn<'r>>);

impl UsedTurns<'_> {
    /// Gives all charges back.
    pub(super) fn refund(&mut self) {
        self.0.drain(..).for_each(UsedTurn::refund);
    }

    /// Changes what was charged to what the request turned out to cost.
    pub(super) fn settle(&mut self, cost: Cost) {
        self.0.drain(..).for_each(|turn| turn.settle(cost));
    }
}

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
