//! The gateway as JSON. docs/operations.md describes the requests and responses of each path.

mod body;
mod config;
mod find;
mod find_body;
mod gates;
mod keys;
pub(super) mod maintenance;
mod origins;
mod overrides;
pub(super) mod rooms;
mod routes;
mod store;
mod what_if;
mod zones;

use actix_web::http::Method;
use actix_web::web::{Data, ServiceConfig, route};

use super::reply::{self, Answer};
use super::{Admin, answering, live};

/// Registers each path with its methods. GET answers HEAD, too.
macro_rules! paths {
    ($app:ident: $($path:literal => $($method:ident $handler:path),+;)+) => {
        $($app.service(answering($path, [$((Method::$method, route().to($handler))),+]));)+
    };
}

/// Registers all paths of the port but those of the page.
pub(super) fn routes(app: &mut ServiceConfig) {
    paths! { app:
        "/metrics" => GET super::metrics;
        "/healthz" => GET super::healthz;
        "/readyz" => GET super::readyz;
        "/api/zones" => GET zones::all;
        "/api/zones/{zone}" => GET zones::one;
        "/api/zones/{zone}/keys" => GET keys::list;
        "/api/zones/{zone}/overrides" => GET overrides::list;
        "/api/zones/{zone}/override" => PUT overrides::set, DELETE overrides::end;
        "/api/zones/{zone}/keys/{key:.*}/override" => PUT overrides::set, DELETE overrides::end;
        "/api/zones/{zone}/keys/{key:.*}" => DELETE keys::forget;
        "/api/zones/{zone}/what-if" => POST what_if::run;
        "/api/config" => GET config::show;
        "/api/reload" => POST config::reload;
        "/api/maintenance" => PUT maintenance::set, DELETE maintenance::end;
        "/api/routes/{route:.*}/maintenance" => PUT maintenance::set, DELETE maintenance::end;
        "/api/origins" => GET origins::all;
        "/api/origins/{origin}/override" => PUT gates::set, DELETE gates::end;
        "/api/find" => GET find::list, POST find::start;
        "/api/find/{origin}" => GET find::show, PUT find::renew, DELETE find::stop;
        "/api/rooms/{origin}/override" => PUT rooms::set, DELETE rooms::end;
        "/api/rooms/{origin}/word" => PUT rooms::set_word, DELETE rooms::end_word;
        "/api/rooms/{origin}/call" => POST rooms::call;
        "/api/rooms/{origin}/empty" => POST rooms::empty;
        "/api/headline" => GET headline;
        "/api/live" => GET live::live;
        "/api/now" => GET live::now;
        "/api/routes" => GET routes::all;
        "/api/store" => GET store::show;
    }
}

/// Returns the present headline and the earlier warnings.
async fn headline(admin: Data<Admin>) -> Answer {
    Ok(reply::ok(&admin.recent.headlines.view()))
}
