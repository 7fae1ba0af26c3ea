use std::collections::{BTreeMap, HashSet};

use actix_web::HttpResponse;
use actix_web::web::Data;

use crate::admin::minute::{Minute, Of};
use crate::admin::views::{Plain, Route, Routes};
use crate::admin::{Admin, counts, reply};
use crate::config::{self, RouteAction};
use crate::http::gateway::Gateway;
use crate::observe::metrics::RouteMetrics;

pub(super) async fn all(admin: Data<Admin>, minute: Data<Minute>) -> HttpResponse {
    let Some(gateway) = admin.gateway() else {
        return reply::not_now();
    };
    // Routes with the same host and path count together: they are one here.
    let mut seen = HashSet::new();
    let routes = gateway.settings().routes.iter().enumerate();
    let routes = routes.filter(|(_, route)| seen.insert(route.name()));
    let routes = routes.map(|(index, route)| {
        let metrics = gateway.route_metrics(index);
        view(&gateway, route, metrics, &minute)
    });
    reply::ok(&Routes {
        routes: routes.collect(),
        unrouted: counts::codes(gateway.no_route_metrics()),
    })
}

fn view(
    gateway: &Gateway,
    route: &config::Route,
    metrics: &RouteMetrics,
    minute: &Minute,
) -> Route {
    let zone = |limit: &config::RouteLimit| &gateway.zone(limit.zone).settings().name;
    let statuses = metrics.statuses();
    let statuses = statuses.map(|(status, count)| (Plain::new(&status.to_string()), count));
    let statuses: BTreeMap<_, _> = statuses.collect();
    let (origin, refuses) = match route.action {
        RouteAction::Forward(origin) => (Some(gateway.origin(origin)), None),
        RouteAction::Refuse(status) => (None, Some(status)),
    };
    Route {
        name: Plain::new(&route.name()),
        origin: origin.map_or_else(Plain::default, |it| Plain::new(&it.settings().name)),
        refuses,
        zones: route.limits.iter().map(|it| Plain::new(zone(it))).collect(),
        requests: statuses.values().sum(),
        statuses,
        latency: minute.latency(&Of::Route(route.name()), &metrics.latencies()),
    }
}
