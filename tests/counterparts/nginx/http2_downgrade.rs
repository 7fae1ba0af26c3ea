//! Tests which HTTP/2 requests that would mean something else in HTTP/1 nginx 1.22 serves.

#[path = "../../http2/downgrade/cases.rs"]
mod cases;

use cases::{Case, fields, pseudo_fields, serves};

use crate::programs::nginx::Nginx;
use crate::support::{Origin, free_address};

fn check_all(cases: &[Case]) {
    let origin = Origin::answering(|exchange| {
        exchange.body()?;
        exchange.reply(b"ok")
    });
    let address = free_address();
    let server =
        format!("server {{ listen {address} http2; location / {{ proxy_pass http://origin; }} }}");
    let _nginx = Nginx::before(origin.address, &server, &[("/", "")]);
    let odd: Vec<_> = cases
        .iter()
        .filter(|case| serves(address, case) != case.nginx_serves)
        .map(|case| (case.name, case.nginx_serves))
        .collect();
    assert!(odd.is_empty(), "nginx: {odd:?}");
}

#[test]
fn fields_that_http_1_would_read_otherwise_are_refused() {
    check_all(&fields());
}

#[test]
fn pseudo_fields_that_http_1_would_read_otherwise_are_refused() {
    check_all(&pseudo_fields());
}
