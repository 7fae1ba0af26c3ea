//! `cost` of a route.

use std::num::NonZeroU64;
use std::time::Duration;

use limit::{Cost, Rate};

use super::prelude::*;
use crate::{BackoffMode, CostRule, Origin, Plan, RouteLimit, Settings, Zone};

pub(super) const FORM: Form = Form::OneOf(&[
    NUMBER.form,
    Form::Table(HeaderCost::TABLE),
    Form::Table(BodyCost::TABLE),
    Form::Table(ResponseCost::TABLE),
    Form::Table(LearnedCost::TABLE),
]);

const NUMBER: Kind<u32> = whole::<_, 1, { Cost::MAX as u64 }>();
const COST: Kind<Cost> = kind(
    NUMBER.form,
    |node| (NUMBER.read)(node).and_then(Cost::new),
    bare,
);
const MAX: TypedField<Cost> = COST.required("20").shown_at(1);

/// Name of a header field, in lowercase.
const NAME: Kind<String> = kind(
    HEADER_NAME_FORM,
    |node| {
        let name = values::text(node)?;
        if !values::is_token(name) {
            return node.expected("the name of a header field such as \"x-cost\"");
        }
        Some(name.to_ascii_lowercase())
    },
    shown,
);

table! {
    /// Cost from a request field. It counts only if a trusted peer sent it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HeaderCost {
        header: String = NAME.required("\"x-cost\""), NextRequest,
            "What this field says, if a trusted proxy sends it.";
        max: Cost = MAX, NextRequest, "What counts for any higher number.";
        default: Cost = COST.or("1"), NextRequest, "What counts otherwise.";
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
        max: Cost = MAX, NextRequest, "What counts for any higher number.";
        estimate: Cost = COST.or("1"), NextRequest, "What counts until then.";
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
        /// Charges 1, and only shows the learned cost.
        is_shadow: bool = MODE.or("\"on\"").named("mode"), NextRequest,
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
const MODE: Kind<bool> = kind(
    word::<BackoffMode>().form,
    |node| Some((word::<BackoffMode>().read)(node)? == BackoffMode::Shadow),
    |is_shadow| is_shadow.then(|| shown("shadow"))?,
);

/// Expected forms of `cost`, for messages.
const FORM_IN_WORDS: &str = "a whole number from 1 to 255, or a table with header, body_per, \
                    response_header or learn, such as { header = \"x-cost\", default = 1, max = 20 }";

type Reader = fn(Node) -> Option<CostRule>;

/// Fields that select the form of the table, with the reader of each form.
const CHOOSING: [(&str, Reader); 4] = [
    ("header", |node| table(node).map(CostRule::Header)),
    ("body_per", |node| table(node).map(CostRule::BodyPer)),
    ("response_header", |node| {
        table(node).map(CostRule::Response)
    }),
    ("learn", |node| table(node).map(CostRule::Learned)),
];

/// Reads one form of the table. `None` if a field is wrong.
fn table<T: TableSettings>(node: Node) -> Option<T> {
    T::of_valid(Fields::of(node, "cost".to_owned(), T::TABLE)?)
}

/// Reads a route's `cost`.
pub(super) fn read(node: Node) -> Option<CostRule> {
    if node.value.as_integer().is_some() {
        return (COST.read)(node).map(CostRule::Fixed);
    }
    if node.value.as_table().is_none() {
        return node.expected(FORM_IN_WORDS);
    }
    let is_there = |(name, _): &&(&'static str, _)| node.field(name).is_some();
    let mut chosen = CHOOSING.iter().filter(is_there);
    let (Some((_, read)), None) = (chosen.next(), chosen.next()) else {
        node.wrong(&format!(
            "expected {FORM_IN_WORDS}; found a table with none or several of these"
        ));
        // The other fields are checked, too: they are costs in each form.
        for field in ["max", "default", "estimate"] {
            let _wrong_either_way = node.field(field).and_then(COST.read);
        }
        return None;
    };
    let rule = read(node);
    let above_max = match &rule {
        Some(CostRule::Header(of)) if of.default > of.max => Some(("default", of.max)),
        Some(CostRule::Response(of)) if of.estimate > of.max => Some(("estimate", of.max)),
        _ => None,
    };
    if let Some((first, max)) = above_max {
        node.wrong(&format!(
            "{first} is above max, which is {max}; raise max, or lower it"
        ));
    }
    rule
}

/// Reports a cost that is learned for an origin without a bound on requests in flight.
pub(super) fn check_origin(node: Node, rule: &CostRule, origin: &Origin) {
    if rule.learned().is_some() && origin.permits().is_none() {
        let origin = &origin.name;
        node.wrong(&format!(
            "a cost is learned from requests that need not wait at the origin, which nobody knows without its places; add max_in_flight to [origins.{origin}]: how many requests it works on at once"
        ));
    }
}

/// Reports a problem if a limit would always reject the costliest requests.
pub(super) fn check(node: Node, rule: &CostRule, limits: &[RouteLimit], zones: &[Option<Zone>]) {
    let max = rule.max();
    for RouteLimit { zone, limit } in limits {
        let Some(zone) = zones.get(*zone).and_then(Option::as_ref) else {
            continue;
        };
        let too_low = |rate: Rate, burst: u32, whose: String| {
            if !rate.is_unlimited() && max.above_one() > burst {
                let (name, most) = (&zone.name, u64::from(burst) + 1);
                let raise = match zone.algorithm {
                    it if it.has_windows() => {
                        format!("raise the count of its rate to at least {max}")
                    }
                    it if it.queues() => format!("raise its burst to at least {}", max.above_one()),
                    _ => format!("raise its burst to at least {max}"),
                };
                node.wrong(&format!(
                    "a request of cost {max} would never pass the limit in zone {name}{whose}, which takes {most} at once; {raise}, or lower the cost"
                ));
            }
        };
        too_low(zone.rate, limit.burst, String::new());
        let has_own = |plan: &&Plan| plan.burst.is_some() || plan.rate.is_some();
        for plan in zone.plans.iter().filter(has_own) {
            let whose = format!(" for plan {}", plan.name);
            let rate = plan.rate.unwrap_or(zone.rate);
            too_low(rate, plan.apply(*limit, zone.algorithm).burst, whose);
        }
    }
}

/// Returns the cost of a route for output.
pub(super) fn shown_rule(rule: &CostRule, settings: &Settings) -> Option<Shown> {
    inline(match rule {
        CostRule::Fixed(cost) => return bare(cost),
        CostRule::Header(of) => of.shown(settings),
        CostRule::BodyPer(of) => of.shown(settings),
        CostRule::Response(of) => of.shown(settings),
        CostRule::Learned(of) => of.shown(settings),
    })
}
