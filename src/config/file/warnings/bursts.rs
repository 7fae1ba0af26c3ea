//! Bursts, leases and places that nothing uses.

use std::time::Duration;

use limit::{Delay, Limit, Rate, show_duration};

use crate::node::Node;
use crate::{Origin, Route, RouteLimit, Settings, Zone};

/// Shortest lease in which a gateway decides enough requests to matter.
///
/// It is several round trips to a store that is near, and as often as ended leases are looked for.
const MIN_LEASE: Duration = Duration::from_millis(1);

/// Warns of a lease that takes no places ahead.
pub(super) fn lease(settings: &Settings, index: usize, node: Node) {
    let zone = &settings.zones[index];
    let Some(node) = node.field("lease").filter(|_| !zone.lease.is_zero()) else {
        return;
    };
    if zone.lease < MIN_LEASE {
        node.warn(&format!(
            "a lease of {} is over before requests have come that it could decide; write lease = \"20ms\", or remove lease",
            show_duration(zone.lease)
        ));
        return;
    }
    let routes = settings.routes.iter();
    let limits = routes.flat_map(|route| &route.limits);
    let mut limits = limits.filter(|limit| limit.zone == index).peekable();
    // A token bucket's burst in the file includes the request itself.
    let (least, without) = if zone.algorithm.queues() {
        (0, "without burst")
    } else {
        (1, "with a burst of 1")
    };
    let has_room = limits.peek().is_none()
        || limits.any(|limit| limit.limit.burst > 0)
        || zone.plans.iter().any(|plan| plan.burst > Some(least));
    // A window has room for all that it counts.
    if !zone.algorithm.has_windows() && !has_room {
        node.warn(&format!("{without} there are no places to take ahead, so a lease only repeats refusals; raise the burst of a limit of this zone, at least to what its rate allows in the time of the lease, or remove lease"));
    }
}

/// The requests of a limit that wait for their time in a full queue, if any wait in its zone.
fn queue(settings: &Settings, limit: &RouteLimit) -> Option<u32> {
    let zone = &settings.zones[limit.zone];
    queued(&limit.limit).filter(|_| zone.algorithm.queues())
}

/// The rates of the keys that have the burst of the limit itself.
fn rates(zone: &Zone) -> impl Iterator<Item = Rate> {
    let plans = zone.plans.iter().filter(|plan| plan.burst.is_none());
    std::iter::once(zone.rate).chain(plans.filter_map(|plan| plan.rate))
}

/// Warns of a burst of which a part would wait longer than `max_wait`, at each rate of the zone.
pub(super) fn unused_burst(settings: &Settings, limit: &RouteLimit, item: Node) {
    let zone = &settings.zones[limit.zone];
    let burst = limit.limit.burst;
    let usable = rates(zone).map(|rate| usable(&limit.limit, rate)).max();
    let usable = usable.filter(|usable| zone.algorithm.queues() && *usable < u64::from(burst));
    if let (Some(usable), Some(node)) = (usable, item.field("burst")) {
        node.warn(&format!(
            "of burst {burst} at most {usable} can be used: further requests would wait longer than max_wait; lower burst to {usable}, or raise max_wait or the rate of zone {}",
            zone.name
        ));
    }
}

/// Warns of a queue that is longer than `queue_timeout` and `rate` let it become.
pub(super) fn unused_queue(origin: &Origin, node: Node) {
    let Some(rate) = origin.rate.filter(|rate| !rate.is_unlimited()) else {
        return;
    };
    // In an outage the time of `queue_timeout` stands still, so more can wait.
    if !origin.hold.is_zero() || origin.queue_timeout.is_zero() {
        return;
    }
    let usable = rate.count_in(origin.queue_timeout);
    // The defaults are for all rates, and `drip show` writes them out.
    let fields = [
        ("queue", origin.queue, 100),
        ("max_queue", origin.max_queue, 10_000),
    ];
    for (field, written, default) in fields {
        if written.get() as u64 > usable
            && written.get() != default
            && let Some(node) = node.field(field)
        {
            node.warn(&format!(
                "of {field} {written} at most {usable} can be used: further requests would wait longer than queue_timeout, which is {}; lower {field} to {usable}, or raise queue_timeout or rate",
                show_duration(origin.queue_timeout)
            ));
        }
    }
}

