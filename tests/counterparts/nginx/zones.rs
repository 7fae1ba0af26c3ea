//! Several limits on one route: any reject rejects and charges none, otherwise the longest wait holds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::{Client, Gateway, MS, Origin, eventually, fetch, now};
use crate::support::{start_drip, zone};

fn counted(gateway: &Gateway, zone: &str, status: &str) -> i64 {
    let labels = [("zone", zone), ("status", status)];
    gateway.metrics().count("drip_zone_requests_total", &labels)
}

#[test]
fn a_zone_that_rejects_leaves_the_other_uncharged() {
    let origin = Origin::start();
    let zones = zone("tight", "$arg_a", "1r/h") + &zone("wide", "$arg_a", "1r/h");
    let gateway = start_drip(
        &origin,
        &zones,
        &[
            (
                "/both",
                "limits = [{ zone = \"wide\", burst = 9, nodelay = true }, { zone = \"tight\" }]",
            ),
            (
                "/wide",
                "limits = [{ zone = \"wide\", burst = 9, nodelay = true }]",
            ),
        ],
    );
    let ask = |target| fetch(gateway.address(), target).status;
    assert_eq!(ask("/both?a=1"), 200);
    for _ in 0..5 {
        assert_eq!(ask("/both?a=1"), 429);
    }
    let answer = fetch(gateway.address(), "/wide?a=1");
    assert_eq!(
        answer.number("x-ratelimit-remaining"),
        8,
        "two of ten are charged: the one that passed both, and this one"
    );
    // A turn before the other zone's rejection was given back; one after it was never taken.
    eventually("all are counted", || {
        counted(&gateway, "wide", "rejected_elsewhere") == 5
    });
    assert_eq!(counted(&gateway, "wide", "passed"), 2);
    assert_eq!(counted(&gateway, "tight", "rejected"), 5);
    assert_eq!(origin.arrivals().len(), 2);
}

#[test]
fn the_longest_wait_holds() {
    let origin = Origin::start();
    let zones = zone("short", "$arg_a", "20r/s") + &zone("long", "$arg_a", "2r/s");
    let limits = "limits = [{ zone = \"short\", burst = 5 }, { zone = \"long\", burst = 5 }]";
    let gateway = start_drip(&origin, &zones, &[("/", limits)]);
    assert_eq!(fetch(gateway.address(), "/?a=1").status, 200);
    let began = now();
    assert_eq!(fetch(gateway.address(), "/?a=1").status, 200);
    let took = began.elapsed();
    // The next turn would be half a second later.
    assert!(took > 450 * MS && took < 950 * MS, "{took:?}");
}

#[test]
fn a_client_that_leaves_while_one_zone_lets_it_wait_is_given_back_by_the_other() {
    let origin = Origin::start();
    let zones = zone("open", "$arg_a", "1r/h") + &zone("slow", "$arg_a", "1r/h");
    let open = "{ zone = \"open\", burst = 9, nodelay = true }";
    let gateway = start_drip(
        &origin,
        &zones,
        &[
            (
                "/both",
                &format!("limits = [{open}, {{ zone = \"slow\", burst = 5 }}]"),
            ),
            ("/open", &format!("limits = [{open}]")),
        ],
    );
    assert_eq!(fetch(gateway.address(), "/both?a=1").status, 200);
    let waiting: Vec<Client> = (0..3)
        .map(|_| Client::ask(gateway.address(), "/both?a=1"))
        .collect();
    let depth = |wanted: f64| {
        eventually("the queue is as deep as wanted", || {
            let depth = gateway
                .metrics()
                .value("drip_zone_queue_depth", &[("zone", "slow")]);
            depth == Some(wanted)
        });
    };
    depth(3.0);
    drop(waiting);
    depth(0.0);
    let answer = fetch(gateway.address(), "/open?a=1");
    assert_eq!(
        answer.number("x-ratelimit-remaining"),
        8,
        "the three that left are charged nowhere"
    );
}

#[test]
fn two_hundred_at_once_over_two_zones_on_two_workers_are_each_counted_once() {
    const AT_ONCE: usize = 200;
    let origin = Origin::start();
    let zones = zone("each", "$arg_a", "1r/h") + &zone("all", "$arg_all", "1r/h");
    let limits = "limits = [{ zone = \"each\", burst = 4, nodelay = true }, \
                  { zone = \"all\", burst = 59, nodelay = true }]";
    let gateway = start_drip(&origin, &zones, &[("/", limits)]);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let asked: Vec<_> = (0..AT_ONCE)
            .map(|nth| {
                let target = format!("/?a={}&all=1", nth % 20);
                let to = gateway.address();
                scope.spawn(move || fetch(to, &target).status)
            })
            .collect();
        asked
            .into_iter()
            .map(|asked| asked.join().expect("no panic"))
            .collect()
    });
    let passed = statuses.iter().filter(|status| **status == 200).count();
    let rejected = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!(passed + rejected, AT_ONCE);
    // Twenty keys of five, and sixty for all. While turns are on their way back a request may find less room than
    // there is in the end, never more.
    assert!(passed <= 60, "{passed} passed");
    assert_eq!(origin.arrivals().len(), passed);
    for zone in ["each", "all"] {
        eventually("each request is counted once", || {
            let told = ["passed", "rejected", "rejected_elsewhere"]
                .map(|status| counted(&gateway, zone, status));
            told.iter().sum::<i64>() == i64::try_from(AT_ONCE).expect("few")
                && usize::try_from(told[0]) == Ok(passed)
        });
    }
    // Only passed requests stay charged: the rest of the sixty is still available.
    let mut later = 0;
    while fetch(gateway.address(), &format!("/?a=late{later}&all=1")).status == 200 {
        later += 1;
    }
    assert_eq!(passed + later, 60);
}

#[test]
fn a_flood_that_one_zone_rejects_turns_nobody_away_in_the_other() {
    let origin = Origin::start();
    let zones = zone("shared", "$arg_k", "10r/s") + &zone("spent", "$arg_c", "1r/h");
    let gateway = start_drip(
        &origin,
        &zones,
        &[
            (
                "/both",
                "limits = [{ zone = \"shared\" }, { zone = \"spent\" }]",
            ),
            ("/share", "limits = [{ zone = \"shared\" }]"),
        ],
    );
    assert_eq!(fetch(gateway.address(), "/both?k=0&c=1").status, 200);
    let done = AtomicBool::new(false);
    let statuses = thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::connect(gateway.address());
                while !done.load(Ordering::Relaxed) {
                    client.get("/both?k=1&c=1");
                    assert_eq!(client.answer().status, 429);
                }
            });
        }
        let statuses: Vec<u16> = (0..12)
            .map(|_| {
                thread::sleep(130 * MS);
                fetch(gateway.address(), "/share?k=1").status
            })
            .collect();
        done.store(true, Ordering::Relaxed);
        statuses
    });
    assert_eq!(statuses, [200; 12]);
}
