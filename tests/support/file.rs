//! Configuration files of gateways.

use std::fmt::{Debug, Write};
use std::net::SocketAddr;

use super::{Gateway, Origin};

/// Returns a file with the origin `app` over HTTP/1 and a route of all paths to it.
///
/// `server`: fields of `[server]`. `more`: further fields of the origin, and whole tables. Fields
/// of the route may follow.
pub fn one_origin(origin: SocketAddr, server: &str, more: &str) -> String {
    to_app(&format!("http://{origin}"), server, more)
}

/// Returns the same file with an origin over HTTP/2 without TLS.
pub fn one_h2c_origin(origin: SocketAddr, server: &str, more: &str) -> String {
    to_app(&format!("h2c://{origin}"), server, more)
}

fn to_app(url: &str, server: &str, more: &str) -> String {
    format!("{server}{}", servers(&[url], more))
}

/// Returns the URLs of servers over HTTP/1.
pub fn urls(addresses: &[SocketAddr]) -> Vec<String> {
    addresses.iter().map(|to| format!("http://{to}")).collect()
}

/// Returns a file whose origin `app` has these servers and these further fields and tables.
///
/// The servers are URLs. The file ends with a route of all paths, whose fields may follow.
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

/// Returns a file with a zone whose key is the query argument `key`, and a route with `limit`.
pub fn one_zone(origin: &Origin, rate: &str, limit: &str) -> String {
    let zone = format!("\n[zones.z]\nkey = \"$arg_key\"\nrate = \"{rate}\"\n");
    let file = one_origin(origin.address, "", &zone);
    format!("{file}limits = [{{ zone = \"z\", {limit} }}]\n")
}

/// Starts an origin, and a gateway that limits requests for it as [`one_zone`] says.
pub fn start_limited(rate: &str, limit: &str) -> (Origin, Gateway) {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, rate, limit));
    (origin, gateway)
}

/// Returns a file with an origin, these zones, and routes given by path and fields.
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

/// Returns the table of a zone.
pub fn zone(name: &str, key: &str, rate: &str) -> String {
    format!("[zones.{name}]\nkey = \"{key}\"\nrate = \"{rate}\"\n")
}

/// Starts drip in front of `origin`, with these zones and routes.
pub fn start_drip(origin: &Origin, zones: &str, routes: &[(&str, &str)]) -> Gateway {
    Gateway::start(&file(origin, zones, routes))
}
