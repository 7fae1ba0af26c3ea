//! Warnings about limits that reject more or less than they seem to, and about unused leases.
//!
//! `burst` of a limit: number of requests that may exceed the rate. They wait in a queue, except
//! the first `delay` of them. A lease takes slots of a zone in Redis ahead of the requests.

use limit::{Delay, Limit, Rate};

use crate::node::Node;
use crate::{Route, RouteLimit, Settings};

/// Warns of a lease in a zone without a burst, which cannot take slots ahead.
///
/// `index`: index of the zone. `node`: the zone in the file.
pub(super) fn check_lease(settings: &Settings, index: usize, node: Node) {
    let zone = &settings.zones[index];
    let limits = settings.routes.iter().flat_map(|route| &route.limits);
    let limits: Vec<_> = limits.filter(|limit| limit.zone == index).collect();
    // Largest `burst` in the file that lets no request exceed the rate. In a token bucket, `burst`
    // includes the request itself.
    let (no_burst, reason) = if zone.algorithm.queues() {
        (0, "without burst")
    } else {
        (1, "with a burst of 1")
    };
    // `burst` of a limit never includes the request itself, but `burst` of a plan is as in the
    // file.
    let has_burst = limits.is_empty()
        || limits.iter().any(|limit| limit.limit.burst > 0)
        || zone.plans.iter().any(|plan| plan.burst > Some(no_burst));
    // A window has room for everything that it counts.
    if !zone.lease.is_zero() && !zone.algorithm.has_windows() && !has_burst {
        let message = format!(
            "{reason} no slots can be leased ahead, so the lease has no effect; raise the burst of a limit of this zone at least to what its rate allows in the duration of the lease, or remove lease"
        );
        node.warn_field("lease", &message);
    }
}

/// Warns of a burst of which a part can never be used: it would wait longer than `max_wait`.
///
/// This must hold at each rate of the zone and its plans. `item`: the limit in the file.
pub(super) fn check_burst(settings: &Settings, limit: &RouteLimit, item: Node) {
    let zone = &settings.zones[limit.zone];
    let burst = limit.limit.burst;
    // Keys of a plan with its own burst use that burst.
    let plans = zone.plans.iter().filter(|plan| plan.burst.is_none());
    let rates = plans.filter_map(|plan| plan.rate).chain([zone.rate]);
    let usable = rates.map(|rate| usable_burst(&limit.limit, rate)).max();
    let is_too_small = |usable: &u64| zone.algorithm.queues() && *usable < u64::from(burst);
    if let Some(usable) = usable.filter(is_too_small) {
        let message = format!(
            "of burst {burst} at most {usable} can be used: further requests would wait longer than max_wait; lower burst to {usable}, or raise max_wait or the rate of zone {}",
            zone.name
        );
        item.warn_field("burst", &message);
    }
}

/// Returns how much of a burst can be used within `max_wait`; `u64::MAX`: all of it.
fn usable_burst(limit: &Limit, rate: Rate) -> u64 {
    let (Some(queue), Some(max_wait)) = (queue_length(limit), limit.max_wait) else {
        return u64::MAX;
    };
    // Requests that wait for a permit stay in the queue while the bucket leaks.
    if limit.in_flight.is_some() || rate.is_unlimited() {
        return u64::MAX;
    }
    let usable_queue = rate.count_in(max_wait);
    if u64::from(queue) <= usable_queue {
        return u64::MAX;
    }
    u64::from(limit.burst - queue) + usable_queue
}

/// Returns the number of requests that wait in a full queue, if any request waits.
fn queue_length(limit: &Limit) -> Option<u32> {
    match limit.delay {
        Delay::Above(delay) => Some(limit.burst.saturating_sub(delay)),
        Delay::Never => None,
    }
}

/// Warns of a queue, or of permits, that all client connections together can never use up.
///
/// `item`: the limit in the file.
pub(super) fn check_capacity(settings: &Settings, route: &Route, limit: &RouteLimit, item: Node) {
    // Over TLS, HTTP/2 allows many requests per connection.
    if settings.server.has_tls_address() {
        return;
    }
    let connections = settings.server.max_connections.get();
    // Whether a number of requests is at least that of all client connections.
    let reaches = |count: u32| usize::try_from(count).is_ok_and(|count| count >= connections);
    let warn = |name: &'static str, times: &str, consequence: &str| {
        if let Some(field) = item.field(name) {
            field.warn(&format!(
                "{} is not below {times}max_connections, which is {connections}, so {consequence}; lower it",
                field.found()
            ));
        }
    };
    // A request of cost 20 fills the queue as much as 20 requests of cost 1.
    let cost = route.cost.max().get();
    let zone = &settings.zones[limit.zone];
    let queue = queue_length(&limit.limit).filter(|_| zone.algorithm.queues());
    if limit.limit.max_wait.is_none() && queue.is_some_and(|queue| reaches(queue / cost)) {
        let times = match cost {
            1 => String::new(),
            cost => format!("{cost} times "),
        };
        let consequence = "the queue is never full and the limit never rejects";
        warn("burst", &times, consequence);
    }
    if limit.limit.in_flight.is_some_and(|it| reaches(it.get())) {
        warn("in_flight", "", "as many requests never run at once");
    }
}
