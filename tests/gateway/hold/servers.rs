//! Several servers of which none, or not all, can be reached.

use super::{LATE, MS, ask_all, held, origin_at, reloads, statuses};
use crate::support::{Gateway, Origin, eventually, fetch, free_address, now};

#[test]
fn all_servers_unhealthy_and_back() {
    let addresses = [free_address(), free_address()];
    let health = "[origins.app.health]\npath = \"/up\"\ninterval = \"50ms\"\nunhealthy_after = 2";
    let text = held(&addresses, "hold = \"20s\"", "");
    let text = text.replace("[zones.key]", &format!("{health}\n\n[zones.key]"));
    let start = || addresses.map(origin_at);
    let origins = start();
    let gateway = Gateway::start(&text);
    assert_eq!(fetch(gateway.address(), "/1").status, 200);
    drop(origins);
    let healthy = |count: f64| {
        let metrics = gateway.metrics();
        let of = |address| format!("http://{address}");
        let value = |server: &str| metrics.value("drip_origin_healthy", &[("server", server)]);
        addresses.iter().all(|it| value(&of(it)) == Some(count))
    };
    eventually("both are out", || healthy(0.0));
    let mut clients = ask_all(&gateway, &["/2", "/3", "/4"]);
    let origins = start();
    assert_eq!(statuses(&mut clients), [200; 3]);
    let of = |part| {
        origins
            .iter()
            .map(|it| it.moments(part).len())
            .sum::<usize>()
    };
    assert_eq!((of("/2"), of("/3"), of("/4")), (1, 1, 1));
    drop(origins);
    eventually("both are out again", || healthy(0.0));
    gateway.site.write(&text.replace("20s", "300ms"));
    eventually("the file is in force", || reloads(&gateway) == 1);
    let began = now();
    let answer = fetch(gateway.address(), "/5");
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
        assert_eq!(fetch(gateway.address(), &format!("/{nth}")).status, 200);
    }
    let labels = [("origin", "app"), ("by", "outage")];
    let blocked = gateway
        .metrics()
        .value("drip_origin_blocked_seconds_total", &labels);
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
    // It knows only the server that is gone.
    assert_eq!(old[0].answer().status, 502);
    eventually("the file is in force", || reloads(&gateway) == 1);
    let began = now();
    assert_eq!(fetch(gateway.address(), "/new").status, 200);
    assert!(began.elapsed() < LATE);
}
