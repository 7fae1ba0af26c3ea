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

use actix_web::web::{self, ServiceConfig};

use super::{reading, reply};

pub(super) fn routes(app: &mut ServiceConfig) {
    let key = web::resource("/api/zones/{zone}/keys/{key:.*}")
        .route(web::delete().to(keys::forget))
        .default_service(web::to(async || reply::not_allowed("DELETE")));
    let of_key = web::resource("/api/zones/{zone}/keys/{key:.*}/override")
        .route(web::put().to(overrides::set))
        .route(web::delete().to(overrides::end))
        .default_service(web::to(async || reply::not_allowed("PUT, DELETE")));
    let of_zone = web::resource("/api/zones/{zone}/override")
        .route(web::put().to(overrides::set))
        .route(web::delete().to(overrides::end))
        .default_service(web::to(async || reply::not_allowed("PUT, DELETE")));
    let what_if = web::resource("/api/zones/{zone}/what-if")
        .route(web::post().to(what_if::ask))
        .default_service(web::to(async || reply::not_allowed("POST")));
    let reload = web::resource("/api/reload")
        .route(web::post().to(config::reload))
        .default_service(web::to(async || reply::not_allowed("POST")));
    let maintained = |path| {
        web::resource(path)
            .route(web::put().to(maintenance::set))
            .route(web::delete().to(maintenance::end))
            .default_service(web::to(async || reply::not_allowed("PUT, DELETE")))
    };
    let of_gate = web::resource("/api/origins/{origin}/override")
        .route(web::put().to(gates::set))
        .route(web::delete().to(gates::end))
        .default_service(web::to(async || reply::not_allowed("PUT, DELETE")));
    let experiments = web::resource("/api/find")
        .route(web::get().to(find::list))
        .route(web::head().to(find::list))
        .route(web::post().to(find::start))
        .default_service(web::to(async || reply::not_allowed("GET, HEAD, POST")));
    let experiment = web::resource("/api/find/{origin}")
        .route(web::get().to(find::show))
        .route(web::head().to(find::show))
        .route(web::put().to(find::renew))
        .route(web::delete().to(find::stop))
        .default_service(web::to(async || {
            reply::not_allowed("GET, HEAD, PUT, DELETE")
        }));
    let of_room = web::resource("/api/rooms/{origin}/override")
        .route(web::put().to(rooms::set))
        .route(web::delete().to(rooms::end))
        .default_service(web::to(async || reply::not_allowed("PUT, DELETE")));
    let word = web::resource("/api/rooms/{origin}/word")
        .route(web::put().to(rooms::set_word))
        .route(web::delete().to(rooms::end_word))
        .default_service(web::to(async || reply::not_allowed("PUT, DELETE")));
    let call = web::resource("/api/rooms/{origin}/call")
        .route(web::post().to(rooms::call))
        .default_service(web::to(async || reply::not_allowed("POST")));
    let empty = web::resource("/api/rooms/{origin}/empty")
        .route(web::post().to(rooms::empty))
        .default_service(web::to(async || reply::not_allowed("POST")));
    app.service(reading("/api/zones", zones::all))
        .service(reading("/api/zones/{zone}", zones::one))
        .service(reading("/api/zones/{zone}/keys", keys::list))
        .service(reading("/api/zones/{zone}/overrides", overrides::list))
        .service(of_zone)
        .service(of_key)
        .service(key)
        .service(what_if)
        .service(reading("/api/config", config::show))
        .service(reload)
        .service(maintained("/api/maintenance"))
        .service(maintained("/api/routes/{route:.*}/maintenance"))
        .service(reading("/api/origins", origins::all))
        .service(of_gate)
        .service(experiments)
        .service(experiment)
        .service(of_room)
        .service(word)
        .service(call)
        .service(empty)
        .service(reading("/api/headline", headline::now))
        .service(reading("/api/now", now::show))
        .service(reading("/api/routes", routes::all))
        .service(reading("/api/store", store::show));
}