/// Warns of bursts of plans that no limit of the zone can use, in whichever file it is.
pub(super) fn plan_bursts(settings: &Settings, index: usize, node: Node) {
    let zone = &settings.zones[index];
    let of_route = |route: &'_ Route| {
        let limits = route.limits.iter().filter(|limit| limit.zone == index);
        let limits = limits.map(|limit| (limit.limit, route.cost.max().get()));
        limits.collect::<Vec<_>>()
    };
    let limits: Vec<(Limit, u32)> = settings.routes.iter().flat_map(of_route).collect();
    let entries = node.field("plans").and_then(|plans| plans.entries());
    if limits.is_empty() || !zone.algorithm.queues() {
        return;
    }
    let most = settings.server.max_connections.get();
    for (plan, entry) in zone.plans.iter().zip(entries.iter().flatten()) {
        let (Some(burst), Some(field)) = (plan.burst, entry.field("burst")) else {
            continue;
        };
        let rate = plan.rate.unwrap_or(zone.rate);
        let own = || {
            limits
                .iter()
                .map(|(limit, cost)| (plan.apply(*limit, zone.algorithm), *cost))
        };
        let usable = own().map(|(limit, _)| usable(&limit, rate)).max();
        if let Some(usable) = usable.filter(|usable| *usable < u64::from(burst)) {
            field.warn(&format!(
                "of burst {burst} at most {usable} can be used: in each limit of zone {} further requests would wait longer than max_wait; lower burst to {usable}, or raise max_wait or the rate",
                zone.name
            ));
        }
        let is_never_full = |(limit, cost): (Limit, u32)| {
            let queue = queued(&limit).map(|queue| queue / cost);
            let is_above = |queue| usize::try_from(queue).is_ok_and(|queue| queue >= most);
            limit.max_wait.is_none() && queue.is_some_and(is_above)
        };
        if !settings.server.has_tls_address() && own().all(is_never_full) {
            field.warn(&format!(
                "{burst} is not below max_connections, which is {most}, so in each limit of zone {} the queue is never full and the limit never rejects; lower it",
                zone.name
            ));
        }
    }
}

/// How much of a burst can be used in time.
fn usable(limit: &Limit, rate: Rate) -> u64 {
    let (Some(queue), Some(max_wait)) = (queued(limit), limit.max_wait) else {
        return u64::MAX;
    };
    // Requests that wait for a place stay while the bucket leaks.
    if limit.in_flight.is_some() || rate.is_unlimited() {
        return u64::MAX;
    }
    let most = rate.count_in(max_wait);
    if u64::from(queue) <= most {
        return u64::MAX;
    }
    u64::from(limit.burst - queue) + most
}

/// The requests of a limit that wait for their time in a full queue, if any wait.
fn queued(limit: &Limit) -> Option<u32> {
    match limit.delay {
        Delay::Above(delay) => Some(limit.burst.saturating_sub(delay)),
        Delay::Never => None,
    }
}

/// Warns of a queue, or of places, that the connections of all clients together never fill.
pub(super) fn never_full(settings: &Settings, route: &Route, limit: &RouteLimit, item: Node) {
    // Over TLS, HTTP/2 has many requests on a connection.
    if settings.server.has_tls_address() {
        return;
    }
    let most = settings.server.max_connections.get();
    let is_above = |count: u32| usize::try_from(count).is_ok_and(|count| count >= most);
    let never = |field: &'static str, times: &str, what: &str| {
        if let Some(node) = item.field(field) {
            node.warn(&format!(
                "{} is not below {times}max_connections, which is {most}, so {what}; lower it",
                node.found()
            ));
        }
    };
    // A request that costs 20 fills the queue as 20 others do.
    let cost = route.cost.max().get();
    let requests = queue(settings, limit).map(|queue| queue / cost);
    if limit.limit.max_wait.is_none() && requests.is_some_and(is_above) {
        let times = match cost {
            1 => String::new(),
            cost => format!("{cost} times "),
        };
        never(
            "burst",
            &times,
            "the queue is never full and the limit never rejects",
        );
    }
    if limit.limit.in_flight.is_some_and(|it| is_above(it.get())) {
        never("in_flight", "", "as many requests never run at once");
    }
}
