//! The metrics of costs that are learned.

use std::collections::HashSet;

use super::Family;
use crate::http::gateway::Gateway;
use crate::observe::metrics::MAX_NAMED_ROUTES;

pub(super) fn write(out: &mut String, gateway: &Gateway) {
    let learned = gateway.learned_routes();
    let learned = learned.take_while(|(index, ..)| *index < MAX_NAMED_ROUTES);
    let learned: Vec<_> = learned.collect();
    if learned.is_empty() {
        return;
    }
    let mut costs = Family::gauge(
        "drip_route_cost",
        "What a request of the route and the method costs, where that is learned.",
    );
    let mut seconds = Family::counter(
        "drip_route_origin_seconds_total",
        "Time at the origin of all requests of the route and the method, where costs are learned.",
    );
    // Routes that differ in their methods have one name.
    let mut seen = HashSet::new();
    for (_, route, learned) in learned {
        let name = route.name();
        for method in learned.methods() {
            if seen.insert((name.clone(), method.method)) {
                let labels = [("route", name.as_str()), ("method", method.method)];
                costs.add(&labels, method.cost);
                seconds.add(&labels, method.total.as_secs_f64());
            }
        }
    }
    out.push_str(&costs.text);
    out.push_str(&seconds.text);
}
