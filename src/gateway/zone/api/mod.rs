//! `/api/zones`: zones with their plans and limits, and acts on them.

pub(crate) mod keys;
pub(crate) mod overrides;
pub(crate) mod what_if;

use std::sync::Arc;

use actix_web::web::{Data, Path};
use config::{self, RouteLimit, Words};
use limit::Delay;
use serde_json::{Value, json};

use crate::admin::Admin;
use crate::admin::reply::{self, Answer, Refusal};
use crate::http::gateway::Gateway;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::MAX_NAMED_ROUTES;
use crate::status::counts;
use crate::status::plain::Plain;
use crate::zone::report::stats;
use crate::zone::{Key, Zone};

/// `GET /api/zones`: all zones.
pub(crate) async fn all(admin: Data<Admin>) -> Answer {
    let gateway = admin.serving()?;
    let mut zones = Vec::with_capacity(gateway.zones().len());
    for index in 0..gateway.zones().len() {
        zones.push(zone_json(&gateway, index).await?);
    }
    Ok(reply::ok(&json!({ "zones": zones })))
}

/// `GET /api/zones/{zone}`: one zone.
pub(crate) async fn one(admin: Data<Admin>, name: Path<String>) -> Answer {
    let gateway = admin.serving()?;
    let (index, _) = find(&gateway, &name)?;
    Ok(reply::ok(&zone_json(&gateway, index).await?))
}

/// Finds a zone by name, with its index.
pub(crate) fn find<'g>(
    gateway: &'g Gateway,
    name: &str,
) -> Result<(usize, &'g Arc<Zone>), Refusal> {
    let zones = gateway.zones().iter();
    let mut numbered = zones.clone().enumerate();
    let found = numbered.find(|(_, zone)| zone.settings().name == name);
    found.ok_or_else(|| reply::unknown("zone", name, zones.map(|it| &*it.settings().name)))
}

/// Returns the name of a zone or of a key in the log and in the history of changes.
pub(crate) fn subject(zone: &Zone, key: Option<&Key>) -> String {
    let zone = zone.settings();
    let name = &zone.name;
    match key {
        None => format!("zones.{name}"),
        Some(key) => format!("zones.{name}, key {}", KeyNames::of(zone).short(key)),
    }
}

/// Creates the refusal for a worker that does not report its part of a zone in time.
pub(crate) fn worker_timeout() -> Refusal {
    reply::unavailable("a worker did not answer in time; try again")
}

/// Returns the JSON of a zone, by its index.
async fn zone_json(gateway: &Gateway, index: usize) -> Result<Value, Refusal> {
    let zone = gateway.zone(index);
    let (settings, metrics) = (zone.settings(), zone.metrics());
    let stats = stats(zone).await.ok_or_else(worker_timeout)?;
    let mut json = json!({
        "name": Plain::new(&settings.name),
        "key": Plain::new(&settings.key.to_string()),
        "algorithm": settings.algorithm.name(),
        "store": settings.store.word(),
        "on_store_failure": settings.on_store_failure.word(),
        "rate": settings.rate,
        "max_keys": settings.max_keys,
        "new_keys": settings.new_keys,
        "limits": limits(gateway, index),
        "totals": counts::totals(|status| metrics.statuses.get(status)),
        "rejections": counts::counted(metrics.rejections.each()),
        "depth": stats.depth,
        "depth_max": stats.depth_max,
        "in_flight": stats.in_flight,
        "oldest_wait_seconds": stats.oldest_wait.as_secs_f64(),
        "keys": { "active": stats.active, "parked": stats.parked },
    });
    let plans = plans(settings);
    reply::add(&mut json, "plans", (!plans.is_empty()).then_some(plans));
    reply::add(&mut json, "override", zone.overrides().zone.as_ref());
    Ok(json)
}

/// Returns the JSON of the plans of a zone, in the order of the file.
fn plans(zone: &config::Zone) -> Vec<Value> {
    let plans = zone.plans.iter().zip(zone.plans.counts());
    let plan_json = |(plan, keys): (&config::Plan, usize)| {
        json!({
            "plan": Plain::new(&plan.name),
            "keys": keys,
            "rate": plan.rate,
            "burst": plan.burst,
            "weight": plan.weight,
            "class": plan.class.as_deref().map(Plain::new),
        })
    };
    plans.map(plan_json).collect()
}

/// Returns the JSON of the routes' limits in a zone, in the order of the file.
fn limits(gateway: &Gateway, zone: usize) -> Vec<Value> {
    let queues = gateway.zone(zone).settings().algorithm.queues();
    let mut limits = Vec::new();
    for route in gateway.settings().routes.iter().take(MAX_NAMED_ROUTES) {
        for RouteLimit { limit, .. } in route.limits.iter().filter(|it| it.zone == zone) {
            let delay = match limit.delay {
                Delay::Above(delay) => Some(delay),
                Delay::Never => None,
            };
            limits.push(json!({
                "route": Plain::new(&route.name()),
                // In the file, the burst of an algorithm without a queue includes the request.
                "burst": u64::from(limit.burst) + u64::from(!queues),
                "delay": delay,
                "nodelay": delay.is_none(),
                "max_wait_seconds": limit.max_wait.map(|span| span.as_secs_f64()),
                "in_flight": limit.in_flight,
                "dry_run": route.dry_run,
            }));
        }
    }
    limits
}
