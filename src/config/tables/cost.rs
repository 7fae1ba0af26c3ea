//! `cost` of a route: what one of its requests counts for in a limit.
//!
//! A request of cost 3 is charged like three requests. The field is a number or one of four tables,
//! which have different fields. In `table!`, an entry is a field of the file: its type, its reader
//! with the default, when a change takes effect, and its meaning (see `table_settings`, and `kinds`
//! for readers).

use std::num::NonZeroU64;
use std::time::Duration;

use limit::{Cost, Rate};

use super::limit::Zones;
use super::prelude::*;
use crate::{BackoffMode, Origin, Plan, RouteLimit, Settings};

/// Form of `cost`.
pub(super) const FORM: Form = Form::OneOf(&[
    NUMBER.form,
    Form::Table(HeaderCost::TABLE),
    Form::Table(BodyCost::TABLE),
    Form::Table(ResponseCost::TABLE),
    Form::Table(LearnedCost::TABLE),
]);

/// Whole number in the range of costs.
const NUMBER: Kind<u32> = whole::<_, 1, { Cost::MAX as u64 }>();
/// A cost.
const COST: Kind<Cost> = Kind {
    form: NUMBER.form,
    read: |node| (NUMBER.read)(node).and_then(Cost::new),
    show: show_bare,
};
/// Field `max`: the highest cost of a request.
const MAX: TypedField<Cost> = COST.required("20");

/// Name of a header field, in lowercase.
const NAME: Kind<String> = Kind {
    form: HEADER_NAME_FORM,
    read: |node| {
        let what = "the name of a header field such as \"x-cost\"";
        values::text_if(node, what, values::is_token).map(str::to_ascii_lowercase)
    },
    show: show_text,
};

table! {
    /// Cost from a request field. The field counts only if a trusted proxy sent it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HeaderCost {
        header: String = NAME.required("\"x-cost\""), NextRequest,
            "What this field says, if a trusted proxy sends it.";
        default: Cost = COST.with_default("1"), NextRequest, "What counts otherwise.";
        max: Cost = MAX, NextRequest, "What counts for any higher number.";
    }
}

table! {
    /// Cost by body size: 1, plus 1 for each whole piece of the request's body.
    ///
    /// A body of unknown length costs the maximum.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BodyCost {
        body_per: NonZeroU64 = SIZE_ABOVE_ZERO.required("\"64KB\""), NextRequest,
            "One, and one more for each whole piece of this size.";
        max: Cost = MAX, NextRequest, "What counts for any longer body.";
    }
}

table! {
    /// Cost from a response field. The field is removed from the response.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ResponseCost {
        response_header: String = NAME.required("\"x-cost\""), NextRequest,
            "What this field of the response says.";
        estimate: Cost = COST.with_default("1"), NextRequest, "What counts until then.";
        max: Cost = MAX, NextRequest, "What counts for any higher number.";
    }
}

table! {
    /// Cost that is learned from earlier requests.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LearnedCost {
        learn: Measure = word().required("\"time\""), NextRequest,
            "\"time\": the time that earlier requests of the route and the method took the origin.";
        unit: Duration = duration::<100_000, { 60 * SECOND }>().required("\"10ms\""), NextRequest,
            "How much of that costs 1.";
        max: Cost = COST.required("20"), NextRequest, "What counts for any longer time.";
        /// Whether a request is charged 1, and the learned cost is only shown.
        is_shadow: bool = MODE.with_default("\"on\"").named("mode"), NextRequest,
            "\"shadow\": learn and show, but charge 1.";
    }
}

words! {
    /// Quantity that a cost is learned from.
    pub enum Measure {
        /// Time at the origin.
        Time = "time",
    }
}

/// `mode` of a learned cost: `true` for `"shadow"`.
const MODE: Kind<bool> = Kind {
    form: word::<BackoffMode>().form,
    read: |node| Some((word::<BackoffMode>().read)(node)? == BackoffMode::Shadow),
    show: |is_shadow| is_shadow.then(|| show_text("shadow"))?,
};

/// Rule for the cost of a route's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostRule {
    /// The same cost for each request.
    Fixed(Cost),
    /// Cost from a request field, if a trusted proxy sent it.
    Header(HeaderCost),
    /// Cost by the size of the request's body: 1, plus 1 per whole piece.
    BodyPer(BodyCost),
    /// Cost from a response field.
    Response(ResponseCost),
    /// Cost learned from the time at the origin of earlier requests with this route and method.
    Learned(LearnedCost),
}

impl CostRule {
    /// Returns the highest cost that a request can have.
    pub fn max(&self) -> Cost {
        match self {
            Self::Fixed(cost) => *cost,
            Self::Header(cost) => cost.max,
            Self::BodyPer(cost) => cost.max,
            Self::Response(cost) => cost.max,
            Self::Learned(learned) if learned.is_shadow => Cost::ONE,
            Self::Learned(learned) => learned.max,
        }
    }

    /// Returns whether each request costs 1.
    pub fn is_one(&self) -> bool {
        self.max() == Cost::ONE
    }

    /// Returns the cost of a request of which neither fields, body nor response are known.
    pub fn cost_if_unknown(&self) -> Cost {
        match self {
            Self::Fixed(cost) => *cost,
            Self::Header(cost) => cost.default,
            Self::BodyPer(_) | Self::Learned(_) => Cost::ONE,
            Self::Response(cost) => cost.estimate,
        }
    }

    /// Returns the parameters of a learned cost, if the cost is learned.
    pub fn learned(&self) -> Option<&LearnedCost> {
        match self {
            Self::Learned(learned) => Some(learned),
            _ => None,
        }
    }

