//! Paths of the admin port, and some of their handlers.
//!
//! The handlers for zones, gates, rooms, origins and the store are in `api` of their folders.
//! docs/operate/api.md lists all paths.

mod config;
mod find;
mod find_body;
pub(super) mod maintenance;
mod routes;

use actix_web::http::Method;
use actix_web::web::{Data, ServiceConfig, route};

use super::reply::{self, Answer};
use super::{Admin, live, resource};
use crate::gate::api as gate;
use crate::origin::api as origins;
use crate::room::api as room;
use crate::store::api as store;
use crate::zone::api::{self as zones, keys, overrides, what_if};

/// Registers each path with its methods. GET answers HEAD, too.
macro_rules! paths {
    ($app:ident: $($path:literal => $($method:ident $handler:path),+;)+) => {
        $($app.service(resource($path, [$((Method::$method, route().to($handler))),+]));)+
    };
}

/// Registers all paths of the port except those of the page.
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
        "/api/origins/{origin}/override" => PUT gate::set, DELETE gate::end;
        "/api/find" => GET find::list, POST find::start;
        "/api/find/{origin}" => GET find::show, PUT find::renew, DELETE find::stop;
        "/api/rooms/{origin}/override" => PUT room::set, DELETE room::end;
        "/api/rooms/{origin}/word" => PUT room::set_word, DELETE room::end_word;
        "/api/rooms/{origin}/call" => POST room::call;
        "/api/rooms/{origin}/empty" => POST room::empty;
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
