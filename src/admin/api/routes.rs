use std::collections::{BTreeMap, HashSet};

use actix_web::web::Data;

use super::maintenance;
use crate::admin::Admin;
use crate::admin::reply::{self, Answer};
use crate::config::{self, RouteAction};
use crate::http::gateway::Gateway;
use crate::observe::metrics::{MAX_NAMED_ROUTES, RouteMetrics};
use crate::status::counts;
use crate::status::minute::{Minute, Of};
use crate::status::views::{Plain, Route, Routes};

pub(super) async fn all(admin: Data<Admin>) -> Answer {
    let gateway = admin.serving()?;
    // Routes with the same host and path count together: they are one here.
    let mut seen = HashSet::new();
    let counted = gateway.counted_routes().enumerate();
    let counted = counted.filter(|(_, (name, _))| seen.insert(name.clone()));
    let routes = counted.map(|(index, (name, metrics))| {
        let route = gateway.settings().routes.get(index);
        // What is behind them has one name together.
        let route = route.filter(|_| index < MAX_NAMED_ROUTES);
        view(&gateway, route, name, metrics, &admin.recent.minute)
    });
    Ok(reply::ok(&Routes {
        routes: routes.collect(),
        unrouted: counts::codes(gateway.no_route_metrics()),
        maintenance: gateway.maintenances().all.as_ref().map(maintenance::view),
    }))
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
    }
}
