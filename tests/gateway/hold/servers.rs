//! Tests of several servers of which none, or only some, can be reached.

use super::{LATE, MS, ask_all, held, origin_at};
use crate::support::{Gateway, Origin, eventually, free_address, now, statuses};

#[test]
fn all_servers_unhealthy_and_back() {
    let addresses = [free_address(), free_address()];
    let health = "[origins.app.health]\npath = \"/up\"\ninterval = \"50ms\"\nunhealthy_after = 2";
    let text = held(&addresses, "hold = \"20s\"", "");
    let text = text.replace("[zones.key]", &format!("{health}\n\n[zones.key]"));
    let start = || addresses.map(origin_at);
    let origins = start();
    let gateway = Gateway::start(&text);
    assert_eq!(gateway.fetch("/1").status, 200);
    drop(origins);
    let are_out = || gateway.value("drip_origin_healthy", &[]) == Some(0.0);
    eventually("both are out", are_out);
    let mut clients = ask_all(&gateway, &["/2", "/3", "/4"]);
    let origins = start();
    assert_eq!(statuses(&mut clients), [200; 3]);
    for target in ["/2", "/3", "/4"] {
        let count: usize = origins.iter().map(|it| it.moments(target).len()).sum();
        assert_eq!(count, 1, "{target}");
    }
    drop(origins);
    eventually("both are out again", are_out);
    gateway.site.write(&text.replace("20s", "300ms"));
    gateway.wait_for_line("the changed file is in force");
    let began = now();
    let answer = gateway.fetch("/5");
    assert!(answer.status == 503 && answer.number("retry-after") >= 1);
    let took = began.elapsed();
    assert!(took >= 300 * MS && took < 300 * MS + LATE, "{took:?}");
}

#[test]
fn failures_that_took_all_servers_out_do_not_keep_them_out_once_they_are_back() {
    let addresses = [free_address(), free_address()];
    let fields = "hold = \"20s\"\nmax_fails = 1\nfail_timeout = \"10m\"";
    let gateway = Gateway::start(&held(&addresses, fields, ""));
    let mut clients = ask_all(&gateway, &["/1", "/2", "/3"]);
    let _origins = addresses.map(origin_at);
    assert_eq!(statuses(&mut clients), [200; 3]);
}

#[test]
fn one_server_of_three_that_is_up_takes_the_requests_at_once() {
    let origin = Origin::start();
    let servers = [free_address(), free_address(), origin.address];
    let fields = "hold = \"20s\"\nmax_fails = 1000000";
    let gateway = Gateway::start(&held(&servers, fields, ""));
    for nth in 0..20 {
        assert_eq!(gateway.fetch(&format!("/{nth}")).status, 200);
    }
    let labels = [("origin", "app"), ("by", "outage")];
    let blocked = gateway.value("drip_origin_blocked_seconds_total", &labels);
    assert_eq!(blocked, Some(0.0), "no request waited");
    assert_eq!(origin.arrivals().len(), 20);
}

#[test]
fn new_servers_in_the_file_end_an_outage_for_the_requests_that_come() {
    let origin = Origin::start();
    let text = |server| held(&[server], "rate = \"100r/s\"\nhold = \"20s\"", "");
    let gateway = Gateway::start(&text(free_address()));
    let mut old = ask_all(&gateway, &["/old"]);
    gateway.site.write(&text(origin.address));
    // The old settings have only the lost server.
    assert_eq!(old[0].answer().status, 502);
    gateway.wait_for_line("the changed file is in force");
    let began = now();
    assert_eq!(gateway.fetch("/new").status, 200);
    assert!(began.elapsed() < LATE);
}
