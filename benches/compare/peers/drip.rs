use std::fmt::Write;

use super::{CERTIFICATE, KEY, KEYS, Plan, Route, Written};

/// Uses defaults wherever the other peers have them too.
///
/// So it sends the `X-RateLimit` fields, which no other peer does.
pub fn plan(plan: &Plan) -> Written {
    let Plan {
        address,
        origin,
        setup,
    } = plan;
    let workers = setup.workers;
    let tls = if setup.tls {
        format!("[server.tls]\ncert = \"{CERTIFICATE}\"\nkey = \"{KEY}\"\n")
    } else {
        String::new()
    };
    let mut text = format!(
        r#"
[server]
listen = ["{address}"]
admin = "off"
workers = {workers}
{tls}
[origins.app]
servers = ["http://{origin}"]
"#
    );
    for route in setup.routes {
        let Route {
            path, rate, burst, ..
        } = route;
        let name = route.name();
        let nodelay = if route.nodelay {
            ", nodelay = true"
        } else {
            ""
        };
        // nginx may forget a drained key when another key comes. drip would forget it a minute
        // later with 1r/m.
        let rate = if *path == KEYS { "1r/h" } else { rate };
        // Writing to a string does not fail.
        let _taken = write!(
            text,
            r#"
[zones.{name}]
key = "$http_x_key"
rate = "{rate}"
max_keys = {keys}

[[routes]]
path = "{path}"
origin = "app"
limits = [{{ zone = "{name}", burst = {burst}{nodelay} }}]
"#,
            keys = route.keys,
        );
    }
    Written::new(Some(("gateway.toml", text)), ["run", "-c", "gateway.toml"])
}
