//! Cost of a request: computed before it is sent, and corrected by its response.
//!
//! The cost is the number of requests that a zone or a gate charges for this one. It is fixed, or
//! comes from the request, its response, or learned times (`learned_cost` measures them).

use config::CostRule;
use limit::Cost;

use super::request_info::RequestInfo;
use crate::http::gateway::RouteCosts;
use crate::http::message::{BodyLength, ResponseHead};
use crate::zone::UsedAdmission;

/// Returns the cost of a request before its response is known.
///
/// `learned`: costs learned for the route, if the route learns them.
pub(super) fn estimate(
    rule: &CostRule,
    info: &RequestInfo<'_>,
    learned: Option<&RouteCosts>,
) -> Cost {
    match rule {
        CostRule::Fixed(cost) => *cost,
        CostRule::Header(rule) => {
            let reported = info.named(&rule.header).next();
            // Any other client could choose its own cost.
            let reported = reported.filter(|_| info.client.via_proxy);
            let cost = reported.and_then(|value| CostRule::parse(value, rule.max));
            cost.unwrap_or(rule.default)
        }
        CostRule::BodyPer(rule) => match info.head.length() {
            BodyLength::None | BodyLength::UntilClose => Cost::ONE,
            BodyLength::Length(length) => {
                let cost = u32::try_from(length / rule.body_per.get() + 1).ok();
                cost.and_then(Cost::new).unwrap_or(rule.max).min(rule.max)
            }
            BodyLength::Chunked => rule.max,
        },
        CostRule::Response(rule) => rule.estimate,
        CostRule::Learned(_) => {
            learned.map_or(Cost::ONE, |costs| costs.charged(info.head.method()))
        }
    }
}

/// Returns the cost that the response reports; `None` if it reports none.
pub(super) fn reported_by(rule: &CostRule, answer: &ResponseHead<'_>) -> Option<Cost> {
    let CostRule::Response(rule) = rule else {
        return None;
    };
    let value = answer.fields().named(&rule.response_header).next()?;
    CostRule::parse(value, rule.max)
}

/// Returns whether a response field reports the cost. This field is not forwarded to the client.
pub(super) fn is_cost_field(rule: &CostRule, name: &[u8]) -> bool {
    matches!(rule, CostRule::Response(rule) if name.eq_ignore_ascii_case(rule.response_header.as_bytes()))
}

/// Charges of a request that its response may still change.
#[derive(Default)]
pub(super) struct UsedAdmissions<'r>(pub(super) Vec<UsedAdmission<'r>>);

impl UsedAdmissions<'_> {
    /// Refunds all charges.
    pub(super) fn refund(&mut self) {
        self.0.drain(..).for_each(UsedAdmission::refund);
    }

    /// Changes all charges to the actual cost of the request.
    pub(super) fn settle(&mut self, cost: Cost) {
        self.0.drain(..).for_each(|it| it.settle(cost));
    }
}
