//! `limits` of a route: the zones that limit its requests. Also `draw` of a waiting room.
//!
//! A zone has one bucket per key, which limits the rate. `burst`: how many requests may exceed the
//! rate at once. In a zone with a queue they wait, except the first `delay` of them. In `table!`,
//! an entry is a field of the file: its type, its reader with the default, when a change takes
//! effect, and its meaning (see `table_settings`, and `kinds` for readers).

use std::num::NonZeroU32;

use limit::{Cost, Delay, Limit};

use super::names::read_index;
use super::prelude::*;
use crate::Zone;

/// Form of `limits`.
pub(super) const FORM: Form = Form::List(&Form::Table(LIMIT), 0);

/// Number of requests.
const COUNT: Kind<u32> = whole::<_, 0, U32>();
/// Capacity of a token bucket: the number of requests that pass at once.
pub(super) const CAPACITY: Kind<u32> = whole::<_, 1, U32>();
/// Number of requests of a key that may run at once.
const IN_FLIGHT: Kind<NonZeroU32> = whole::<_, 1, U32>();

// Fields of a limit.
table! {
    pub(crate) const LIMIT {
        zone: Field::of_form(Form::Text).required("\"per_client\""), NextRequest,
            "The zone that counts the request.";
        burst: Field::of_form(COUNT.form), NextRequest,
            "Leaky bucket: how many requests above the rate are held. Token bucket: its capacity.";
        delay: Field::of_form(COUNT.form), NextRequest,
            "How many of these pass at once before others wait; at most burst.";
        nodelay: Field::of_form(Form::Boolean), NextRequest,
            "All of burst passes at once.";
        in_flight: Field::of_form(IN_FLIGHT.form), NextRequest,
            "How many requests of one key may run at the same time.";
    }
}

// Fields of `draw`.
table! {
    pub(crate) const DRAW {
        zone: Field::of_form(Form::Text).required("\"per_client\""), NextRequest,
            "The zone that counts the numbers that a client draws.";
        burst: Field::of_form(COUNT.form), NextRequest,
            "Leaky bucket: how many above the rate. Token bucket: its capacity.";
    }
}

/// One limit of a route, in one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLimit {
    /// Index in [`Settings::zones`](crate::Settings::zones).
    pub zone: usize,
    /// Values of the limit.
    ///
    /// `delay` is never above `burst`. `max_wait` is that of the route. `cost` is that of a request
    /// about which nothing is known.
    pub limit: Limit,
}

impl RouteLimit {
    /// Returns the limit for a request of this cost. `None`: the cost in the limit stays.
    pub fn costing(self, cost: Option<Cost>) -> Self {
        let cost = cost.unwrap_or(self.limit.cost);
        let limit = Limit { cost, ..self.limit };
        Self { limit, ..self }
    }
}

/// Shows the limits of a route.
pub(super) fn show_limits(limits: &[RouteLimit], zones: &[Zone]) -> Option<Shown> {
    let limits = limits.iter().map(|limit| limit_as_toml(*limit, zones));
    show_bare(&toml_list(limits))
}

/// Zones that limits can refer to: all names, and the zones without problems.
#[derive(Clone, Copy)]
pub(crate) struct Zones<'a> {
    /// Names of all zones, in the order of the file.
    pub(crate) names: &'a [&'a str],
    /// The same zones; `None` for one with a problem.
    pub(crate) zones: &'a [Option<Zone>],
}

impl<'a> Zones<'a> {
    /// Returns the zone with this index, if it has no problem.
    pub(crate) fn get(&self, index: usize) -> Option<&'a Zone> {
        self.zones.get(index)?.as_ref()
    }

    /// Reads the field `zone` of a limit. Returns the index of the zone.
    fn read(&self, fields: &mut Fields) -> Option<usize> {
        fields.read_required("zone", |node| read_index(node, "zones", self.names))
    }
}

