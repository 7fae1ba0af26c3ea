//! The gateway as JSON. docs/operations.md describes what each path takes and returns.

mod body;
mod config;
mod find;
mod find_body;
mod gates;
mod headline;
mod keys;
pub(super) mod maintenance;
mod now;
mod origins;
mod overrides;
pub(super) mod rooms;
mod routes;
mod span;
mod store;
mod what_if;
mod zones;

use actix_web::web::{ServiceConfig, delete, get, head, post, put};

use super::{answering, reading};

pub(super) fn routes(app: &mut ServiceConfig) {
    let maintained = |path| {
        let routes = [put().to(maintenance::set), delete().to(maintenance::end)];
        answering(path, "PUT, DELETE", routes)
    };
    app.service(reading("/api/zones", zones::all))
        .service(reading("/api/zones/{zone}", zones::one))
        .service(reading("/api/zones/{zone}/keys", keys::list))
        .service(reading("/api/zones/{zone}/overrides", overrides::list))
        .service(answering(
            "/api/zones/{zone}/override",
            "PUT, DELETE",
            [put().to(overrides::set), delete().to(overrides::end)],
        ))
        .service(answering(
            "/api/zones/{zone}/keys/{key:.*}/override",
            "PUT, DELETE",
            [put().to(overrides::set), delete().to(overrides::end)],
        ))
        .service(answering(
            "/api/zones/{zone}/keys/{key:.*}",
            "DELETE",
            [delete().to(keys::forget)],
        ))
        .service(answering(
            "/api/zones/{zone}/what-if",
            "POST",
            [post().to(what_if::ask)],
        ))
        .service(reading("/api/config", config::show))
        .service(answering(
            "/api/reload",
            "POST",
            [post().to(config::reload)],
        ))
        .service(maintained("/api/maintenance"))
        .service(maintained("/api/routes/{route:.*}/maintenance"))
        .service(reading("/api/origins", origins::all))
        .service(answering(
            "/api/origins/{origin}/override",
            "PUT, DELETE",
            [put().to(gates::set), delete().to(gates::end)],
        ))
        .service(answering(
            "/api/find",
            "GET, HEAD, POST",
            [
                get().to(find::list),
                head().to(find::list),
                post().to(find::start),
            ],
        ))
        .service(answering(
            "/api/find/{origin}",
            "GET, HEAD, PUT, DELETE",
            [
                get().to(find::show),
                head().to(find::show),
                put().to(find::renew),
                delete().to(find::stop),
            ],
        ))
        .service(answering(
            "/api/rooms/{origin}/override",
            "PUT, DELETE",
            [put().to(rooms::set), delete().to(rooms::end)],
        ))
        .service(answering(
            "/api/rooms/{origin}/word",
            "PUT, DELETE",
            [put().to(rooms::set_word), delete().to(rooms::end_word)],
        ))
        .service(answering(
            "/api/rooms/{origin}/call",
            "POST",
            [post().to(rooms::call)],
        ))
        .service(answering(
            "/api/rooms/{origin}/empty",
            "POST",
            [post().to(rooms::empty)],
        ))
        .service(reading("/api/headline", headline::now))
        .service(reading("/api/now", now::show))
        .service(reading("/api/routes", routes::all))
        .service(reading("/api/store", store::show));
}
