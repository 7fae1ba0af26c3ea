use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use actix_web::web::Data;
use config::{self, RouteAction};

use super::maintenance;
use crate::admin::Admin;
use crate::admin::reply::{self, Answer};
use crate::http::gateway::{Gateway, RouteCosts};
use crate::observe::metrics::{MAX_NAMED_ROUTES, RouteMetrics};
use crate::status::counts;
use crate::status::minute::{Minute, Of};
use crate::status::views::{MethodCost, Plain, Route, RouteCost, Routes};

pub(super) async fn all(admin: Data<Admin>) -> Answer {
    let gateway = admin.serving()?;
    let mut costs = costs(&gateway);
    // Routes with the same host and path count together: they are one here.
    let mut seen = HashSet::new();
    let counted = gateway.counted_routes().enumerate();
    let counted = counted.filter(|(_, (name, _))| seen.insert(name.clone()));
    let routes = counted.map(|(index, (name, metrics))| {
        let route = gateway.settings().routes.get(index);
        // What is behind them has one name together.
        let route = route.filter(|_| index < MAX_NAMED_ROUTES);
        Route {
            cost: route.and(costs.remove(&name)),
            ..view(&gateway, route, name, metrics, &admin.recent.minute)
        }
    });
    Ok(reply::ok(&Routes {
        routes: routes.collect(),
        unrouted: counts::codes(gateway.no_route_metrics()),
        maintenance: gateway.maintenances().all.as_ref().map(maintenance::view),
    }))
}

/// What requests cost where that is learned, by the name of the route.
fn costs(gateway: &Gateway) -> HashMap<String, RouteCost> {
    let mut all: HashMap<String, RouteCost> = HashMap::new();
    let routes = gateway.learned_routes();
    for (_, route, costs) in routes.take_while(|(index, ..)| *index < MAX_NAMED_ROUTES) {
        match all.entry(route.name()) {
            Entry::Vacant(entry) => _ = entry.insert(cost(costs)),
            // They differ in their methods.
            Entry::Occupied(entry) => entry.into_mut().methods.extend(cost(costs).methods),
        }
    }
    all
}

/// What the requests of a route cost.
fn cost(costs: &RouteCosts) -> RouteCost {
    let rule = costs.rule();
    let methods = costs.methods().map(|it| {
        let cost = MethodCost {
            cost: it.cost.get(),
            seconds: it.time.map(|time| time.as_secs_f64()),
            source: Plain::new(it.source),
            requests: it.requests,
            origin_seconds: it.total.as_secs_f64(),
        };
        (Plain::new(it.method), cost)
    });
    RouteCost {
        shadow: rule.is_shadow,
        methods: methods.collect(),
    }
}

fn view(
    gateway: &Gateway,
    route: Option<&config::Route>,
    name: String,
    metrics: &RouteMetrics,
    minute: &Minute,
) -> Route {
    let zone = |limit: &config::RouteLimit| &gateway.zone(limit.zone).settings().name;
    let statuses = metrics.statuses();
    let statuses = statuses.map(|(status, count)| (Plain::new(&status.to_string()), count));
    let statuses: BTreeMap<_, _> = statuses.collect();
    let origin = route.and_then(config::Route::origin);
    let origin = origin.map(|origin| gateway.origin(origin));
    let refuses = route.and_then(|route| match route.action {
        RouteAction::Refuse(status) => Some(status),
        RouteAction::Forward(_) | RouteAction::Maintenance { .. } => None,
    });
    let maintained = route.and_then(|route| gateway.maintenances().of(route));
    let limits = route.map_or(&[][..], |route| &route.limits);
    Route {
        name: Plain::new(&name),
        origin: origin.map_or_else(Plain::default, |it| Plain::new(&it.settings().name)),
        refuses,
        maintenance: maintained.map(maintenance::view),
        zones: limits.iter().map(|it| Plain::new(zone(it))).collect(),
        requests: statuses.values().sum(),
        statuses,
        latency: minute.latency(&Of::Route(name), &metrics.latencies()),
        cost: None,
    }
}
