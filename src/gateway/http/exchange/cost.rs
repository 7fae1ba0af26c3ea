//! What a request counts for, and what its answer makes of that.

use config::CostRule;
use limit::Cost;

use super::request_info::RequestInfo;
use crate::http::gateway::RouteCosts;
use crate::http::message::{BodyLength, ResponseHead};
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
