//! Tests of shared `in_flight` in a cluster, a dry run, several zones, and a WebSocket.

use std::io::Read;
use std::thread;

use super::*;
use crate::support::night::day_or_night;
use crate::support::{Exchange, Origin};

/// Returns how many requests a zone would have rejected in a dry run.
fn rejected_in_dry_run(gateway: &Gateway) -> u64 {
    let answer = gateway.admin("/api/zones").expect("an admin port");
    let zones: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
    let totals = &zones["zones"][0]["totals"];
    totals["rejected_dry_run"].as_u64().expect("a count")
}

/// Returns another route of the file, with this limit.
fn route(path: &str, more: &str, limits: &str) -> String {
    format!("\n[[routes]]\npath = \"{path}\"\norigin = \"app\"\n{more}\nlimits = [{limits}]\n")
}

/// A dry run admits all requests and counts those that it would have rejected.
///
/// A request with a permit there counts at the other gateway.
#[test]
fn a_dry_run_lets_all_pass_and_counts_what_runs_at_the_others() {
    let (app, redis) = (Counting::start(), Redis::start());
    let dry = route(
        "/dry",
        "dry_run = true",
        "{ zone = \"z\", nodelay = true, in_flight = 1 }",
    );
    let text = text(&app, &redis.url(), "", ", in_flight = 1") + &dry;
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    let mut first = Client::ask(
        one.address(),
        day_or_night("/dry/1500?key=a", "/dry/4000?key=a"),
    );
    eventually("it runs", || app.here() == 1);
    let mut second = Client::ask(
        other.address(),
        day_or_night("/dry/1500?key=a", "/dry/4000?key=a"),
    );
    eventually("it runs although only one may", || app.here() == 2);
    eventually("it says so", || rejected_in_dry_run(&other) == 1);
    assert_eq!(rejected_in_dry_run(&one), 0);
    for gateway in [&one, &other] {
        assert_eq!(fetch(gateway.address(), "/0?key=a").status, 429);
    }
    assert_eq!(first.answer().status, 200);
    assert_eq!(second.answer().status, 200);
    for gateway in [&one, &other] {
        eventually("its place is free", || {
            fetch(gateway.address(), "/0?key=a").status == 200
        });
    }
}

/// Routes that share a zone compare the running requests of all gateways with their own numbers.
#[test]
fn routes_with_other_numbers_share_the_places_of_a_zone() {
    let (app, redis) = (Counting::start(), Redis::start());
    let wide = route(
        "/wide",
        "",
        "{ zone = \"z\", burst = 20, nodelay = true, in_flight = 4 }",
    );
    let text = text(&app, &redis.url(), "", ", burst = 20, in_flight = 2") + &wide;
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    let mut wide = [&one, &other, &one].map(|gateway| {
        let (here, client) = (
            app.here(),
            Client::ask(gateway.address(), "/wide/1500?key=a"),
        );
        eventually("it runs", || app.here() == here + 1);
        client
    });
    // Three requests run: the narrow route waits at either gateway, and the other route continues.
    let mut narrow = Client::ask(other.address(), "/1000?key=a");
    other.wait_for_depth(1);
    pass(100);
    assert_eq!(app.here(), 3);
    assert_eq!(fetch(one.address(), "/wide/0?key=a").status, 200);
    assert_eq!(other.zone("drip_zone_queue_depth"), 1);
    for client in &mut wide {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(narrow.answer().status, 200);
    assert_eq!(app.most(), 4);
    eventually("nothing runs", || {
        running(&one) == 0 && running(&other) == 0
    });
}

/// A request that needs permits of two zones gets both or none, and none waits forever.
///
/// Both numbers hold.
#[test]
fn a_route_with_two_limits_keeps_both_over_all_gateways() {
    let (app, redis) = (Counting::start(), Redis::start());
    let zone = "\n[zones.tenant]\nkey = \"$arg_tenant\"\nrate = \"100000r/s\"\nstore = \"redis\"\n";
    let limit = |zone: &str, most: u32| {
        format!("{{ zone = \"{zone}\", burst = 50, nodelay = true, in_flight = {most} }}")
    };
    let (of_key, of_tenant) = (limit("z", 2), limit("tenant", 3));
    let routes = route("/one", "", &format!("{of_key}, {of_tenant}"))
        + &route("/two", "", &format!("{of_tenant}, {of_key}"));
    let text = text(&app, &redis.url(), "", "") + zone + &routes;
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    let [one, two] = &gateways;
    // Returns the maximum of simultaneous requests, once `few` have run (by night after 2 s).
    let most = |targets: &[(&Gateway, &str)], wanted: usize, few: usize| {
        app.counts.most.store(0, Ordering::SeqCst);
        let before = app.all();
        let have_run = || app.most() >= wanted && app.all() - before > few;
        thread::scope(|scope| {
            for (gateway, target) in targets {
                let have_run = &have_run;
                scope.spawn(move || {
                    busy(&[(*gateway, 4)], target, || {
                        pass(day_or_night(500, 2000));
                        eventually("many have run", have_run);
                    });
                });
            }
        });
        app.most()
    };
    // With two keys of a tenant, the tenant's number applies. With one key, the key's number
    // applies.
    let two_keys = [
        (one, "/one/20?key=a&tenant=t"),
        (two, "/two/20?key=b&tenant=t"),
    ];
    assert_eq!(most(&two_keys, 3, 60), 3);
    let one_key = [
        (one, "/one/20?key=a&tenant=t"),
        (two, "/two/20?key=a&tenant=t"),
    ];
    assert_eq!(most(&one_key, 2, 40), 2);
    eventually("nothing runs", || {
        gateways.iter().all(|it| running(it) == 0)
    });
}

/// A WebSocket keeps its permit for longer than any lease, and frees it as soon as it ends.
#[test]
fn a_websocket_holds_its_place_at_all_gateways_until_it_ends() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        if exchange.field("upgrade").is_none() {
            return exchange.reply(b"ok");
        }
        exchange.send(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        )?;
        exchange.stream().read_to_end(&mut Vec::new())?;
        Exchange::close()
    });
    let redis = Redis::start();
    let limit = ", nodelay = true, in_flight = 1";
    let text = file(&origin, &redis.url(), "100000r/s", "orphan = \"1s\"", limit);
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    let mut socket = Client::connect(one.address());
    socket.send(
        b"GET /?key=a HTTP/1.1\r\nHost: test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
          Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    let mut head = [0; 12];
    socket.read_exact(&mut head);
    assert_eq!(&head, b"HTTP/1.1 101");
    let began = now();
    while began.elapsed() < Duration::from_millis(day_or_night(1500, 5000)) {
        for gateway in [&one, &other] {
            assert_eq!(fetch(gateway.address(), "/?key=a").status, 429);
        }
        pass(100);
    }
    drop(socket);
    eventually("its place is free", || {
        fetch(other.address(), "/?key=a").status == 200
    });
}
