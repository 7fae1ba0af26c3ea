//! `/api/origins`: origins with their servers, gates and waiting rooms.

use actix_web::web::Data;
use limit::{Moment, Rate};
use serde_json::{Value, json};

use crate::admin::Admin;
use crate::admin::reply::{self, Answer};
use crate::collapse::report as shared;
use crate::gate::report as gates;
use crate::gate::{GateSharing, OriginGate};
use crate::http::gateway::Gateway;
use crate::observe::metrics::Counts;
use crate::origin::{Availability, Failure, LastCheck, Origin, OutBy, Server};
use crate::room::report as rooms;
use crate::status::counts::{self, Labelled};
use crate::status::headline::words::part;
use crate::status::minute::{LatencySource, Minute, latency};
use crate::status::plain::Plain;
use crate::status::timestamp::timestamp;
use crate::time::clock;

/// Number of the deepest keys of a gate in a response.
const DEEPEST: usize = 10;

/// `GET /api/origins`: all origins.
pub(super) async fn all(admin: Data<Admin>) -> Answer {
    let gateway = admin.serving()?;
    let now = clock::now();
    let origins =
        (0..gateway.origins().len()).map(|index| view(&gateway, index, &admin.recent.minute, now));
    let mut view = json!({ "origins": origins.collect::<Vec<_>>() });
    reply::add(&mut view, "shared_answers", shared::answers(&gateway));
    Ok(reply::ok(&view))
}

/// JSON of an origin.
fn view(gateway: &Gateway, index: usize, minute: &Minute, now: Moment) -> Value {
    let origin = gateway.origin(index);
    let settings = origin.settings();
    let (mut codes, mut errors) = (Labelled::new(), Labelled::new());
    let mut latencies = Counts::default();
    let (mut servers, mut in_flight) = (Vec::new(), 0);
    for it in origin.servers() {
        let of = LatencySource::server(&settings.name, it.url());
        let recent = minute.counts(&of, &it.metrics.latencies());
        counts::add(&mut codes, &counts::responses(&it.metrics));
        counts::add(&mut errors, &counts::errors(&it.metrics));
        latencies.add(&recent);
        in_flight += it.in_flight.count();
        servers.push(server(it, &recent, now));
    }
    let mut view = json!({
        "name": Plain::new(&settings.name),
        "in_flight": in_flight,
        "max_in_flight": settings.max_in_flight,
        "gate": origin.gate().map(|it| gate(gateway, origin, it, now)),
        "codes": codes,
        "errors": errors,
        "latency": latency(&latencies),
        "servers": servers,
    });
    let permits = origin.gate().and_then(|it| it.permit_sharing());
    let permits = permits.map(|it| gates::permits(settings, &it));
    reply::add(&mut view, "permits", permits);
    reply::add(&mut view, "room", room(gateway, index, now));
    let shared = gateway.collapse_metrics(index);
    let shared = shared.map(|it| shared::view(counts::counted(it.requests.each())));
    reply::add(&mut view, "shared", shared);
    view
}

/// Status of an origin's waiting room.
fn room(gateway: &Gateway, origin: usize, now: Moment) -> Option<rooms::sample::Room> {
    let room = gateway.room(origin)?;
    let file = gateway.settings().origins.get(origin)?.room.as_ref()?;
    Some(rooms::view(room, file, &room.status(now)))
}

/// JSON of a server.
fn server(it: &Server, recent: &Counts, now: Moment) -> Value {
    let availability = it.availability(now);
    let failure = it.last_failure();
    let failure = failure
        .map(|Failure { at, text, .. }| json!({ "at": timestamp(at), "text": Plain::new(&text) }));
    let check = it.last_check().map(|LastCheck { at, found }| {
        let healthy = found.is_ok();
        let text = Plain::new(&found.unwrap_or_else(|why| why));
        json!({ "at": timestamp(at), "healthy": healthy, "text": text })
    });
    json!({
        "url": Plain::new(&it.url().to_string()),
        "healthy": availability == Availability::InUse,
        "in_flight": it.in_flight.count(),
        "answered": it.metrics.answered(),
        "failed": it.metrics.failed(),
        "state": availability.label(),
        "out": match availability {
            Availability::InUse | Availability::Failing => None,
            Availability::Out(since, by) => Some(out(since, by)),
        },
        "last_failure": failure,
        "last_check": check,
        "codes": counts::responses(&it.metrics),
        "errors": counts::errors(&it.metrics),
        "latency": latency(recent),
    })
}

/// JSON of a server's outage.
fn out(since: Moment, by: OutBy) -> Value {
    // Instant of the next request to the server. Null: health checks decide.
    let until = match by {
        OutBy::Failures(until) => Some(timestamp(until)),
        OutBy::Checks => None,
    };
    json!({ "since": timestamp(since), "until": until, "by": by.label() })
}

/// JSON of a gate.
fn gate(gateway: &Gateway, origin: &Origin, gate: &OriginGate, now: Moment) -> Value {
    let settings = origin.settings();
    let state = gate.state(DEEPEST);
    let share = settings.share.map(|zone| gateway.zone(zone).settings());
    let deepest = state.deepest.iter().map(|(key, depth)| {
        let mut view = json!({
            "key": gates::key_name(gateway, key),
            "queue_depth": depth,
            "share": part(*depth as u64, state.depth as u64),
        });
        reply::add(&mut view, "plan", gates::plan(gateway, key));
        view
    });
    let mut view = json!({
        "queue_depth": state.depth,
        "rate": gates::rate(settings, &state, |rate: Rate| rate.to_string()),
        "max_in_flight": gates::max_in_flight(settings, &state),
        "share": share.map(|zone| Plain::new(&zone.name)),
        "queue": settings.share.map(|_| settings.queue),
        "max_queue": settings.max_queue,
        "classes": gates::classes(&state.classes),
        "rejections": counts::counted(gate.metrics().rejections.each()),
        "blocked_seconds": gates::blocked_seconds(&state.blocked),
        "backing_off": gates::backing_off(settings, &state.lowered, now),
        "outage": gates::outage(settings, state.outage.as_ref(), now),
        "deepest": deepest.collect::<Vec<_>>(),
    });
    reply::add(&mut view, "sharing", state.sharing.as_ref().map(sharing));
    let overridden = state.overridden.as_ref().map(gates::overridden);
    reply::add(&mut view, "override", overridden);
    view
}

/// Status of the rate that gateways share at an origin.
fn sharing(sharing: &GateSharing) -> Value {
    let mut view = json!({
        "alone": sharing.is_alone,
        "part": sharing.part,
        "gateways": sharing.gateways,
    });
    let why = sharing.why_alone.as_ref();
    let reason = why.map(|error| Plain::new(&error.to_string()));
    reply::add(&mut view, "reason", reason);
    let remedy = why.map(|error| Plain::new(error.remedy()));
    reply::add(&mut view, "remedy", remedy);
    view
}
