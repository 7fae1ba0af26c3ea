//! nginx's configuration for the comparison.

use std::fmt::Write;

use super::{CERTIFICATE, KEY, Plan, Route, Written};

pub fn plan(plan: &Plan) -> Written {
    let Plan {
        address,
        origin,
        setup,
    } = plan;
    let workers = setup.workers;
    let (mut zones, mut locations) = (String::new(), String::new());
    for route in setup.routes {
        let Route {
            path, rate, burst, ..
        } = route;
        let name = route.name();
        // A key takes 128 bytes. Adds some reserve.
        let size = route.keys / 5000 + 1;
        // nginx rejects a burst of 0, which is the default.
        let burst = match burst {
            0 => String::new(),
            burst => format!(" burst={burst}"),
        };
        let nodelay = if route.nodelay { " nodelay" } else { "" };
        // Writing to a string does not fail.
        let _taken = writeln!(
            zones,
            "limit_req_zone $http_x_key zone={name}:{size}m rate={rate};"
        );
        let _taken = writeln!(
            locations,
            "location {path} {{ limit_req zone={name}{burst}{nodelay}; proxy_pass http://origin; }}"
        );
    }
    let (listen, tls) = if setup.tls {
        let files = format!("ssl_certificate {CERTIFICATE}; ssl_certificate_key {KEY};");
        (" ssl http2", format!("ssl_protocols TLSv1.3; {files}"))
    } else {
        ("", String::new())
    };
    // nginx allocates connections when it starts. With one route, use the usual number.
    let connections = if setup.routes.len() == 1 {
        1024
    } else {
        20_000
    };
    let text = format!(
        r#"
daemon off;
worker_processes {workers};
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    keepalive_requests 100000000;
    limit_req_status 429;
    {zones}
    upstream origin {{ server {origin}; keepalive 256; keepalive_requests 100000000; }}
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    server {{
        listen {address}{listen} backlog=4096;
        {tls}
        {locations}
    }}
}}
"#
    );
    // The log path that nginx was built with may not be writable for a plain user.
    let arguments = ["-p", ".", "-c", "nginx.conf", "-e", "stderr"];
    Written::new(Some(("nginx.conf", text)), arguments)
}
