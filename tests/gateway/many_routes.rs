//! Tests of files with very many routes.

use std::fmt::Write as _;
use std::time::Duration;

use crate::support::operator::json;
use crate::support::{Gateway, Origin, now};

fn routes(origin: &Origin, count: usize) -> String {
    let mut text = format!("[origins.app]\nservers = [\"http://{}\"]\n", origin.address);
    for nth in 0..count {
        let route = format!("[[routes]]\npath = \"/r{nth}/\"\norigin = \"app\"\n");
        // Writing to a string does not fail.
        let _ = text.write_str(&route);
    }
    text
}

#[test]
fn routes_behind_the_first_thousand_share_a_label() {
    let origin = Origin::start();
    let gateway = Gateway::start(&routes(&origin, 1500));
    for target in ["/r0/", "/r999/", "/r1000/", "/r1499/x"] {
        assert_eq!(gateway.fetch(target).status, 200, "{target}");
    }
    assert_eq!(gateway.fetch("/r1500/").status, 404);
    let metrics = gateway.metrics();
    let of = |route| metrics.count("drip_requests_total", &[("route", route), ("code", "200")]);
    let counts = ["/r0/", "/r999/", "other", "/r1000/"].map(of);
    assert_eq!(counts, [1, 1, 2, 0]);
    let size = gateway.admin("/metrics").expect("an answer").body.len();
    assert!(size < 2_000_000, "{size} bytes");
    let listed = json(&gateway, "/api/routes")["routes"].clone();
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 1001);
    assert_eq!(listed[1000]["name"], "other");
    assert_eq!(listed[1000]["requests"], 2);
}

/// Returns the duration of many requests on one connection.
fn time(gateway: &Gateway, target: &str) -> Duration {
    let mut client = gateway.connect();
    let began = now();
    for _ in 0..100 {
        assert_eq!(client.try_get(target).ok(), Some(200));
    }
    began.elapsed()
}

#[test]
#[ignore = "loads both cores: tests/run.sh long"]
fn many_routes_slow_neither_the_start_nor_the_requests() {
    let origin = Origin::start();
    let (few, many) = (10, 16_000);
    let few = Gateway::start(&routes(&origin, few));
    let began = now();
    let gateway = Gateway::start(&routes(&origin, many));
    let started = began.elapsed();
    let mut ratios = Vec::new();
    for _ in 0..5 {
        let slow = time(&gateway, "/r15999/").as_secs_f64();
        ratios.push(slow / time(&few, "/r9/").as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    eprintln!("16,000 routes: started in {started:?}; requests take {ratios:?} times as long");
    // Comparing each of 40,000 routes would take 20 to 40 times as long.
    assert!(ratios[0] < 4.0, "{ratios:?}");
}
