//! Tests of an origin's gate over real sockets and four workers: one even, fair stream.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{
    Client, Counting, Gateway, HoldingOrigin, MS, Origin, all_pass, best_of_three, eventually,
    half_alone, now, one_origin, statuses,
};

/// Returns a file whose origin has a gate, shared by the keys of `$arg_key` if `share` is true.
fn gated(origin: &Origin, gate: &str, share: bool) -> String {
    let share = if share { "share = \"key\"" } else { "" };
    with_route(origin, &format!("{gate}\n{share}"), "")
}

fn with_route(origin: &Origin, gate: &str, route: &str) -> String {
    format!(
        r#"workers = 4

[origins.app]
servers = ["http://{}"]
{gate}

[zones.key]
key = "$arg_key"
rate = "1000r/s"

[[routes]]
path = "/"
origin = "app"
{route}
"#,
        origin.address
    )
}

/// Opens connections, one for each request to come.
fn connect(gateway: &Gateway, count: usize) -> Vec<Client> {
    let connect = |_| gateway.connect();
    (0..count).map(connect).collect()
}

/// Requests each target on its own connection, with a pause in between.
fn ask(clients: &mut [Client], targets: &[String], apart: Duration) {
    for (client, target) in clients.iter_mut().zip(targets) {
        client.get(target);
        thread::sleep(apart);
    }
}

fn keyed(keys: &str, attempt: usize) -> Vec<String> {
    let target = |(nth, key)| format!("/{attempt}/{nth}?key={key}");
    keys.chars().enumerate().map(target).collect()
}

/// Returns the keys in the order in which they reached the origin.
fn order(origin: &Origin, attempt: usize) -> String {
    let arrivals = origin.arrivals();
    let prefix = format!("/{attempt}/");
    let of_this = arrivals.iter().filter(|it| it.target.starts_with(&prefix));
    of_this.filter_map(|it| it.target.chars().last()).collect()
}

#[test]
fn the_counts_of_a_gate_outlive_a_file_without_it() {
    let origin = Origin::start();
    let file = |gate: &str| one_origin(origin.address, "", gate);
    let with_gate = file("rate = \"1r/m\"\nqueue_timeout = \"1ms\"");
    let gateway = Gateway::start(&with_gate);
    let both = [(); 2].map(|()| gateway.fetch("/").status);
    assert_eq!(both, [200, 503]);
    let rejected = || gateway.count("drip_origin_rejections_total", &[("origin", "app")]);
    assert_eq!(rejected(), 1);
    gateway.site.write(&file(""));
    eventually("there is no gate", || rejected() == 0);
    gateway.site.write(&with_gate);
    eventually("the count is back", || rejected() == 1);
}

/// Keys that arrive together leave in the order of the documented example.
///
/// A request that does not wait is charged to its key, too.
#[test]
fn keys_of_one_instant_leave_as_the_worked_example_says() {
    let origin = Origin::start();
    let plan = "\n[zones.key.plans.gold]\nkeys = [\"a\"]\nweight = 3\n";
    let file = gated(&origin, "rate = \"10r/s\"", true) + plan;
    let gateway = Gateway::start(&file);
    best_of_three(|attempt| {
        let targets = keyed("aaaaaabbcc", attempt);
        let mut clients = connect(&gateway, targets.len());
        ask(&mut clients, &targets, 3 * MS);
        all_pass(&mut clients);
        // The last slot has passed, so the next attempt finds an idle gate.
        thread::sleep(100 * MS);
        match order(&origin, attempt).as_str() {
            "abcaabcaaa" => Ok(()),
            order => Err(format!("they left as {order}")),
        }
    });
}

#[test]
fn without_share_they_leave_in_the_order_in_which_they_came() {
    let origin = Origin::start();
    let gateway = Gateway::start(&gated(&origin, "rate = \"20r/s\"", false));
    best_of_three(|attempt| {
        let targets = keyed("xaaabc", attempt);
        let mut clients = connect(&gateway, targets.len());
        ask(&mut clients, &targets, 3 * MS);
        all_pass(&mut clients);
        match order(&origin, attempt).as_str() {
            "xaaabc" => Ok(()),
            order => Err(format!("they left as {order}")),
        }
    });
}

/// Each client sends again as soon as it has its response, until the end of `span`.
fn keep_asking(gateway: &Gateway, keys: &[(&str, usize)], span: Duration) {
    let end = now() + span;
    thread::scope(|scope| {
        for (key, clients) in keys {
            for _ in 0..*clients {
                scope.spawn(move || {
                    let mut client = gateway.connect();
                    while now() < end {
                        client.fetch(&format!("/?key={key}"));
                    }
                });
            }
        }
    });
}

