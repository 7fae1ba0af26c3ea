//! `/api/origins`: origins with their servers, gates and waiting rooms, as JSON.

use actix_web::web::Data;
use limit::Moment;
use serde_json::{Value, json};

use crate::admin::Admin;
use crate::admin::reply::{self, Answer};
use crate::collapse::report as shared;
use crate::gate::api::gate_json;
use crate::gate::report::permits_status;
use crate::http::gateway::Gateway;
use crate::observe::metrics::Counts;
use crate::origin::{Availability, Failure, LastCheck, OutBy, Server};
use crate::room::report as rooms;
use crate::status::counts::{self, Labelled};
use crate::status::minute::{LatencySource, Minute, latency};
use crate::status::plain::Plain;
use crate::status::timestamp::timestamp;
use crate::time::clock;

/// `GET /api/origins`: all origins.
pub(crate) async fn all(admin: Data<Admin>) -> Answer {
    let gateway = admin.serving()?;
    let now = clock::now();
    let origins = (0..gateway.origins().len())
        .map(|index| origin_json(&gateway, index, &admin.recent.minute, now));
    let mut json = json!({ "origins": origins.collect::<Vec<_>>() });
    reply::add(&mut json, "shared_answers", shared::answers(&gateway));
    Ok(reply::ok(&json))
}

/// JSON of an origin.
fn origin_json(gateway: &Gateway, index: usize, minute: &Minute, now: Moment) -> Value {
    let origin = gateway.origin(index);
    let settings = origin.settings();
    let (mut codes, mut errors) = (Labelled::new(), Labelled::new());
    let mut latencies = Counts::default();
    let (mut servers, mut in_flight) = (Vec::new(), 0);
    for server in origin.servers() {
        let source = LatencySource::server(&settings.name, server.url());
        let recent = minute.counts(&source, &server.metrics.latencies());
        counts::add(&mut codes, &counts::responses(&server.metrics));
        counts::add(&mut errors, &counts::errors(&server.metrics));
        latencies.add(&recent);
        in_flight += server.in_flight.count();
        servers.push(server_json(server, &recent, now));
    }
    let mut json = json!({
        "name": Plain::new(&settings.name),
        "in_flight": in_flight,
        "max_in_flight": settings.max_in_flight,
        "gate": origin.gate().map(|gate| gate_json(gateway, origin, gate, now)),
        "codes": codes,
        "errors": errors,
        "latency": latency(&latencies),
        "servers": servers,
    });
    let permits = origin.gate().and_then(|gate| gate.permit_sharing());
    let permits = permits.map(|sharing| permits_status(settings, &sharing));
    reply::add(&mut json, "permits", permits);
    reply::add(&mut json, "room", room_status(gateway, index, now));
    let shared = gateway.collapse_metrics(index);
    let shared = shared.map(|it| shared::shared_status(counts::counted(it.requests.each())));
    reply::add(&mut json, "shared", shared);
    json
}

/// Status of an origin's waiting room.
fn room_status(gateway: &Gateway, origin: usize, now: Moment) -> Option<rooms::sample::Room> {
    let room = gateway.room(origin)?;
    let file = gateway.settings().origins.get(origin)?.room.as_ref()?;
    Some(rooms::room_status(room, file, &room.status(now)))
}

/// JSON of a server.
fn server_json(server: &Server, recent: &Counts, now: Moment) -> Value {
    let availability = server.availability(now);
    let failure = server.last_failure();
    let failure = failure
        .map(|Failure { at, text, .. }| json!({ "at": timestamp(at), "text": Plain::new(&text) }));
    let check = server.last_check().map(|LastCheck { at, found }| {
        let healthy = found.is_ok();
        let text = Plain::new(&found.unwrap_or_else(|why| why));
        json!({ "at": timestamp(at), "healthy": healthy, "text": text })
    });
    json!({
        "url": Plain::new(&server.url().to_string()),
        "healthy": availability == Availability::InUse,
        "in_flight": server.in_flight.count(),
        "answered": server.metrics.answered(),
        "failed": server.metrics.failed(),
        "state": availability.label(),
        "out": match availability {
            Availability::InUse | Availability::Failing => None,
            Availability::Out(since, by) => Some(outage_json(since, by)),
        },
        "last_failure": failure,
        "last_check": check,
        "codes": counts::responses(&server.metrics),
        "errors": counts::errors(&server.metrics),
        "latency": latency(recent),
    })
}

/// JSON of a server's outage.
fn outage_json(since: Moment, by: OutBy) -> Value {
    // Instant of the next request to the server. Null: health checks decide.
    let until = match by {
        OutBy::Failures(until) => Some(timestamp(until)),
        OutBy::Checks => None,
    };
    json!({ "since": timestamp(since), "until": until, "by": by.label() })
}