/// Reads a route's limits, without `max_wait`. Returns `None` if one of them is wrong.
pub(super) fn read(node: Node, zones: &Zones) -> Option<Vec<RouteLimit>> {
    let items = node.items_or("a list such as [{ zone = \"per_client\", burst = 20 }]")?;
    let mut seen = Vec::new();
    let mut limits = Vec::new();
    for item in items {
        let fields = Fields::begin(item, "this limit".to_owned(), LIMIT);
        let (index, limit) = fields.map_or((None, None), |fields| read_limit(fields, zones));
        if let Some(index) = index.filter(|index| seen.contains(index)) {
            let name = zones.names[index];
            item.report_problem(&format!(
                "zone {name} limits this route already; remove one"
            ));
        }
        seen.extend(index);
        if let (Some(zone), Some(limit)) = (index.and_then(|index| zones.get(index)), &limit)
            && zone.limits_no_rate()
            && limit.in_flight.is_none()
        {
            item.report_problem(&format!(
                "zone {} has no rate, so this limit limits nothing; give it in_flight, such as in_flight = 2, or remove it",
                zone.name
            ));
        }
        let limit = index.zip(limit);
        limits.push(limit.map(|(zone, limit)| RouteLimit { zone, limit }));
    }
    limits.into_iter().collect()
}

/// Reads one limit. Returns the index of its zone, and its values, each if it is right.
fn read_limit(mut fields: Fields, zones: &Zones) -> (Option<usize>, Option<Limit>) {
    let index = zones.read(&mut fields);
    let zone = index.and_then(|index| zones.get(index));
    let burst = read_burst(&mut fields, zone);
    let limit = match zone {
        Some(zone) if !zone.algorithm.queues() => read_unqueued(&mut fields, zone, burst),
        zone => read_queued(&mut fields, zone, burst),
    };
    fields.finish();
    (index, limit)
}

/// Reads a limit of a zone with a queue. `zone`: `None` if the zone has problems.
fn read_queued(fields: &mut Fields, zone: Option<&Zone>, burst: Option<u32>) -> Option<Limit> {
    let [delay_node, nodelay_node, in_flight_node] =
        ["delay", "nodelay", "in_flight"].map(|name| fields.get(name));
    let delay = delay_node.map_or(Some(0), COUNT.read);
    let nodelay = nodelay_node.and_then(values::boolean).unwrap_or(false);
    if let (Some(node), true) = (delay_node, nodelay) {
        node.report_problem("with nodelay = true nothing waits; remove delay or nodelay");
    } else if let (Some(node), Some((delay, burst))) = (delay_node, delay.zip(burst))
        && delay > burst
    {
        node.report_problem(&format!(
            "delay {delay} is above burst {burst}, so nothing would wait; lower it to at most {burst}, raise burst, or write nodelay = true instead"
        ));
    }
    if let Some(zone) = zone.filter(|zone| zone.limits_no_rate())
        && let Some(node) = delay_node.or(nodelay_node)
    {
        node.report_problem(&format!(
            "zone {} has no rate, so no request waits for a slot; remove delay and nodelay",
            zone.name
        ));
    }
    if let (Some(zone), Some(node)) = (zone, in_flight_node)
        && !zone.lease.is_zero()
    {
        node.report_problem(&format!(
            "zone {} has a lease, and Redis counts no permits of requests that pass under a lease; remove in_flight or lease",
            zone.name
        ));
    }
    let in_flight = in_flight_node.map_or(Some(None), |node| (IN_FLIGHT.read)(node).map(Some));
    let above = Delay::Above(delay?);
    Some(Limit {
        burst: burst?,
        delay: if nodelay { Delay::Never } else { above },
        in_flight: in_flight?,
        ..without_queue(0)
    })
}

