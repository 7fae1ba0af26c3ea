//! Files of gateways.

use std::fmt::{Debug, Write};
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
    format!("{server}{}", servers(&[url], more))
}

/// The URLs of servers over HTTP/1.
pub fn urls(addresses: &[SocketAddr]) -> Vec<String> {
    addresses.iter().map(|to| format!("http://{to}")).collect()
}

/// A file whose origin `app` has these servers, each a URL, and these further fields and tables.
///
/// It ends with a route of all paths, whose fields may follow.
pub fn servers(urls: &[impl Debug], more: &str) -> String {
    format!(
        r#"
[origins.app]
servers = {urls:?}
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
