//! Tests of several limits on one route: if any rejects, none is charged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::{MS, Origin, eventually, side_by_side};
use crate::support::{start_drip, zone};

#[test]
fn a_zone_that_rejects_leaves_the_other_uncharged() {
    let origin = Origin::start();
    let zones = zone("tight", "$arg_a", "1r/h") + &zone("wide", "$arg_a", "1r/h");
    let wide = "{ zone = \"wide\", burst = 9, nodelay = true }";
    // With a burst, the rest waits until its clients disconnect.
    for (burst, rejected) in [(0, 5), (5, 0)] {
        let both = format!("limits = [{wide}, {{ zone = \"tight\", burst = {burst} }}]");
        let only = format!("limits = [{wide}]");
        let gateway = start_drip(&origin, &zones, &[("/both", &both), ("/wide", &only)]);
        let ask = || gateway.ask("/both?a=1");
        assert_eq!(ask().answer().status, 200);
        let mut clients = [0; 5].map(|_| ask());
        if burst == 0 {
            let statuses = clients.each_mut().map(|client| client.answer().status);
            assert_eq!(statuses, [429; 5]);
        }
        let depth = |expected: f64| {
            let labels = [("zone", "tight")];
            eventually("as many wait", || {
                gateway.value("drip_zone_queue_depth", &labels) == Some(expected)
            });
        };
        depth(f64::from(burst));
        drop(clients);
        depth(0.0);
        let answer = gateway.fetch("/wide?a=1");
        // Two of ten are charged: the one that passed both, and this one.
        assert_eq!(answer.number("x-ratelimit-remaining"), 8);
        // A slot taken before the other zone's rejection was returned. One after it was never
        // taken.
        eventually("all are counted", || {
            gateway.zone_requests("wide", "rejected_elsewhere") == rejected
        });
        assert_eq!(gateway.zone_requests("tight", "rejected"), rejected);
    }
}

#[test]
fn two_hundred_at_once_over_two_zones_on_two_workers_are_each_counted_once() {
    const AT_ONCE: usize = 200;
    let origin = Origin::start();
    let zones = zone("each", "$arg_a", "1r/h") + &zone("all", "$arg_all", "1r/h");
    let limits = "limits = [{ zone = \"each\", burst = 4, nodelay = true }, \
                  { zone = \"all\", burst = 59, nodelay = true }]";
    let gateway = start_drip(&origin, &zones, &[("/", limits)]);
    let statuses = side_by_side(0..AT_ONCE, |nth| {
        gateway.fetch(&format!("/?a={}&all=1", nth % 20)).status
    });
    let passed = statuses.iter().filter(|status| **status == 200).count();
    let rejected = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!(passed + rejected, AT_ONCE);
    // Twenty keys of five, and sixty for all. While slots are being returned a request may find
    // less room than there is in the end, never more.
    assert!(passed <= 60, "{passed} passed");
    assert_eq!(origin.arrivals().len(), passed);
    for zone in ["each", "all"] {
        eventually("each request is counted once", || {
            let received = ["passed", "rejected", "rejected_elsewhere"]
                .map(|status| usize::try_from(gateway.zone_requests(zone, status)));
            received.iter().flatten().sum::<usize>() == AT_ONCE && received[0] == Ok(passed)
        });
    }
    // Only passed requests stay charged: the rest of the sixty is still available.
    let mut later = 0;
    while gateway.fetch(&format!("/?a=late{later}&all=1")).status == 200 {
        later += 1;
    }
    assert_eq!(passed + later, 60);
}

#[test]
fn a_flood_that_one_zone_rejects_turns_nobody_away_in_the_other() {
    let origin = Origin::start();
    let zones = zone("shared", "$arg_k", "10r/s") + &zone("spent", "$arg_c", "1r/h");
    let both = "limits = [{ zone = \"shared\" }, { zone = \"spent\" }]";
    let routes = [
        ("/both", both),
        ("/share", "limits = [{ zone = \"shared\" }]"),
    ];
    let gateway = start_drip(&origin, &zones, &routes);
    assert_eq!(gateway.fetch("/both?k=0&c=1").status, 200);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = gateway.connect();
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(client.fetch("/both?k=1&c=1").status, 429);
                }
            });
        }
        let statuses = [0; 12].map(|_| {
            thread::sleep(130 * MS);
            gateway.fetch("/share?k=1").status
        });
        done.store(true, Ordering::Relaxed);
        assert_eq!(statuses, [200; 12]);
    });
}
