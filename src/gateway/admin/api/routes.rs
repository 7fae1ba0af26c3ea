//! `/api/routes`: routes with their limits and responses.

use std::collections::{BTreeMap, HashMap, HashSet};

use actix_web::web::Data;
use config::{self, RouteAction};
use serde_json::{Map, Value, json};

use crate::admin::Admin;
use crate::admin::reply::{self, Answer};
use crate::http::gateway::Gateway;
use crate::observe::metrics::{MAX_NAMED_ROUTES, RouteMetrics};
use crate::status::counts;
use crate::status::minute::{LatencySource, Minute};
use crate::status::plain::Plain;

/// `GET /api/routes`: all routes.
pub(super) async fn all(admin: Data<Admin>) -> Answer {
    let gateway = admin.serving()?;
    let mut costs = costs_by_route(&gateway);
    // Routes with the same host and path have one name and count together: they are one here.
    let mut seen = HashSet::new();
    let counted = gateway.counted_routes().enumerate();
    let counted = counted.filter(|(_, (name, _))| seen.insert(name.clone()));
    let routes = counted.map(|(index, (name, metrics))| {
        let route = gateway.settings().routes.get(index);
        // All later routes share one name.
        let route = route.filter(|_| index < MAX_NAMED_ROUTES);
        let cost = route.and(costs.remove(&name));
        let mut json = route_json(&gateway, route, name, metrics, &admin.recent.minute);
        reply::add(&mut json, "cost", cost);
        json
    });
    let mut json = json!({
        "routes": routes.collect::<Vec<_>>(),
        "unrouted": counts::codes(gateway.no_route_metrics()),
    });
    reply::add(
        &mut json,
        "maintenance",
        gateway.maintenances().all.as_ref(),
    );
    Ok(reply::ok(&json))
}

/// Returns the learned costs of requests as JSON, by the name of the route.
///
/// A route may learn what a request of each method costs. A `shadow` cost is shown, and not
/// charged.
fn costs_by_route(gateway: &Gateway) -> HashMap<String, Value> {
    // Whether the costs are a shadow, and the cost of each method.
    let mut all: HashMap<String, (bool, Map<String, Value>)> = HashMap::new();
    let routes = gateway.learned_routes();
    for (_, route, costs) in routes.take_while(|(index, ..)| *index < MAX_NAMED_ROUTES) {
        let shadow = costs.rule().is_shadow;
        // Routes that differ in their methods have one name.
        let (_, methods) = all.entry(route.name()).or_insert((shadow, Map::new()));
        methods.extend(costs.methods().map(|method| {
            let cost = json!({
                "cost": method.cost.get(),
                "seconds": method.time.map(|time| time.as_secs_f64()),
                "source": method.source,
                "requests": method.requests,
                "origin_seconds": method.total.as_secs_f64(),
            });
            (method.method.to_owned(), cost)
        }));
    }
    let all = all.into_iter();
    let json = |(shadow, methods)| json!({ "shadow": shadow, "methods": Value::Object(methods) });
    all.map(|(name, costs)| (name, json(costs))).collect()
}

/// Builds the JSON of a route. `route`: `None` for the route of all that have no name of their own.
fn route_json(
    gateway: &Gateway,
    route: Option<&config::Route>,
    name: String,
    metrics: &RouteMetrics,
    minute: &Minute,
) -> Value {
    let zone = |limit: &config::RouteLimit| Plain::new(&gateway.zone(limit.zone).settings().name);
    let statuses = metrics.statuses();
    let statuses = statuses.map(|(status, count)| (status.to_string(), count));
    let statuses: BTreeMap<_, _> = statuses.collect();
    let origin = route.and_then(config::Route::origin);
    let origin = origin.map(|origin| Plain::new(&gateway.origin(origin).settings().name));
    let refuses = route.and_then(|route| match route.action {
        RouteAction::Refuse(status) => Some(status),
        RouteAction::Forward(_) | RouteAction::Maintenance { .. } => None,
    });
    let limits = route.map_or(&[][..], |route| &route.limits);
    let mut json = json!({
        "name": Plain::new(&name),
        // Empty if the route refuses its requests.
        "origin": origin.unwrap_or_default(),
        "refuses": refuses,
        "zones": limits.iter().map(zone).collect::<Vec<_>>(),
        "requests": statuses.values().sum::<u64>(),
        "statuses": statuses,
        "latency": minute.latency(&LatencySource::Route(name), &metrics.durations.counts()),
    });
    let maintained = route.and_then(|route| gateway.maintenances().of(route));
    reply::add(&mut json, "maintenance", maintained);
    json
}
