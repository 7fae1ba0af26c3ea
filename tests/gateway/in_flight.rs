//! Limits on the running requests of a key: nginx's `limit_conn`, but with waiting.

use std::io::Read;
use std::thread;

use serde_json::Value;

use crate::support::{
    Client, Exchange, Gateway, HoldingOrigin, MS, Origin, eventually, fetch, now, one_zone,
    whole_lines,
};

/// A file with four workers whose key `$arg_key` is limited so, in a zone of this rate.
fn file(origin: &Origin, rate: &str, limit: &str) -> String {
    let head = "workers = 4\n\n[log]\nformat = \"json\"\naccess = \"access.log\"\n";
    head.to_owned() + &one_zone(origin, rate, limit)
}

fn in_flight(gateway: &Gateway) -> i64 {
    gateway.zone("drip_zone_in_flight")
}

#[test]
fn as_many_run_as_may_and_the_others_go_in_their_order() {
    let held = HoldingOrigin::start();
    let gateway = Gateway::start(&file(&held.origin, "none", "burst = 4, in_flight = 2"));
    let target = |nth: usize| format!("/{nth}?key=a");
    let mut clients = Vec::new();
    for nth in 0..6 {
        clients.push(Client::ask(gateway.address(), &target(nth)));
        if nth < 2 {
            eventually("it runs", || held.targets().len() == nth + 1);
        } else {
            gateway.wait_for_depth(i64::try_from(nth - 1).expect("small"));
        }
    }
    let rejected = fetch(gateway.address(), &target(6));
    assert_eq!(rejected.status, 429);
    assert_eq!(rejected.field("retry-after"), Some("1"));
    assert_eq!(in_flight(&gateway), 2);
    // Another key has places of its own.
    held.release("/other?key=b");
    assert_eq!(fetch(gateway.address(), "/other?key=b").status, 200);
    for (nth, client) in clients.iter_mut().enumerate() {
        held.release(&target(nth));
        assert_eq!(client.answer().status, 200);
        let arrived = (nth + 3).min(6) + 1;
        eventually("the next one runs", || held.targets().len() == arrived);
    }
    let of_a: Vec<String> = (0..6).map(target).collect();
    let mut arrivals = held.targets();
    arrivals.retain(|target| target.ends_with('a'));
    assert_eq!(arrivals, of_a);
    eventually("nothing runs", || in_flight(&gateway) == 0);
}

#[test]
fn never_more_than_may_run_at_the_origin_whoever_leaves_and_whatever_fails() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        thread::sleep(10 * MS);
        if exchange.target().contains("fail") {
            return Exchange::close();
        }
        exchange.reply(b"ok")
    });
    let limit = "burst = 50, in_flight = 3";
    let gateway = Gateway::start(&file(&origin, "none", limit));
    thread::scope(|scope| {
        for nth in 0..12_usize {
            let gateway = &gateway;
            scope.spawn(move || {
                for round in 0..20 {
                    let kind = ["ok", "fail", "leave"][(nth + round) % 3];
                    let target = format!("/{kind}?key=a");
                    let mut client = Client::ask(gateway.address(), &target);
                    if kind == "leave" {
                        thread::sleep(u32::try_from(nth).expect("small") * 3 * MS);
                    } else {
                        assert!([200, 502].contains(&client.answer().status));
                    }
                }
            });
        }
    });
    eventually("nothing runs or waits", || {
        (in_flight(&gateway), gateway.zone("drip_zone_queue_depth")) == (0, 0)
    });
    // No place has leaked: three still run at the same time, and each gets a turn.
    let mut clients: Vec<Client> = (0..3)
        .map(|_| Client::ask(gateway.address(), "/ok?key=a"))
        .collect();
    assert!(clients.iter_mut().all(|it| it.answer().status == 200));
}

#[test]
fn a_place_is_free_at_the_last_byte_of_the_answer_and_a_tunnel_holds_it() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        if exchange.target().starts_with("/tunnel") {
            exchange.send(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
            )?;
            let mut rest = Vec::new();
            exchange.stream().read_to_end(&mut rest)?;
            return Exchange::close();
        }
        exchange.reply(b"ok")
    });
    let gateway = Gateway::start(&file(&origin, "none", "in_flight = 1"));
    let mut tunnel = Client::connect(gateway.address());
    tunnel.send(
        b"GET /tunnel?key=a HTTP/1.1\r\nHost: test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    );
    let mut head = [0; 12];
    tunnel.read_exact(&mut head);
    assert_eq!(&head, b"HTTP/1.1 101");
    for _ in 0..3 {
        assert_eq!(fetch(gateway.address(), "/?key=a").status, 429);
    }
    drop(tunnel);
    eventually("the tunnel has ended", || in_flight(&gateway) == 0);
    for _ in 0..20 {
        assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    }
}

