//! Limits that reject more or less than they seem to, and leases that nothing uses.

use limit::{Delay, Limit, Rate};

use crate::node::Node;
use crate::{Route, RouteLimit, Settings};

/// Warns of a lease in a zone without a burst, which takes no slots ahead.
pub(super) fn lease(settings: &Settings, index: usize, node: Node) {
    let zone = &settings.zones[index];
    let Some(node) = node.field("lease").filter(|_| !zone.lease.is_zero()) else {
        return;
    };
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

/// Warns of a burst of which a part would wait longer than `max_wait`, at each rate of the zone.
pub(super) fn unused_burst(settings: &Settings, limit: &RouteLimit, item: Node) {
    let zone = &settings.zones[limit.zone];
    let burst = limit.limit.burst;
    // The keys of a plan with a burst have that one.
    let plans = zone.plans.iter().filter(|plan| plan.burst.is_none());
    let rates = plans.filter_map(|plan| plan.rate).chain([zone.rate]);
    let usable = rates.map(|rate| usable(&limit.limit, rate)).max();
    let usable = usable.filter(|usable| zone.algorithm.queues() && *usable < u64::from(burst));
    if let (Some(usable), Some(node)) = (usable, item.field("burst")) {
        node.warn(&format!(
            "of burst {burst} at most {usable} can be used: further requests would wait longer than max_wait; lower burst to {usable}, or raise max_wait or the rate of zone {}",
            zone.name
        ));
    }
}

/// How much of a burst can be used in time.
fn usable(limit: &Limit, rate: Rate) -> u64 {
    let (Some(queue), Some(max_wait)) = (queued(limit), limit.max_wait) else {
        return u64::MAX;
    };
    // Requests that wait for a permit stay while the bucket leaks.
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

/// Warns of a queue, or of permits, that the connections of all clients together never fill.
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
    let zone = &settings.zones[limit.zone];
    let queue = queued(&limit.limit).filter(|_| zone.algorithm.queues());
    if limit.limit.max_wait.is_none() && queue.is_some_and(|queue| is_above(queue / cost)) {
        let times = match cost {
            1 => String::new(),
            cost => format!("{cost} times "),
        };
        let what = "the queue is never full and the limit never rejects";
        never("burst", &times, what);
    }
    if limit.limit.in_flight.is_some_and(|it| is_above(it.get())) {
        never("in_flight", "", "as many requests never run at once");
    }
}
