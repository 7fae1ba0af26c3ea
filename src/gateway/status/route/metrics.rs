//! Metrics of routes, one series for each name of a route.

use std::collections::HashSet;

use crate::http::gateway::Gateway;
use crate::observe::metrics::{MAX_NAMED_ROUTES, NO_ROUTE, RouteMetrics};
use crate::status::exposition::table::{Table, labels};

/// Writes the metrics of all routes.
pub(crate) fn write(out: &mut String, gateway: &Gateway) {
    // Routes that differ only in their methods have one name, and one count.
    let mut seen = HashSet::new();
    let unrouted = (NO_ROUTE.to_owned(), gateway.no_route_metrics());
    let routes = gateway.counted_routes().chain([unrouted]);
    let routes = routes.filter(|(name, _)| seen.insert(name.clone()));
    let routes = routes.map(|(name, metrics)| (labels(&[("route", &name)]), metrics));
    let mut table: Table<&RouteMetrics> = Table::new(out, routes);
    table.write("drip_requests_total", |route, series| {
        for (status, count) in route.statuses() {
            series.each("code", [(&*status.to_string(), count)]);
        }
    });
    table.some("drip_refused_total", |route| {
        Some(route.refused.get()).filter(|count| *count > 0)
    });
    table.durations("drip_request_duration_seconds", |route| {
        &route.durations.histogram
    });
    write_costs(out, gateway);
}

/// Writes the costs that routes have learned from their durations at the origin.
fn write_costs(out: &mut String, gateway: &Gateway) {
    // Further routes have no name of their own.
    let learned = gateway.learned_routes();
    let learned = learned.take_while(|(index, ..)| *index < MAX_NAMED_ROUTES);
    // Routes with the same name and method: the first one counts.
    let mut seen = HashSet::new();
    let mut methods = Vec::new();
    for (_, route, learned) in learned {
        let name = route.name();
        for method in learned.methods() {
            let labels = labels(&[("route", &name), ("method", method.method)]);
            if seen.insert(labels.clone()) {
                methods.push((labels, method));
            }
        }
    }
    let mut table = Table::new(out, methods);
    table.value("drip_route_cost", |method| method.cost);
    table.value("drip_route_origin_seconds_total", |method| {
        method.total.as_secs_f64()
    });
}
