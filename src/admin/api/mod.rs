//! The gateway as JSON. docs/operations.md describes what each path takes and returns.

mod config;
mod keys;
mod origins;
mod what_if;
mod zones;

use actix_web::web::{self, ServiceConfig};

use super::{reading, reply};

pub(super) fn routes(app: &mut ServiceConfig) {
    let key = web::resource("/api/zones/{zone}/keys/{key:.*}")
        .route(web::delete().to(keys::forget))
        .default_service(web::to(async || reply::not_allowed("DELETE")));
    let what_if = web::resource("/api/zones/{zone}/what-if")
        .route(web::post().to(what_if::ask))
        .default_service(web::to(async || reply::not_allowed("POST")));
    let reload = web::resource("/api/reload")
        .route(web::post().to(config::reload))
        .default_service(web::to(async || reply::not_allowed("POST")));
    app.service(reading("/api/zones", zones::all))
        .service(reading("/api/zones/{zone}", zones::one))
        .service(reading("/api/zones/{zone}/keys", keys::list))
        .service(key)
        .service(what_if)
        .service(reading("/api/config", config::show))
        .service(reload)
        .service(reading("/api/origins", origins::all));
}