#[test]
fn a_lone_flood_takes_half_of_max_queue_and_gets_retry_after() {
    let origin = Origin::start();
    let gate = "rate = \"1r/m\"\nqueue = 100\nmax_queue = 20\nqueue_timeout = \"1h\"";
    let gateway = Gateway::start(&gated(&origin, gate, true));
    assert_eq!(gateway.fetch("/?key=x").status, 200);
    let mut flood = connect(&gateway, 10);
    ask(&mut flood, &vec!["/?key=flood".to_owned(); 10], MS);
    gateway.wait_at_gate(10);
    for _ in 0..6 {
        let answer = gateway.fetch("/?key=flood");
        assert_eq!(answer.status, 429);
        assert!((20..=60).contains(&answer.number("retry-after")));
        let remaining = answer.field("x-ratelimit-remaining");
        assert_eq!(remaining, None, "the route has no limits");
    }
    // Another key still has room.
    let _other = gateway.ask("/?key=other");
    gateway.wait_at_gate(11);
    let counts = ["queue", "max_queue"].map(|reason| gateway.gate_rejections(reason));
    assert_eq!(counts, [6, 0]);
}

#[test]
fn a_full_queue_is_503_for_everybody() {
    let origin = Origin::start();
    let gate = "rate = \"1r/m\"\nmax_queue = 3\nqueue_timeout = \"1h\"";
    let gateway = Gateway::start(&gated(&origin, gate, false));
    let mut clients = connect(&gateway, 4);
    ask(&mut clients, &keyed("xabc", 0), MS);
    gateway.wait_at_gate(3);
    let answer = gateway.fetch("/?key=d");
    assert_eq!(answer.status, 503);
    assert!((50..=60).contains(&answer.number("retry-after")));
}

#[test]
fn who_waits_too_long_gets_503_and_its_turn_in_the_zone_back() {
    let held = HoldingOrigin::of("held");
    let gate = "max_in_flight = 1\nqueue_timeout = \"200ms\"";
    let route = "limits = [{ zone = \"slow\", burst = 0 }]";
    let zone = "[zones.slow]\nkey = \"all\"\nrate = \"1r/m\"\n";
    let text = with_route(&held.origin, gate, route) + zone;
    let gateway = Gateway::start(&text);
    let _held = gateway.ask("/held");
    held.origin.wait_for(1);
    // The zone is full now, and the gate is not reached.
    assert_eq!(gateway.fetch("/").status, 429);
    let text = text.replace("burst = 0", "burst = 1, nodelay = true");
    gateway.site.write(&text);
    eventually("the file is in force", || gateway.fetch("/").status == 503);
    for _ in 0..3 {
        // Each request takes the zone's last slot, and returns it.
        assert_eq!(gateway.fetch("/").status, 503);
    }
    assert!(gateway.gate_rejections("timeout") >= 4);
    assert_eq!(gateway.zone_requests("slow", "passed"), 1);
}

#[test]
fn a_hopeless_request_is_charged_nowhere() {
    let origin = Origin::start();
    let gate = "rate = \"1r/m\"\nqueue_timeout = \"1h\"";
    let route = "max_wait = \"10s\"\nlimits = [{ zone = \"key\", burst = 5, nodelay = true }]";
    let gateway = Gateway::start(&with_route(&origin, gate, route));
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    let answer = gateway.fetch("/?key=a");
    assert_eq!(answer.status, 429);
    assert!((40..=50).contains(&answer.number("retry-after")));
    assert!((40..=50).contains(&answer.number("x-ratelimit-retry-after")));
    assert_eq!(answer.number("x-ratelimit-remaining"), 0);
    let of_zone = |status| gateway.zone_requests("key", status);
    let asked = (of_zone("passed"), of_zone("rejected_elsewhere"));
    assert_eq!(asked, (1, 0), "the zone got no other request");
    assert_eq!(gateway.gate_rejections("max_wait"), 1);
}

#[test]
fn the_file_changes_while_requests_wait_and_none_is_lost() {
    let origin = Origin::start();
    let text = |gate: &str| gated(&origin, gate, true);
    let gateway = Gateway::start(&text("rate = \"1r/m\"\nqueue_timeout = \"1h\""));
    let mut clients = connect(&gateway, 31);
    let keys = "x".to_owned() + &"abc".repeat(10);
    for (waiting, (client, target)) in (0..).zip(clients.iter_mut().zip(keyed(&keys, 0))) {
        client.get(&target);
        // One after the other, whichever worker handles it.
        eventually("it is there", || {
            origin.arrivals().len() == 1 && gateway.count("drip_origin_queue_depth", &[]) == waiting
        });
    }
    let changed = now();
    let faster = "rate = \"20r/s\"\nqueue_timeout = \"60s\"";
    gateway.site.write(&text(faster));
    origin.wait_for(11);
    let tenth = origin.moments("/0/")[10];
    assert!(tenth - changed > 400 * MS, "ten at 20 a second");
    let permits = "max_in_flight = 2\nqueue_timeout = \"60s\"";
    gateway.site.write(&text(permits));
    assert_eq!(statuses(&mut clients), [200; 31]);
    assert_eq!(origin.arrivals().len(), 31);
    // Each key in order, except for an admitted request in flight: its worker may be late.
    let arrivals = origin.arrivals();
    for key in ["a", "b", "c"] {
        let mine = arrivals.iter().filter(|it| it.target.ends_with(key));
        let numbers: Vec<usize> = mine
            .filter_map(|it| it.target[3..].split('?').next()?.parse().ok())
            .collect();
        for (index, number) in numbers.iter().enumerate() {
            let later = &numbers[index + 1..];
            let overtaken = later.iter().filter(|it| *it < number).count();
            assert!(overtaken <= 1, "{key}: {numbers:?}");
        }
    }
}

