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

use actix_web::web::{Data, ServiceConfig, delete, get, head, post, put};

use super::reply::{self, Answer};
use super::{Admin, answering, live};

/// Registers each path with its methods. GET answers HEAD, too.
macro_rules! paths {
    ($app:ident: $($path:literal => $($method:ident $handler:path),+;)+) => {
        $($app.service(answering($path, [$(paths!(@$method $handler)),+]));)+
    };
    (@get $handler:path) => {
        ("GET, HEAD", vec![get().to($handler), head().to($handler)])
    };
    (@put $handler:path) => {
        ("PUT", vec![put().to($handler)])
    };
    (@post $handler:path) => {
        ("POST", vec![post().to($handler)])
    };
    (@delete $handler:path) => {
        ("DELETE", vec![delete().to($handler)])
    };
}

/// Registers all paths of the API.
pub(super) fn routes(app: &mut ServiceConfig) {
    paths! { app:
        "/api/zones" => get zones::all;
        "/api/zones/{zone}" => get zones::one;
        "/api/zones/{zone}/keys" => get keys::list;
        "/api/zones/{zone}/overrides" => get overrides::list;
        "/api/zones/{zone}/override" => put overrides::set, delete overrides::end;
        "/api/zones/{zone}/keys/{key:.*}/override" => put overrides::set, delete overrides::end;
        "/api/zones/{zone}/keys/{key:.*}" => delete keys::forget;
        "/api/zones/{zone}/what-if" => post what_if::ask;
        "/api/config" => get config::show;
        "/api/reload" => post config::reload;
        "/api/maintenance" => put maintenance::set, delete maintenance::end;
        "/api/routes/{route:.*}/maintenance" => put maintenance::set, delete maintenance::end;
        "/api/origins" => get origins::all;
        "/api/origins/{origin}/override" => put gates::set, delete gates::end;
        "/api/find" => get find::list, post find::start;
        "/api/find/{origin}" => get find::show, put find::renew, delete find::stop;
        "/api/rooms/{origin}/override" => put rooms::set, delete rooms::end;
        "/api/rooms/{origin}/word" => put rooms::set_word, delete rooms::end_word;
        "/api/rooms/{origin}/call" => post rooms::call;
        "/api/rooms/{origin}/empty" => post rooms::empty;
        "/api/headline" => get headline;
        "/api/now" => get live::now;
        "/api/routes" => get routes::all;
        "/api/store" => get store::show;
    }
}

/// Returns the present headline and the earlier warnings.
async fn headline(admin: Data<Admin>) -> Answer {
    Ok(reply::ok(&admin.recent.headlines.view()))
}
