//! The `cost` of a route.

use limit::{Cost, Rate, show_duration};

use super::prelude::*;
use crate::size::show_size;
use crate::{CostRule, LearnedCost, Origin, Plan, RouteLimit, Zone};

pub(super) const COST: Kind<CostRule> = kind(
    Form::OneOf(&[
        NUMBER.form,
        Form::Table(COST_HEADER),
        Form::Table(COST_BODY),
        Form::Table(COST_RESPONSE),
        Form::Table(COST_LEARNED),
    ]),
    read,
    |it| bare(&shown(it)),
);

const NUMBER: Kind<u32> = whole::<_, 1, { Cost::MAX as u64 }>();

const HEADER: Field = Field::of(HEADER_NAME_FORM).required("\"x-cost\"");
const MAX: Field = Field::of(NUMBER.form).required("20");
const OTHERWISE: Field = Field::of(NUMBER.form).or("1");

table! {
    pub(crate) const COST_HEADER {
        header: HEADER, NextRequest, "What this field says, if a trusted proxy sends it.";
        max: MAX, NextRequest, "What counts for any higher number.";
        default: OTHERWISE, NextRequest, "What counts otherwise.";
    }
}

table! {
    pub(crate) const COST_BODY {
        body_per: Field::of(SIZE_ABOVE_ZERO_FORM).required("\"64KB\""), NextRequest,
            "One, and one more for each whole piece of this size.";
        max: MAX, NextRequest, "What counts for any longer body.";
    }
}

table! {
    pub(crate) const COST_RESPONSE {
        response_header: HEADER, NextRequest, "What this field of the response says.";
        max: MAX, NextRequest, "What counts for any higher number.";
        estimate: OTHERWISE, NextRequest, "What counts until then.";
    }
}

table! {
    pub(crate) const COST_LEARNED {
        learn: Field::of(word::<Measure>().form).required("\"time\""), NextRequest,
            "\"time\": the time that earlier requests of the route and the method took the origin.";
        unit: Field::of(Form::Duration(UNITS.0, UNITS.1)).required("\"10ms\""), NextRequest,
            "How much of that costs 1.";
        max: MAX, NextRequest, "What counts for any longer time.";
        mode: Field::of(word::<LearningMode>().form).or("\"on\""), NextRequest,
            "\"shadow\": learn and show, but charge 1.";
    }
}

words! {
    /// What a cost is learned from.
    enum Measure {
        /// The time at the origin.
        Time = "time",
    }
}

words! {
    /// Whether a learned cost is charged.
    enum LearningMode {
        /// It is.
        On = "on",
        /// It is only shown.
        Shadow = "shadow",
    }
}

/// The shortest and the longest `unit`, in nanoseconds: 100 us and 1 minute.
const UNITS: (u64, u64) = (100_000, 60_000_000_000);

const FORM_IN_WORDS: &str = "a whole number from 1 to 255, or a table with header, body_per, \
                    response_header or learn, such as { header = \"x-cost\", default = 1, max = 20 }";

/// The fields that choose the form of the table.
const CHOOSING: [(&str, Table); 4] = [
    ("header", COST_HEADER),
    ("body_per", COST_BODY),
    ("response_header", COST_RESPONSE),
    ("learn", COST_LEARNED),
];

