//! `/api/zones/{zone}/what-if`: what would other numbers do?

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, RETRY_AFTER};
use actix_web::web::{self, Bytes, Data, Path};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::zones::{busy, find, no_such_zone};
use crate::admin::{Admin, reply};
use crate::status::outcomes::Outcomes;
use crate::status::views::WhatIf;
use crate::status::what_if::{OtherNumbers, differs, replay};
use crate::time::clock;

/// One replay at a time: it keeps a processor busy.
static ONE: Semaphore = Semaphore::const_new(1);

/// How long the workers may take to hand out their arrivals.
const COLLECTED_IN: Duration = Duration::from_secs(1);
/// How long a replay may take. The most arrivals that a zone keeps take a fraction of a second.
const REPLAYED_IN: Duration = Duration::from_secs(5);

pub(super) async fn ask(
    admin: Data<Admin>,
    outcomes: Data<Outcomes>,
    name: Path<String>,
    body: Bytes,
) -> HttpResponse {
    let Some(gateway) = admin.gateway() else {
        return reply::not_now();
    };
    let Some((index, zone)) = find(&gateway, &name) else {
        return no_such_zone(&gateway, &name);
    };
    let wanted = match OtherNumbers::read(&body, zone.settings()) {
        Ok(wanted) => wanted,
        Err(message) => return reply::error(StatusCode::BAD_REQUEST, message),
    };
    let Ok(permit) = ONE.try_acquire() else {
        return later("another replay is running; try again when it has ended");
    };
    let Ok(arrivals) = timeout(COLLECTED_IN, zone.arrivals()).await else {
        return busy();
    };
    let happened = outcomes.since(arrivals.since(), zone);
    let rate_now = zone.overrides().zone.as_ref().and_then(|it| it.rate);
    let replayed = web::block(move || {
        let _one = permit;
        let deadline = clock::now() + REPLAYED_IN;
        let mut settings = gateway.settings().clone();
        if let (Some(rate), Some(zone)) = (rate_now, settings.zones.get_mut(index)) {
            zone.rate = rate;
        }
        let view = replay(arrivals.in_order(), &settings, index, &wanted, deadline)?;
        let (since, until) = (arrivals.since(), arrivals.until());
        Some(WhatIf {
            since: Duration::from_nanos(since.as_nanos()).as_secs_f64(),
            span_seconds: until.since(since).as_secs_f64(),
            differs: happened.as_ref().and_then(|it| differs(&view.now, it)),
            happened,
            ..view
        })
    });
    match replayed.await {
        Ok(Some(view)) => reply::ok(&view),
        Ok(None) => {
            later("the replay did not end in time; try again when the machine is less busy")
        }
        Err(error) => reply::error(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the replay failed: {error}; this is an error of drip"),
        ),
    }
}

fn later(message: &str) -> HttpResponse {
    let mut response = reply::error(StatusCode::SERVICE_UNAVAILABLE, message);
    let value = HeaderValue::from_static("1");
    response.headers_mut().insert(RETRY_AFTER, value);
    response
}
