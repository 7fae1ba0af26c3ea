//! Files of gateways.

use std::fmt::Write;
use std::net::SocketAddr;

use super::{Gateway, Origin};

/// A file with the origin `app` over HTTP/1 and a route of all paths to it.
///
/// `server`: fields of `[server]`. `more`: further fields of the origin, and whole tables. Fields of the route may follow.
pub fn one_origin(origin: SocketAddr, server: &str, more: &str) -> String {
    to_app(&format!("http://{origin}"), server, more)
}

/// The same, over HTTP/2 without TLS.
pub fn one_h2c_origin(origin: SocketAddr, server: &str, more: &str) -> String {
    to_app(&format!("h2c://{origin}"), server, more)
}

fn to_app(url: &str, server: &str, more: &str) -> String {
    format!(
        r#"{server}
[origins.app]
servers = ["{url}"]
{more}
[[routes]]
path = "/"
origin = "app"
"#
    )
}

/// A file with one zone, whose key is the argument `key`, and one route with the limit `limit`.
pub fn one_zone(origin: &Origin, rate: &str, limit: &str) -> String {
    let zone = format!("\n[zones.z]\nkey = \"$arg_key\"\nrate = \"{rate}\"\n");
    let file = one_origin(origin.address, "", &zone);
    format!("{file}limits = [{{ zone = \"z\", {limit} }}]\n")
}

/// drip's file: an origin, then `zones` with their tables, then the routes: each a path and its fields.
pub fn file(origin: &Origin, zones: &str, routes: &[(&str, &str)]) -> String {
    let mut file = format!(
        "[origins.app]\nservers = [\"http://{}\"]\n{zones}\n",
        origin.address
    );
    for (path, text) in routes {
        writeln!(
            file,
            "[[routes]]\npath = \"{path}\"\norigin = \"app\"\n{text}"
        )
        .expect("a string takes it");
    }
    file
}

/// A zone's table in drip's file.
pub fn zone(name: &str, key: &str, rate: &str) -> String {
    format!("[zones.{name}]\nkey = \"{key}\"\nrate = \"{rate}\"\n")
}

/// drip in front of `origin`, with these zones and routes.
pub fn start_drip(origin: &Origin, zones: &str, routes: &[(&str, &str)]) -> Gateway {
    Gateway::start(&file(origin, zones, routes))
}