/// Reads a route's `cost`.
fn read(node: Node) -> Option<CostRule> {
    if node.value.as_integer().is_some() {
        return cost(node).map(CostRule::Fixed);
    }
    if node.value.as_table().is_none() {
        return node.expected(FORM_IN_WORDS);
    }
    let mut chosen = CHOOSING
        .iter()
        .filter(|(name, _)| node.field(name).is_some());
    let (Some((form, all)), None) = (chosen.next(), chosen.next()) else {
        node.wrong(&format!(
            "expected {FORM_IN_WORDS}; found a table with none or several of these"
        ));
        // The others are costs in each of the forms.
        for field in ["max", "default", "estimate"] {
            let _wrong_either_way = node.field(field).and_then(cost);
        }
        return None;
    };
    if *form == "learn" {
        return learned(node);
    }
    let mut fields = Fields::of(node, "cost".to_owned(), *all)?;
    let mut of = |name| fields.value(name).and_then(|_| fields.get(name));
    let (header, body_per, response) = (of("header"), of("body_per"), of("response_header"));
    let max = fields.required("max", cost);
    let rule = match (header, body_per, response) {
        (Some(header), None, None) => {
            let default = fields.optional("default", Cost::ONE, cost);
            name(header)
                .zip(default)
                .zip(max)
                .map(|((name, default), max)| CostRule::Header { name, default, max })
        }
        (None, Some(size), None) => values::size_above_zero(size)
            .zip(max)
            .map(|(size, max)| CostRule::BodyPer { size, max }),
        (None, None, Some(header)) => {
            let estimate = fields.optional("estimate", Cost::ONE, cost);
            name(header)
                .zip(estimate)
                .zip(max)
                .map(|((name, estimate), max)| CostRule::ResponseHeader {
                    name,
                    estimate,
                    max,
                })
        }
        _ => None,
    };
    if let Some((first, max)) = rule.as_ref().and_then(first_above_max) {
        node.wrong(&format!(
            "{first} is above max, which is {max}; raise max, or lower it"
        ));
    }
    fields.finish();
    rule
}

/// Reads a cost that is learned.
fn learned(node: Node) -> Option<CostRule> {
    let mut fields = Fields::of(node, "cost".to_owned(), COST_LEARNED)?;
    let measure = fields.required("learn", word::<Measure>().read);
    let unit = fields.required("unit", |node| values::duration_between(node, UNITS));
    let max = fields.required("max", cost);
    let mode = fields.optional("mode", LearningMode::On, word::<LearningMode>().read);
    fields.finish();
    let (Some(Measure::Time), Some(unit), Some(max), Some(mode)) = (measure, unit, max, mode)
    else {
        return None;
    };
    Some(CostRule::Learned(LearnedCost {
        unit,
        max,
        is_shadow: mode == LearningMode::Shadow,
    }))
}

/// The name of the field whose cost is above `max`, if there is one.
fn first_above_max(rule: &CostRule) -> Option<(&'static str, Cost)> {
    match rule {
        CostRule::Header { default, max, .. } => (default > max).then_some(("default", *max)),
        CostRule::ResponseHeader { estimate, max, .. } => {
            (estimate > max).then_some(("estimate", *max))
        }
        CostRule::Fixed(_) | CostRule::BodyPer { .. } | CostRule::Learned(_) => None,
    }
}

/// Reports a problem if a cost is learned of an origin whose load is not known.
pub(super) fn check_origin(node: Node, rule: &CostRule, origin: &Origin) {
    if rule.learned().is_some() && origin.places().is_none() {
        let origin = &origin.name;
        node.wrong(&format!(
            "a cost is learned from requests that need not wait at the origin, which nobody knows without its places; add max_in_flight to [origins.{origin}]: how many requests it works on at once"
        ));
    }
}

/// Reports a problem if a limit would reject the costliest requests always.
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

fn cost(node: Node) -> Option<Cost> {
    (NUMBER.read)(node).and_then(Cost::new)
}

/// The name of a header field, in lowercase.
fn name(node: Node) -> Option<String> {
    let name = values::text(node)?;
    if !values::is_token(name) {
        return node.expected("the name of a header field such as \"x-cost\"");
    }
    Some(name.to_ascii_lowercase())
}

fn shown(rule: &CostRule) -> String {
    match rule {
        CostRule::Fixed(cost) => cost.to_string(),
        CostRule::Header { name, default, max } => {
            let name = toml_text(name);
            format!("{{ header = {name}, default = {default}, max = {max} }}")
        }
        CostRule::BodyPer { size, max } => {
            let size = toml_text(&show_size(size.get()));
            format!("{{ body_per = {size}, max = {max} }}")
        }
        CostRule::ResponseHeader {
            name,
            estimate,
            max,
        } => {
            let name = toml_text(name);
            format!("{{ response_header = {name}, estimate = {estimate}, max = {max} }}")
        }
        CostRule::Learned(LearnedCost {
            unit,
            max,
            is_shadow,
        }) => {
            let unit = toml_text(&show_duration(*unit));
            let mode = if *is_shadow {
                ", mode = \"shadow\""
            } else {
                ""
            };
            format!("{{ learn = \"time\", unit = {unit}, max = {max}{mode} }}")
        }
    }
}
