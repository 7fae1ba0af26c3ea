//! drip's configuration for the comparison.

use std::fmt::Write;
use std::net::SocketAddr;

use super::{CERTIFICATE, GATED, KEY, KEYS, OPEN_GATE, PASS, Plan, Route, Written};

/// Writes drip's file, with defaults wherever the other peers use theirs.
///
/// So drip sends the `X-RateLimit` fields, which no other peer does.
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
        // nginx may forget a drained key when another key arrives. drip would forget it a minute
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
    if setup.has_gates {
        write_gates(&mut text, *origin);
    }
    Written::new(Some(("gateway.toml", text)), ["run", "-c", "gateway.toml"])
}

/// Writes routes through gates, each with the zone of [`PASS`], whose keys share the gate.
fn write_gates(text: &mut String, origin: SocketAddr) {
    let zone = PASS.replace('/', "");
    let gated = GATED.map(|(rate, path)| (path, format!("rate = \"{rate}r/s\"")));
    let open = (
        OPEN_GATE,
        "rate = \"1000000r/s\"\nmax_in_flight = 100000".to_owned(),
    );
    for (path, gate) in gated.into_iter().chain([open]) {
        let name = path.replace('/', "");
        // Writing to a string does not fail.
        let _taken = write!(
            text,
            r#"
[origins.{name}]
servers = ["http://{origin}"]
share = "{zone}"
{gate}

[[routes]]
path = "{path}"
origin = "{name}"
limits = [{{ zone = "{zone}", burst = 100000, nodelay = true }}]
"#
        );
    }
}