#[test]
fn a_request_waits_for_its_time_then_for_a_place_and_no_longer_than_max_wait() {
    let held = HoldingOrigin::start();
    let text = file(&held.origin, "10r/s", "burst = 9, in_flight = 1")
        + "[[routes]]\npath = \"/brief\"\norigin = \"app\"\nmax_wait = \"800ms\"\n\
           limits = [{ zone = \"z\", burst = 9, in_flight = 1 }]\n";
    let gateway = Gateway::start(&text);
    let mut first = Client::ask(gateway.address(), "/first?key=a");
    eventually("it runs", || held.targets().len() == 1);
    let mut second = Client::ask(gateway.address(), "/second?key=a");
    gateway.wait_for_depth(1);
    let mut brief = Client::ask(gateway.address(), "/brief?key=a");
    let began = now();
    let rejected = brief.answer();
    assert_eq!(rejected.status, 429);
    assert!(began.elapsed() >= 700 * MS, "{:?}", began.elapsed());
    let labels = [("zone", "z"), ("reason", "max_wait")];
    let metrics = gateway.metrics();
    assert_eq!(metrics.count("drip_zone_rejections_total", &labels), 1);
    assert_eq!(held.targets().len(), 1, "the second has no place yet");
    held.release("/first?key=a");
    held.release("/second?key=a");
    assert_eq!(first.answer().status, 200);
    assert_eq!(second.answer().status, 200);
    let line = gateway.site.folder().join("access.log");
    eventually("it is logged", || {
        let text = whole_lines(&line);
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        let mut lines = lines.filter(|line: &Value| line["target"] == "/second?key=a");
        lines.any(|line| line["limit_status"] == "delayed")
    });
}

#[test]
fn requests_that_need_places_of_two_keys_never_wait_for_each_other() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        thread::sleep(MS);
        exchange.reply(b"ok")
    });
    let zones = "[zones.left]\nkey = \"$arg_left\"\nrate = \"none\"\n\
                 [zones.right]\nkey = \"$arg_right\"\nrate = \"none\"\n";
    let limit = |zone: &str| format!("{{ zone = \"{zone}\", burst = 100, in_flight = 1 }}");
    let (left, right) = (limit("left"), limit("right"));
    let route = |path: &str, one: &str, other: &str| {
        format!("[[routes]]\npath = \"{path}\"\norigin = \"app\"\nlimits = [{one}, {other}]\n")
    };
    let text = format!(
        "workers = 4\n[origins.app]\nservers = [\"http://{}\"]\n{zones}{}{}",
        origin.address,
        route("/a", &left, &right),
        route("/b", &right, &left)
    );
    let gateway = Gateway::start(&text);
    thread::scope(|scope| {
        for nth in 0..8 {
            let gateway = &gateway;
            scope.spawn(move || {
                for round in 0..50 {
                    let path = ["/a", "/b"][(nth + round) % 2];
                    let (left, right) = (round % 2, (nth + round / 2) % 2);
                    let target = format!("{path}?left={left}&right={right}");
                    assert_eq!(fetch(gateway.address(), &target).status, 200);
                }
            });
        }
    });
}

#[test]
fn a_client_that_waits_for_its_own_place_holds_none_of_all() {
    // Whatever the order of the zones' names.
    for all in ["all", "zones"] {
        let held = HoldingOrigin::of("slow");
        let limits = format!(
            "[{{ zone = \"{all}\", burst = 100, in_flight = 2 }}, \
             {{ zone = \"client\", burst = 20, in_flight = 1 }}]"
        );
        let gateway = Gateway::start(&format!(
            "workers = 4\n[origins.app]\nservers = [\"http://{}\"]\n\
             [zones.{all}]\nkey = \"$host\"\nrate = \"none\"\n\
             [zones.client]\nkey = \"$arg_client\"\nrate = \"none\"\n\
             [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = {limits}\n",
            held.origin.address
        ));
        let target = |nth: u32| format!("/slow{nth}?client=a");
        let mut clients = Vec::new();
        for nth in 0..6_u32 {
            clients.push(Client::ask(gateway.address(), &target(nth)));
            eventually("it runs or waits", || {
                let labels = |zone| [("zone", zone)];
                let metrics = gateway.metrics();
                let depth = |zone| metrics.value("drip_zone_queue_depth", &labels(zone));
                let waiting = [all, "client"].map(|zone| depth(zone).unwrap_or_default());
                let is_first = nth == 0 && held.targets().len() == 1;
                is_first || waiting.iter().sum::<f64>() >= f64::from(nth) && nth > 0
            });
        }
        for _ in 0..5 {
            assert_eq!(
                fetch(gateway.address(), "/quick?client=b").status,
                200,
                "{all}"
            );
        }
        for (nth, client) in (0..).zip(&mut clients) {
            held.release(&target(nth));
            assert_eq!(client.answer().status, 200, "{all}");
        }
        let mut arrivals = held.targets();
        arrivals.retain(|target| target.ends_with('a'));
        assert_eq!(arrivals, (0..6).map(target).collect::<Vec<_>>(), "{all}");
        eventually("nothing runs", || in_flight(&gateway) == 0);
        eventually("nothing waits", || {
            gateway.zone("drip_zone_queue_depth") == 0
        });
    }
}

