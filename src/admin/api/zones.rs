use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use serde::Serialize;

use crate::actors::Zone;
use crate::admin::exposition::stats;
use crate::admin::{Admin, reply};
use crate::http::gateway::Gateway;
use crate::limit::Delay;
use crate::observe::metrics::{LimitStatus, Rejected};

#[derive(Serialize)]
struct Zones {
    zones: Vec<ZoneView>,
}

#[derive(Serialize)]
struct ZoneView {
    name: String,
    key: String,
    algorithm: &'static str,
    store: &'static str,
    on_store_failure: &'static str,
    rate: String,
    rate_per_second: f64,
    max_keys: usize,
    idle_timeout_seconds: f64,
    limits: Vec<LimitView>,
    totals: Totals,
    rejections: Rejections,
    depth: usize,
    depth_max: usize,
    oldest_wait_seconds: f64,
    keys: Keys,
}

#[derive(Serialize)]
struct LimitView {
    route: String,
    /// The `burst` of the limit. Without a queue: how many requests pass at once.
    burst: u32,
    /// How many requests pass at once above the rate; `None` with `nodelay`: all of them.
    delay: Option<u32>,
    nodelay: bool,
    max_wait_seconds: Option<f64>,
    dry_run: bool,
}

#[derive(Serialize)]
struct Totals {
    passed: u64,
    delayed: u64,
    rejected: u64,
    cancelled: u64,
    delayed_dry_run: u64,
    rejected_dry_run: u64,
}

#[derive(Serialize)]
struct Rejections {
    burst: u64,
    max_wait: u64,
    keys: u64,
    store: u64,
    restart: u64,
    stopping: u64,
}

#[derive(Serialize)]
struct Keys {
    active: usize,
    parked: usize,
}

pub(super) async fn all(admin: Data<Admin>) -> HttpResponse {
    let Some(gateway) = admin.gateway() else {
        return reply::not_now();
    };
    let mut zones = Vec::with_capacity(gateway.zones().len());
    for index in 0..gateway.zones().len() {
        match view(&gateway, index).await {
            Some(zone) => zones.push(zone),
            None => return busy(),
        }
    }
    reply::ok(&Zones { zones })
}

pub(super) async fn one(admin: Data<Admin>, name: Path<String>) -> HttpResponse {
    let Some(gateway) = admin.gateway() else {
        return reply::not_now();
    };
    let Some((index, _)) = find(&gateway, &name) else {
        return no_such_zone(&gateway, &name);
    };
    match view(&gateway, index).await {
        Some(zone) => reply::ok(&zone),
        None => busy(),
    }
}

/// The zone of this name, and its index.
pub(super) fn find<'g>(gateway: &'g Gateway, name: &str) -> Option<(usize, &'g Arc<Zone>)> {
    let mut zones = gateway.zones().iter().enumerate();
    zones.find(|(_, zone)| zone.settings().name == name)
}

pub(super) fn no_such_zone(gateway: &Gateway, name: &str) -> HttpResponse {
    let names = gateway.zones().iter().map(|zone| &*zone.settings().name);
    let names = names.collect::<Vec<_>>().join(", ");
    let message = format!("there is no zone {name:?}; the zones are: {names}");
    reply::error(StatusCode::NOT_FOUND, message)
}

/// The response if a worker does not report its part of a zone in time.
fn busy() -> HttpResponse {
    reply::error(
        StatusCode::SERVICE_UNAVAILABLE,
        "a worker did not answer in time; try again",
    )
}

async fn view(gateway: &Gateway, index: usize) -> Option<ZoneView> {
    let zone = gateway.zone(index);
    let (settings, metrics) = (zone.settings(), zone.metrics());
    let stats = stats(zone).await?;
    let total = |status| metrics.counted(status);
    let rejected = |reason| metrics.rejected(reason);
    Some(ZoneView {
        name: settings.name.clone(),
        key: settings.key.to_string(),
        algorithm: settings.algorithm.name(),
        store: settings.store.name(),
        on_store_failure: settings.on_store_failure.name(),
        rate: settings.rate.to_string(),
        rate_per_second: settings.rate.per_second(),
        max_keys: settings.max_keys.get(),
        idle_timeout_seconds: settings.idle_timeout.as_secs_f64(),
        limits: limits(gateway, index),
        totals: Totals {
            passed: total(LimitStatus::Passed),
            delayed: total(LimitStatus::Delayed),
            rejected: total(LimitStatus::Rejected),
            cancelled: total(LimitStatus::Cancelled),
            delayed_dry_run: total(LimitStatus::DelayedDryRun),
            rejected_dry_run: total(LimitStatus::RejectedDryRun),
        },
        rejections: Rejections {
            burst: rejected(Rejected::Burst),
            max_wait: rejected(Rejected::MaxWait),
            keys: rejected(Rejected::Keys),
            store: rejected(Rejected::Store),
            restart: rejected(Rejected::Restart),
            stopping: rejected(Rejected::Stopping),
        },
        depth: stats.depth,
        depth_max: stats.depth_max,
        oldest_wait_seconds: stats.oldest_wait.as_secs_f64(),
        keys: Keys {
            active: stats.active,
            parked: stats.parked,
        },
    })
}

/// The limits that routes have in a zone, in the order of the file.
fn limits(gateway: &Gateway, zone: usize) -> Vec<LimitView> {
    let queues = gateway.zone(zone).settings().algorithm.queues();
    let mut limits = Vec::new();
    for route in &gateway.settings().routes {
        for asked in route.limits.iter().filter(|asked| asked.zone == zone) {
            let delay = match asked.limit.delay {
                Delay::Above(delay) => Some(delay),
                Delay::Never => None,
            };
            limits.push(LimitView {
                route: route.name(),
                burst: asked.limit.burst.saturating_add(u32::from(!queues)),
                delay,
                nodelay: delay.is_none(),
                max_wait_seconds: asked.limit.max_wait.map(|span| span.as_secs_f64()),
                dry_run: route.dry_run,
            });
        }
    }
    limits
}