#[test]
fn an_origin_that_leaves_the_file_and_comes_back_has_the_same_gate() {
    let app = Counting::taking(|_| 60 * MS);
    let gate = "max_in_flight = 1\nqueue_timeout = \"60s\"";
    let text = gated(&app.origin, gate, true);
    let gateway = Gateway::start(&text);
    let mut clients = connect(&gateway, 16);
    ask(&mut clients[..8], &keyed("aaaabbbb", 0), MS);
    eventually("they wait", || {
        gateway.count("drip_origin_queue_depth", &[]) > 3
    });
    let reloads = || gateway.count("drip_config_reloads_total", &[("result", "success")]);
    let renamed = text
        .replace("[origins.app]", "[origins.other]")
        .replace("origin = \"app\"", "origin = \"other\"");
    gateway.site.write(&renamed);
    eventually("it has left the file", || reloads() == 1);
    gateway.site.write(&text);
    eventually("it is back", || reloads() == 2);
    ask(&mut clients[8..], &keyed("aaaabbbb", 1), MS);
    assert_eq!(statuses(&mut clients), [200; 16]);
    assert_eq!(app.most(), 1);
}

#[test]
fn a_disconnected_waiter_makes_room_and_leaks_no_permit() {
    let origin = Origin::start();
    let gate = "rate = \"20r/s\"\nmax_in_flight = 3\nqueue_timeout = \"60s\"";
    let gateway = Gateway::start(&gated(&origin, gate, true));
    for round in 0..3 {
        let mut clients = connect(&gateway, 20);
        ask(&mut clients, &keyed(&"ab".repeat(10), round), MS);
        // Some clients disconnect while they wait, some at the instant of their slot.
        for client in clients.drain(..).skip(5).step_by(2) {
            drop(client);
            thread::sleep(7 * MS);
        }
    }
    gateway.wait_at_gate(0);
    gateway.wait_in_flight(0);
    let mut clients = connect(&gateway, 6);
    let began = now();
    ask(&mut clients, &keyed("cccccc", 9), MS);
    assert_eq!(statuses(&mut clients), [200; 6]);
    assert!(began.elapsed() < 2000 * MS);
}

#[test]
fn a_stop_answers_who_waits() {
    let origin = Origin::start();
    let gate = "rate = \"1r/m\"\nqueue_timeout = \"1h\"";
    let text = "shutdown_timeout = \"500ms\"\n".to_owned() + &gated(&origin, gate, true);
    let mut gateway = Gateway::start(&text);
    let mut clients = connect(&gateway, 5);
    let targets = keyed("xabca", 0);
    ask(&mut clients[..1], &targets, MS);
    eventually("one has passed", || origin.arrivals().len() == 1);
    ask(&mut clients[1..], &targets[1..], MS);
    gateway.wait_at_gate(4);
    gateway.signal(Signal::TERM);
    assert_eq!(statuses(&mut clients), [200, 503, 503, 503, 503]);
    assert!(gateway.wait(Duration::from_secs(20)).success());
}

#[test]
#[ignore = "loads both cores: tests/run.sh long"]
fn four_workers_make_one_stream_of_500_a_second() {
    let _alone = half_alone();
    let origin = Origin::start();
    let gateway = Gateway::start(&gated(&origin, "rate = \"500r/s\"", true));
    best_of_three(|attempt| {
        let keys: Vec<String> = (0..8).map(|key| format!("{attempt}-{key}")).collect();
        let load: Vec<(&str, usize)> = keys.iter().map(|key| (key.as_str(), 4)).collect();
        keep_asking(&gateway, &load, 1500 * MS);
        let moments = origin.moments(&format!("/?key={attempt}-"));
        let moments = &moments[50..];
        let span = (moments[moments.len() - 1] - moments[0]).as_secs_f64();
        let rate = f64::from(u32::try_from(moments.len() - 1).expect("not that many")) / span;
        println!("{rate:.1} a second");
        if (rate / 500.0 - 1.0).abs() < 0.01 {
            return Ok(());
        }
        Err(format!("{rate} a second"))
    });
}
