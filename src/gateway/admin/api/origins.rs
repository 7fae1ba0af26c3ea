use actix_web::web::Data;
use limit::Moment;

use crate::admin::Admin;
use crate::admin::reply::{self, Answer};
use crate::gate::{GateSharing, OriginGate};
use crate::http::gateway::Gateway;
use crate::observe::metrics::Counts;
use crate::origin::{Availability, Failure, LastCheck, Origin, OutBy, Outage, ServerState};
use crate::status::counts::Labelled;
use crate::status::minute::{Minute, Of, latency};
use crate::status::timestamp::timestamp;
use crate::status::views::{Check, Event, Gate, GateKey, Origins, Out, Plain, Server, Sharing};
use crate::status::{counts, gates, rooms, shared, views};
use crate::time::clock;
use crate::zone::StoreRefusal;

/// How many of the deepest keys of a gate are shown.
const DEEPEST: usize = 10;

pub(super) async fn all(admin: Data<Admin>) -> Answer {
    let gateway = admin.serving()?;
    let now = clock::now();
    let origins = gateway.origins().iter().enumerate();
    let view = |(index, origin): (usize, &Origin)| views::Origin {
        room: room(&gateway, index, now),
        shared: gateway
            .collapse_metrics(index)
            .map(|it| shared::view(shared::requests(it))),
        ..view(&gateway, origin, &admin.recent.minute, now)
    };
    Ok(reply::ok(&Origins {
        origins: origins.map(view).collect(),
        shared_answers: shared::answers(&gateway),
    }))
}

fn view(gateway: &Gateway, origin: &Origin, minute: &Minute, now: Moment) -> views::Origin {
    let settings = origin.settings();
    let (mut codes, mut errors) = (Labelled::new(), Labelled::new());
    let mut latencies = Counts::default();
    let mut servers = Vec::new();
    for state in origin.servers(now) {
        let of = Of::server(&settings.name, state.url);
        let recent = minute.counts(&of, &state.metrics.latencies());
        let server = server(state, &recent);
        counts::add(&mut codes, &server.codes);
        counts::add(&mut errors, &server.errors);
        latencies.add(&recent);
        servers.push(server);
    }
    views::Origin {
        name: Plain::new(&settings.name),
        in_flight: servers.iter().map(|server| server.in_flight).sum(),
        max_in_flight: settings.max_in_flight.map(|most| most.get() as u64),
        gate: origin.gate().map(|it| gate(gateway, origin, it, now)),
        places: origin
            .gate()
            .and_then(|it| it.place_sharing())
            .map(|it| gates::places(settings, &it)),
        codes,
        errors,
        latency: latency(&latencies),
        servers,
        room: None,
        shared: None,
    }
}

fn room(gateway: &Gateway, origin: usize, now: Moment) -> Option<views::Room> {
    let room = gateway.room(origin)?;
    let file = gateway.settings().origins.get(origin)?.room.as_ref()?;
    Some(rooms::view(room, file, &room.status(now)))
}

fn server(state: ServerState<'_>, recent: &Counts) -> Server {
    Server {
        url: Plain::new(&state.url.to_string()),
        healthy: state.availability == Availability::InUse,
        in_flight: state.in_flight as u64,
        answered: state.metrics.answered(),
        failed: state.metrics.failed(),
        state: state.availability.label().into(),
        out: match state.availability {
            Availability::InUse | Availability::Failing => None,
            Availability::Out(outage) => Some(out(outage)),
        },
        last_failure: state.last_failure.map(|Failure { at, text, .. }| Event {
            at: timestamp(at),
            text: Plain::new(&text),
        }),
        last_check: state.last_check.map(|LastCheck { at, found }| Check {
            at: timestamp(at),
            healthy: found.is_ok(),
            text: Plain::new(&found.unwrap_or_else(|why| why)),
        }),
        codes: counts::responses(state.metrics),
        errors: counts::errors(state.metrics),
        latency: latency(recent),
    }
}

fn out(outage: Outage) -> Out {
    Out {
        since: timestamp(outage.since),
        until: match outage.by {
            OutBy::Failures(until) => Some(timestamp(until)),
            OutBy::Checks => None,
        },
        by: outage.by.label().into(),
    }
}

fn gate(gateway: &Gateway, origin: &Origin, gate: &OriginGate, now: Moment) -> Gate {
    let settings = origin.settings();
    let state = gate.state(DEEPEST);
    let share = settings.share.map(|zone| gateway.zone(zone).settings());
    let deepest = state.deepest.iter().map(|(key, depth)| GateKey {
        key: gates::key_name(gateway, key),
        plan: gates::plan(gateway, key),
        queue_depth: *depth as u64,
        share: part(*depth, state.depth),
    });
    Gate {
        queue_depth: state.depth as u64,
        rate: gates::rate(settings, &state, |rate| Plain::new(&rate.to_string())),
        max_in_flight: gates::max_in_flight(settings, &state),
        sharing: state.sharing.map(|sharing| Sharing {
            alone: sharing.is_alone,
            part: sharing.part,
            gateways: sharing.gateways,
            reason: why(&sharing, |it| &it.reason),
            remedy: why(&sharing, |it| it.remedy),
        }),
        share: share.map(|zone| Plain::new(&zone.name)),
        queue: settings.share.map(|_| settings.queue.get() as u64),
        max_queue: settings.max_queue.get() as u64,
        classes: gates::classes(&state.classes),
        rejections: gates::rejections(gate),
        blocked_seconds: gates::blocked_seconds(&state.blocked),
        overridden: state.overridden.as_ref().map(gates::overridden),
        backing_off: gates::backing_off(settings, &state.lowered, now),
        outage: gates::outage(settings, state.outage.as_ref(), now),
        deepest: deepest.collect(),
    }
}

/// Why a gate goes on alone, if it does.
fn why(sharing: &GateSharing, text: impl Fn(&StoreRefusal) -> &str) -> Option<Plain> {
    sharing.why_alone.as_ref().map(|it| Plain::new(text(it)))
}

/// A part of a whole, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn part(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
