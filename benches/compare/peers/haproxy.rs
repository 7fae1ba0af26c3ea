//! haproxy's configuration for the comparison.

use super::{Plan, Written};

/// Writes a stick table that counts each key's requests. haproxy cannot delay a request.
pub fn plan(plan: &Plan) -> Written {
    let Plan {
        address,
        origin,
        setup,
    } = plan;
    let workers = setup.workers;
    let text = format!(
        r"
global
    nbthread {workers}
    maxconn 8000
defaults
    mode http
    timeout client 60s
    timeout server 60s
    timeout connect 5s
    option forwardfor
frontend clients
    bind {address}
    http-request track-sc0 hdr(x-key) table origin
    http-request deny deny_status 429 if {{ path_beg /shut }} {{ sc0_http_req_rate(origin) gt 1 }}
    http-request deny deny_status 429 if {{ sc0_http_req_rate(origin) gt 100000000 }}
    default_backend origin
backend origin
    stick-table type string len 16 size 1200k expire 10m store http_req_rate(60s)
    http-reuse always
    server origin {origin} pool-max-conn 1000
"
    );
    Written::new(Some(("haproxy.cfg", text)), ["-q", "-f", "haproxy.cfg"])
}
