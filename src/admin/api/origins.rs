use actix_web::HttpResponse;
use actix_web::web::Data;

use crate::admin::views::{Origins, Plain, Server};
use crate::admin::{Admin, reply, views};
use crate::http::upstream::{Origin, ServerState};
use crate::limit::Moment;
use crate::time::clock;

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

fn view(origin: &Origin, now: Moment) -> views::Origin {
    let server = |state: ServerState<'_>| Server {
        url: Plain::new(&state.url.to_string()),
        healthy: state.healthy,
        in_flight: state.in_flight as u64,
        answered: state.answered,
        failed: state.failed,
    };
    let servers: Vec<_> = origin.servers(now).map(server).collect();
    views::Origin {
        name: Plain::new(&origin.settings().name),
        in_flight: servers.iter().map(|server| server.in_flight).sum(),
        max_in_flight: origin
            .settings()
            .max_in_flight
            .map(|most| most.get() as u64),
        servers,
    }
}
