use actix_web::HttpResponse;
use actix_web::web::Data;

use crate::admin::views::{FileAndNow, Gate, GateKey, Origins, Plain, Server};
use crate::admin::{Admin, gates, reply, views};
use crate::http::gateway::Gateway;
use crate::http::upstream::{Origin, OriginGate, ServerState};
use crate::limit::{Moment, Rate};
use crate::time::clock;

/// How many of the deepest keys of a gate are shown.
const DEEPEST: usize = 10;

pub(super) async fn all(admin: Data<Admin>) -> HttpResponse {
    let Some(gateway) = admin.gateway() else {
        return reply::not_now();
    };
    let now = clock::now();
    let origins = gateway.origins().iter();
    reply::ok(&Origins {
        origins: origins.map(|it| view(&gateway, it, now)).collect(),
    })
}

fn view(gateway: &Gateway, origin: &Origin, now: Moment) -> views::Origin {
    let server = |state: ServerState<'_>| Server {
        url: Plain::new(&state.url.to_string()),
        healthy: state.healthy,
        in_flight: state.in_flight as u64,
        answered: state.answered,
        failed: state.failed,
        ..Server::default()
    };
    let servers: Vec<_> = origin.servers(now).map(server).collect();
    views::Origin {
        name: Plain::new(&origin.settings().name),
        in_flight: servers.iter().map(|server| server.in_flight).sum(),
        max_in_flight: origin
            .settings()
            .max_in_flight
            .map(|most| most.get() as u64),
        gate: origin.gate().map(|it| gate(gateway, origin, it, now)),
        servers,
        ..views::Origin::default()
    }
}

fn gate(gateway: &Gateway, origin: &Origin, gate: &OriginGate, now: Moment) -> Gate {
    let settings = origin.settings();
    let state = gate.state(DEEPEST);
    let rate = |rate: Option<Rate>| rate.map(|it| Plain::new(&it.to_string()));
    let share = settings.share.map(|zone| gateway.zone(zone).settings());
    let deepest = state.deepest.iter().map(|(key, depth)| GateKey {
        key: gates::key_name(key),
        plan: gates::plan(share, key),
        queue_depth: *depth as u64,
        share: part(*depth, state.depth),
    });
    Gate {
        queue_depth: state.depth as u64,
        rate: FileAndNow {
            file: rate(settings.rate),
            now: rate(state.rate),
        },
        max_in_flight: FileAndNow {
            file: settings.max_in_flight.map(|most| most.get() as u64),
            now: state.max_in_flight.map(|most| most as u64),
        },
        share: share.map(|zone| Plain::new(&zone.name)),
        queue: settings.share.map(|_| settings.queue.get() as u64),
        max_queue: settings.max_queue.get() as u64,
        classes: gates::classes(&state.classes),
        rejections: gates::rejections(gate),
        blocked_seconds: gates::blocked_seconds(&state.blocked),
        backing_off: gates::backing_off(settings, &state.lowered, now),
        deepest: deepest.collect(),
    }
}

/// A part of a whole, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn part(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
