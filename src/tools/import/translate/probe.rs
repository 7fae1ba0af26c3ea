//! Checks whether the settings accept a value, by parsing a file that contains it.
//!
//! Each function is named after the setting: `probe::host(name)` returns whether a route can have
//! this `host`.

use std::path::Path;

use config::{parse, toml_string, toml_text};

/// Valid field of the origin, if another field is checked.
const SERVERS: &str = "servers = [\"http://a\"]";
/// Valid field of the route, if another field is checked.
const PATH: &str = "path = \"/\"";

/// Returns whether an origin can have this server.
pub(in crate::import) fn server(url: &str) -> bool {
    let servers = format!("servers = [{}]", toml_string(url));
    is_valid("", &servers, PATH)
}

/// Returns whether the gateway can listen on this address.
pub(super) fn listen(address: &str) -> bool {
    let listen = format!("listen = [{}]", toml_string(address));
    is_valid(&listen, SERVERS, PATH)
}

/// Returns whether an origin can have this `host`.
pub(in crate::import) fn origin_host(host: &str) -> bool {
    let origin = format!("{SERVERS}\nhost = {}", toml_string(host));
    is_valid("", &origin, PATH)
}

/// Returns whether a route can have this `path`.
pub(in crate::import) fn path(path: &str) -> bool {
    is_valid("", SERVERS, &format!("path = {}", toml_string(path)))
}

/// Returns whether a route can replace `strip` with `add`.
pub(in crate::import) fn rewrite(strip: &str, add: &str) -> bool {
    let (path, strip, add) = (toml_string(strip), toml_text(strip), toml_text(add));
    let route = format!("path = {path}\nstrip_prefix = {strip}\nadd_prefix = {add}");
    is_valid("", SERVERS, &route)
}

/// Returns whether a route can have this `host`.
pub(in crate::import) fn host(host: &str) -> bool {
    let route = format!("{PATH}\nhost = {}", toml_string(host));
    is_valid("", SERVERS, &route)
}

/// Returns whether a route's `request_headers` or `response_headers` accept these TOML entries.
pub(super) fn fields(field: &str, entries: &str) -> bool {
    let route = format!("{PATH}\n{field} = {{ {entries} }}");
    is_valid("", SERVERS, &route)
}

/// Returns whether a file is valid with these fields in the tables of server, origin and route.
fn is_valid(server: &str, origin: &str, route: &str) -> bool {
    let text = format!(
        "[server]\nadmin = \"off\"\n{server}\n[origins.a]\n{origin}\n\
         [[routes]]\norigin = \"a\"\n{route}\n"
    );
    parse(&text, Path::new("gateway.toml"), false).is_ok()
}
