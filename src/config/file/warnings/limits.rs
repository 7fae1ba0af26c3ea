//! Warnings about limits that reject more or less than they seem to, and about unused leases.

use limit::{Delay, Limit, Rate};

use crate::node::Node;
use crate::{Route, RouteLimit, Settings};

/// Warns of a lease in a zone without a burst, which cannot take slots ahead.
pub(super) fn lease(settings: &Settings, index: usize, node: Node) {
    let zone = &settings.zones[index];
    let Some(node) = node.field("lease").filter(|_| !zone.lease.is_zero()) else {
        return;
    };
    let routes = settings.routes.iter();
    let limits = routes.flat_map(|route| &route.limits);
    let mut limits = limits.filter(|limit| limit.zone == index).peekable();
    // The file's burst of a token bucket includes the request itself.
    let (least, without) = if zone.algorithm.queues() {
        (0, "without burst")
    } else {
        (1, "with a burst of 1")
    };
    let has_room = limits.peek().is_none()
        || limits.any(|limit| limit.limit.burst > 0)
        || zone.plans.iter().any(|plan| plan.burst > Some(least));
    // A window has room for everything that it counts.
    if !zone.algorithm.has_windows() && !has_room {
        node.warn(&format!("{without} no slots can be leased ahead, so the lease has no effect; raise the burst of a limit of this zone at least to what its rate allows in the duration of the lease, or remove lease"));
    }
}

/// Warns of a burst of which a part would wait longer than `max_wait`, at each rate of the zone.
pub(super) fn unused_burst(settings: &Settings, limit: &RouteLimit, item: Node) {
    let zone = &settings.zones[limit.zone];
    let burst = limit.limit.burst;
    // Keys of a plan with its own burst use that burst.
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

/// Returns how much of a burst can be used within `max_wait`.
fn usable(limit: &Limit, rate: Rate) -> u64 {
    let (Some(queue), Some(max_wait)) = (queued(limit), limit.max_wait) else {
        return u64::MAX;
    };
    // Requests that wait for a permit stay in the queue while the bucket leaks.
    if limit.in_flight.is_some() || rate.is_unlimited() {
        return u64::MAX;
    }
    let most = rate.count_in(max_wait);
    if u64::from(queue) <= most {
        return u64::MAX;
    }
    u64::from(limit.burst - queue) + most
}

/// Returns the number of requests that wait in a full queue, if any request waits.
fn queued(limit: &Limit) -> Option<u32> {
    match limit.delay {
        Delay::Above(delay) => Some(limit.burst.saturating_sub(delay)),
        Delay::Never => None,
    }
}

/// Warns of a queue, or of permits, that all client connections together never fill.
pub(super) fn never_full(settings: &Settings, route: &Route, limit: &RouteLimit, item: Node) {
    // Over TLS, HTTP/2 allows many requests per connection.
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
    // A request of cost 20 fills the queue as much as 20 requests of cost 1.
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
