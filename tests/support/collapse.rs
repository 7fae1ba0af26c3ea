//! Configuration files of gateways that collapse requests, and requests to them.

use std::net::SocketAddr;

/// Returns a file with the origin `app` and a collapsing route of all paths with these fields.
///
/// Each request passes the zone `all`, which counts it: see [`wait_until_passed`].
pub fn file(origin: SocketAddr, collapse: &str) -> String {
    file_with(origin, "", "", collapse)
}

/// Returns the same file with further fields of the origin and of the route.
pub fn file_with(origin: SocketAddr, of_origin: &str, of_route: &str, collapse: &str) -> String {
    format!(
        r#"
[origins.app]
servers = ["http://{origin}"]
{of_origin}
{ALL}
[[routes]]
path = "/"
origin = "app"
headers = ["shared"]
{LIMITS}
{of_route}
[routes.collapse]
{collapse}
"#
    )
}

/// A zone that rejects nothing, and a route's limit that uses it.
pub const ALL: &str = "[zones.all]\nkey = \"all\"\nrate = \"100000r/s\"\n";
pub const LIMITS: &str = "limits = [{ zone = \"all\", burst = 100000, nodelay = true }]";

/// Returns a request for host `a` with these fields.
pub fn request(method: &str, target: &str, fields: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}