#[test]
fn a_client_that_waits_at_a_gate_holds_its_own_permits_and_no_more_of_all() {
    let slow = HoldingOrigin::start();
    let quick = Origin::answering(|exchange: &mut Exchange| exchange.reply(b"ok"));
    let route = |path: &str, origin: &str| {
        format!(
            "[[routes]]\npath = \"{path}\"\norigin = \"{origin}\"\n\
             limits = [{{ zone = \"all\", burst = 100, in_flight = 3 }}, \
             {{ zone = \"client\", burst = 20, in_flight = 2 }}]\n"
        )
    };
    let gateway = Gateway::start(&format!(
        "workers = 2\n[origins.slow]\nservers = [\"http://{}\"]\nmax_in_flight = 1\n\
         queue_timeout = \"60s\"\n[origins.quick]\nservers = [\"http://{}\"]\n\
         [zones.all]\nkey = \"$host\"\nrate = \"none\"\n\
         [zones.client]\nkey = \"$arg_client\"\nrate = \"none\"\n{}{}",
        slow.origin.address,
        quick.address,
        route("/slow", "slow"),
        route("/quick", "quick"),
    ));
    let in_zone = |name: &str| gateway.metrics().count(name, &[("zone", "all")]);
    let target = |nth: usize| format!("/slow{nth}?client=a");
    let mut clients: Vec<_> = (0..6)
        .map(|nth| Client::ask(gateway.address(), &target(nth)))
        .collect();
    eventually("one runs, one waits at the gate, four in the zones", || {
        let waits_at_gate = gateway.metrics().count("drip_origin_queue_depth", &[]) == 1;
        let in_zones = gateway.metrics().count("drip_zone_queue_depth", &[]);
        slow.targets().len() == 1 && waits_at_gate && in_zones >= 4
    });
    assert_eq!(in_zone("drip_zone_in_flight"), 2);
    for client in ["b", "c", "d", "b"] {
        let target = format!("/quick?client={client}");
        assert_eq!(fetch(gateway.address(), &target).status, 200);
    }
    // Its own request to the other origin is one more of its own.
    let mut own = Client::ask(gateway.address(), "/quick?client=a");
    for nth in 0..6 {
        slow.release(&target(nth));
    }
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(own.answer().status, 200);
    eventually("nothing runs", || in_zone("drip_zone_in_flight") == 0);
}

#[test]
fn the_state_is_told_and_a_reload_keeps_it() {
    let held = HoldingOrigin::start();
    let text = file(&held.origin, "none", "burst = 1, in_flight = 1");
    let gateway = Gateway::start(&text);
    let mut first = Client::ask(gateway.address(), "/first?key=a");
    eventually("it runs", || held.targets().len() == 1);
    let mut second = Client::ask(gateway.address(), "/second?key=a");
    gateway.wait_for_depth(1);
    let json = |path: &str| -> Value {
        let answer = gateway.admin(path).expect("an admin port");
        serde_json::from_str(&answer.text()).expect("JSON")
    };
    let zone = &json("/api/zones")["zones"][0];
    assert_eq!(zone["rate"], "none");
    assert_eq!(
        (&zone["in_flight"], &zone["limits"][0]["in_flight"]),
        (&1.into(), &1.into())
    );
    let key = &json("/api/zones/z/keys")["keys"][0];
    assert_eq!((&key["in_flight"], &key["depth"]), (&1.into(), &1.into()));
    // Two may run from now on, and one of them is the one that waits.
    gateway
        .site
        .write(&text.replace("in_flight = 1", "in_flight = 2"));
    eventually("it is in force", || {
        json("/api/zones")["zones"][0]["limits"][0]["in_flight"] == 2
    });
    eventually("it runs", || held.targets().len() == 2);
    let mut third = Client::ask(gateway.address(), "/third?key=a");
    gateway.wait_for_depth(1);
    for nth in ["first", "second", "third"] {
        held.release(&format!("/{nth}?key=a"));
    }
    for client in [&mut first, &mut second, &mut third] {
        assert_eq!(client.answer().status, 200);
    }
    eventually("nothing runs", || in_flight(&gateway) == 0);
}
