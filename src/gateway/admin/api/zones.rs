use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use config;
use limit::Delay;

use crate::admin::Admin;
use crate::admin::reply::{self, Answer, Refusal};
use crate::http::gateway::Gateway;
use crate::observe::metrics::MAX_NAMED_ROUTES;
use crate::status::exposition::stats;
use crate::status::overridden;
use crate::status::views::{Keys, Limit, Plain, ZonePlan, Zones};
use crate::status::{counts, views};
use crate::zone::Zone;

pub(super) async fn all(admin: Data<Admin>) -> Answer {
    let gateway = admin.serving()?;
    let mut zones = Vec::with_capacity(gateway.zones().len());
    for index in 0..gateway.zones().len() {
        zones.push(view(&gateway, index).await?);
    }
    Ok(reply::ok(&Zones { zones }))
}

pub(super) async fn one(admin: Data<Admin>, name: Path<String>) -> Answer {
    let gateway = admin.serving()?;
    let (index, _) = find(&gateway, &name)?;
    Ok(reply::ok(&view(&gateway, index).await?))
}

/// The zone of this name, and its index.
pub(super) fn find<'g>(
    gateway: &'g Gateway,
    name: &str,
) -> Result<(usize, &'g Arc<Zone>), Refusal> {
    let zones = gateway.zones().iter();
    let mut numbered = zones.clone().enumerate();
    let found = numbered.find(|(_, zone)| zone.settings().name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = zones.map(|zone| &*zone.settings().name).collect();
        let names = names.join(", ");
        let message = format!("there is no zone {name:?}; the zones are: {names}");
        Refusal::new(StatusCode::NOT_FOUND, message)
    })
}

/// The response if a worker does not report its part of a zone in time.
pub(super) fn busy() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "a worker did not answer in time; try again",
    )
}

async fn view(gateway: &Gateway, index: usize) -> Result<views::Zone, Refusal> {
    let zone = gateway.zone(index);
    let (settings, metrics) = (zone.settings(), zone.metrics());
    let stats = stats(zone).await.ok_or_else(busy)?;
    Ok(views::Zone {
        name: Plain::new(&settings.name),
        key: Plain::new(&settings.key.to_string()),
        algorithm: settings.algorithm.name().into(),
        store: settings.store.name().into(),
        on_store_failure: settings.on_store_failure.name().into(),
        rate: Plain::new(&settings.rate.to_string()),
        max_keys: settings.max_keys.get() as u64,
        new_keys: settings.new_keys.map(|rate| Plain::new(&rate.to_string())),
        limits: limits(gateway, index),
        plans: plans(settings),
        totals: counts::totals(|status| metrics.counted(status)),
        rejections: counts::rejections(metrics),
        depth: stats.depth as u64,
        depth_max: stats.depth_max as u64,
        in_flight: stats.in_flight as u64,
        oldest_wait_seconds: stats.oldest_wait.as_secs_f64(),
        keys: Keys {
            active: stats.active as u64,
            parked: stats.parked as u64,
        },
        overridden: zone.overrides().zone.as_ref().map(overridden::view),
    })
}

/// The plans of a zone, in the order of the file.
fn plans(zone: &config::Zone) -> Vec<ZonePlan> {
    let plans = zone.plans.iter().zip(zone.plans.counts());
    let view = |(plan, keys): (&config::Plan, usize)| ZonePlan {
        plan: Plain::new(&plan.name),
        keys: keys as u64,
        rate: plan.rate.map(|rate| Plain::new(&rate.to_string())),
        burst: plan.burst.map(u64::from),
        weight: plan.weight,
        class: plan.class.as_deref().map(Plain::new),
    };
    plans.map(view).collect()
}

/// The limits that routes have in a zone, in the order of the file.
fn limits(gateway: &Gateway, zone: usize) -> Vec<Limit> {
    let queues = gateway.zone(zone).settings().algorithm.queues();
    let mut limits = Vec::new();
    for route in gateway.settings().routes.iter().take(MAX_NAMED_ROUTES) {
        for asked in route.limits.iter().filter(|asked| asked.zone == zone) {
            let delay = match asked.limit.delay {
                Delay::Above(delay) => Some(u64::from(delay)),
                Delay::Never => None,
            };
            limits.push(Limit {
                route: Plain::new(&route.name()),
                burst: u64::from(asked.limit.burst) + u64::from(!queues),
                delay,
                nodelay: delay.is_none(),
                max_wait_seconds: asked.limit.max_wait.map(|span| span.as_secs_f64()),
                in_flight: asked.limit.in_flight.map(|most| most.get().into()),
                dry_run: route.dry_run,
            });
        }
    }
    limits
}