    /// Reads the cost in a header field: a whole number from 1, capped at `max`.
    pub fn parse(value: &[u8], max: Cost) -> Option<Cost> {
        let value = value.trim_ascii();
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return None;
        }
        // A number with more digits than fit is capped.
        let number = str::from_utf8(value).ok()?.parse().unwrap_or(u32::MAX);
        (number > 0).then(|| Cost::new(number).unwrap_or(max).min(max))
    }
}

impl Default for CostRule {
    fn default() -> Self {
        Self::Fixed(Cost::ONE)
    }
}

/// Expected forms of `cost`, for messages.
const FORM_IN_WORDS: &str = "a whole number from 1 to 255, or a table with header, body_per, \
                    response_header or learn, such as { header = \"x-cost\", default = 1, max = 20 }";

/// Reads one form of the table. `None` if a field is wrong.
fn read_table<T: TableSettings>(node: Node) -> Option<T> {
    T::read_valid(Fields::begin(node, "cost".to_owned(), T::TABLE)?)
}

/// Reads a route's `cost`.
pub(super) fn read(node: Node) -> Option<CostRule> {
    if node.value.as_integer().is_some() {
        return (COST.read)(node).map(CostRule::Fixed);
    }
    if node.value.as_table().is_none() {
        return node.report_expected(FORM_IN_WORDS);
    }
    let forms = ["header", "body_per", "response_header", "learn"];
    let mut given = forms.into_iter().filter(|name| node.field(name).is_some());
    let rule = match (given.next(), given.next()) {
        (Some("header"), None) => read_table(node).map(CostRule::Header),
        (Some("body_per"), None) => read_table(node).map(CostRule::BodyPer),
        (Some("response_header"), None) => read_table(node).map(CostRule::Response),
        (Some("learn"), None) => read_table(node).map(CostRule::Learned),
        _ => {
            node.report_problem(&format!(
                "expected {FORM_IN_WORDS}; found a table with none or several of these"
            ));
            // Also reports wrong values of the fields that are costs in each form.
            for field in ["max", "default", "estimate"] {
                let _unused = node.field(field).and_then(COST.read);
            }
            return None;
        }
    };
    let above_max = match &rule {
        Some(CostRule::Header(cost)) if cost.default > cost.max => Some(("default", cost.max)),
        Some(CostRule::Response(cost)) if cost.estimate > cost.max => Some(("estimate", cost.max)),
        _ => None,
    };
    if let Some((name, max)) = above_max {
        node.report_problem(&format!(
            "{name} is above max, which is {max}; raise max, or lower it"
        ));
    }
    rule
}

/// Reports a cost that is learned for an origin without a bound on requests in flight.
pub(super) fn check_origin(node: Node, rule: &CostRule, origin: &Origin) {
    if rule.learned().is_some() && origin.permits().is_none() {
        let origin = &origin.name;
        node.report_problem(&format!(
            "a learned cost needs the number of requests that the origin works on at once; add max_in_flight to [origins.{origin}]"
        ));
    }
}

/// Reports a problem if a limit would always reject the costliest requests.
pub(super) fn check(node: Node, rule: &CostRule, limits: &[RouteLimit], zones: &Zones) {
    let max = rule.max();
    for RouteLimit { zone, limit } in limits {
        let Some(zone) = zones.get(*zone) else {
            continue;
        };
        // `for_plan`: text about the plan whose keys have this rate and burst.
        let check_burst = |rate: Rate, burst: u32, for_plan: String| {
            if !rate.is_unlimited() && max.above_one() > burst {
                let (name, most) = (&zone.name, u64::from(burst) + 1);
                // The burst of a token bucket includes the request itself.
                let raise = if zone.algorithm.has_windows() {
                    format!("raise the count of its rate to at least {max}")
                } else if zone.algorithm.queues() {
                    format!("raise its burst to at least {}", max.above_one())
                } else {
                    format!("raise its burst to at least {max}")
                };
                node.report_problem(&format!(
                    "a request of cost {max} would never pass the limit in zone {name}{for_plan}, which takes {most} at once; {raise}, or lower the cost"
                ));
            }
        };
        check_burst(zone.rate, limit.burst, String::new());
        let has_own_limit = |plan: &&Plan| plan.burst.is_some() || plan.rate.is_some();
        for plan in zone.plans.iter().filter(has_own_limit) {
            let for_plan = format!(" for plan {}", plan.name);
            let rate = plan.rate.unwrap_or(zone.rate);
            check_burst(rate, plan.apply(*limit, zone.algorithm).burst, for_plan);
        }
    }
}

/// Shows `cost` of a route.
pub(super) fn show_rule(rule: &CostRule, settings: &Settings) -> Option<Shown> {
    show_inline(match rule {
        CostRule::Fixed(cost) => return show_bare(cost),
        CostRule::Header(cost) => cost.shown_rows(settings),
        CostRule::BodyPer(cost) => cost.shown_rows(settings),
        CostRule::Response(cost) => cost.shown_rows(settings),
        CostRule::Learned(cost) => cost.shown_rows(settings),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_in_a_field_is_a_whole_number_from_one_capped_at_max() {
        let max = Cost::new(20).unwrap();
        let cases: [(&[u8], Option<u32>); 8] = [
            (b"1", Some(1)),
            (b" 5 ", Some(5)),
            (b"007", Some(7)),
            (b"21", Some(20)),
            (b"99999999999999999999999", Some(20)),
            (b"0", None),
            (b"", None),
            (b"1, 2", None),
        ];
        for (value, expected) in cases {
            let cost = CostRule::parse(value, max).map(Cost::get);
            assert_eq!(cost, expected, "{value:?}");
        }
    }
}