/// Reads a limit of a zone whose algorithm accepts or rejects a request at once.
fn read_unqueued(fields: &mut Fields, zone: &Zone, burst: Option<u32>) -> Option<Limit> {
    let algorithm = zone.algorithm;
    for name in ["delay", "nodelay", "in_flight"] {
        if let Some(node) = fields.get(name) {
            node.report_problem(&format!(
                "the zone counts by {algorithm}, which lets no request wait; remove {name}, or choose algorithm = \"leaky_bucket\""
            ));
        }
    }
    burst.map(without_queue)
}

/// Reads `burst` of a limit. `zone`: `None` if the zone has problems.
///
/// If the zone has no queue, the result is the number of requests that pass at once, minus one: the
/// first of them does not exceed the rate.
fn read_burst(fields: &mut Fields, zone: Option<&Zone>) -> Option<u32> {
    let node = fields.get("burst");
    let Some(zone) = zone.filter(|zone| !zone.algorithm.queues()) else {
        return node.map_or(Some(0), COUNT.read);
    };
    let (algorithm, rate) = (zone.algorithm, zone.rate);
    let capacity = if algorithm.has_windows() {
        if let Some(node) = node {
            node.report_problem(&format!(
                "the zone counts by {algorithm}, which allows the {} requests of its rate in each period and no burst; remove burst",
                rate.count()
            ));
        }
        rate.whole_count()
    } else {
        match node {
            Some(node) => Some((CAPACITY.read)(node)?),
            None => rate.whole_count(),
        }
    };
    Some(capacity.unwrap_or(1).saturating_sub(1))
}

/// Makes a limit without a queue and without a bound on requests in flight.
fn without_queue(burst: u32) -> Limit {
    Limit {
        burst,
        ..Limit::unlimited(Delay::Never, Cost::ONE)
    }
}

/// Reads `draw` of a waiting room: a limit without a queue on the numbers that a client draws.
pub(super) fn read_draw(node: Node, zones: &Zones) -> Option<RouteLimit> {
    let mut fields = Fields::begin(node, "draw".to_owned(), DRAW)?;
    let index = zones.read(&mut fields);
    let zone = index.and_then(|index| zones.get(index));
    let burst = read_burst(&mut fields, zone);
    fields.finish();
    if let Some(zone) = zone.filter(|zone| zone.limits_no_rate()) {
        node.report_problem(&format!(
            "zone {} has no rate, so drawing would not be limited; name a zone that has one, or write draw = \"none\"",
            zone.name
        ));
    }
    Some(RouteLimit {
        zone: index?,
        limit: without_queue(burst?),
    })
}

/// Shows `draw` of a waiting room.
pub(super) fn show_draw(draw: RouteLimit, zones: &[Zone]) -> Option<Shown> {
    show_bare(&format!("{{ {} }}", zone_and_burst(draw, zones)))
}

/// Returns one limit as TOML.
fn limit_as_toml(limit: RouteLimit, zones: &[Zone]) -> String {
    let zone = &zones[limit.zone];
    let delay = match limit.limit.delay {
        _ if !zone.algorithm.queues() || zone.limits_no_rate() => String::new(),
        Delay::Above(delay) => format!(", delay = {delay}"),
        Delay::Never => ", nodelay = true".to_owned(),
    };
    let in_flight = limit.limit.in_flight;
    let in_flight = in_flight.map_or(String::new(), |most| format!(", in_flight = {most}"));
    format!("{{ {}{delay}{in_flight} }}", zone_and_burst(limit, zones))
}

/// Returns the zone and the burst of a limit, as in the file.
fn zone_and_burst(limit: RouteLimit, zones: &[Zone]) -> String {
    let zone = &zones[limit.zone];
    let (name, burst) = (toml_text(&zone.name), u64::from(limit.limit.burst));
    match zone.algorithm {
        algorithm if algorithm.has_windows() => format!("zone = {name}"),
        algorithm if algorithm.queues() => format!("zone = {name}, burst = {burst}"),
        _ => format!("zone = {name}, burst = {}", burst + 1),
    }
}
