use std::num::NonZeroUsize;

use actix_web::HttpResponse;
use actix_web::web::Data;
use serde::Serialize;

use crate::admin::{Admin, reply};
use crate::http::upstream::{Origin, ServerState};
use crate::limit::Moment;
use crate::time::clock;

#[derive(Serialize)]
struct Origins<'g> {
    origins: Vec<OriginView<'g>>,
}

#[derive(Serialize)]
struct OriginView<'g> {
    name: &'g str,
    in_flight: usize,
    max_in_flight: Option<NonZeroUsize>,
    servers: Vec<ServerView>,
}

#[derive(Serialize)]
struct ServerView {
    url: String,
    healthy: bool,
    in_flight: usize,
    answered: u64,
    failed: u64,
}

pub(super) async fn all(admin: Data<Admin>) -> HttpResponse {
    let Some(gateway) = admin.gateway() else {
        return reply::not_now();
    };
    let now = clock::now();
    let origins = gateway.origins().iter();
    reply::ok(&Origins {
        origins: origins.map(|origin| view(origin, now)).collect(),
    })
}

fn view(origin: &Origin, now: Moment) -> OriginView<'_> {
    let server = |state: ServerState<'_>| ServerView {
        url: state.url.to_string(),
        healthy: state.healthy,
        in_flight: state.in_flight,
        answered: state.answered,
        failed: state.failed,
    };
    let servers: Vec<_> = origin.servers(now).map(server).collect();
    OriginView {
        name: &origin.settings().name,
        in_flight: servers.iter().map(|server| server.in_flight).sum(),
        max_in_flight: origin.settings().max_in_flight,
        servers,
    }
}
