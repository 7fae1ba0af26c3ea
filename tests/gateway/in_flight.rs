//! Tests of limits on running requests of a key: nginx's `limit_conn`, but with waiting.

use std::io::Read;

use crate::support::operator::{json, keys};
use crate::support::{
    Exchange, Gateway, HoldingOrigin, Origin, all_pass, eventually, one_zone, start_drip, zone,
};

/// Returns a file with four workers whose key `$arg_key` has this limit, in a zone of this rate.
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
        clients.push(gateway.ask(&target(nth)));
        if nth < 2 {
            eventually("it runs", || held.targets().len() == nth + 1);
        } else {
            gateway.wait_for_depth(i64::try_from(nth - 1).expect("small"));
        }
    }
    let rejected = gateway.fetch(&target(6));
    assert_eq!(rejected.status, 429);
    assert_eq!(rejected.field("retry-after"), Some("1"));
    assert_eq!(in_flight(&gateway), 2);
    // Another key has its own permits.
    held.release("/other?key=b");
    assert_eq!(gateway.fetch("/other?key=b").status, 200);
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
fn a_permit_is_free_at_the_last_byte_of_the_answer_and_held_by_a_tunnel() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        if !exchange.target().starts_with("/tunnel") {
            return exchange.reply(b"ok");
        }
        let fields = "Connection: upgrade\r\nUpgrade: x\r\n";
        exchange.send(format!("HTTP/1.1 101 Switching Protocols\r\n{fields}\r\n").as_bytes())?;
        exchange.stream().read_to_end(&mut Vec::new())?;
        Exchange::close()
    });
    let gateway = Gateway::start(&file(&origin, "none", "in_flight = 1"));
    let mut tunnel = gateway.connect();
    let fields = "Host: test\r\nConnection: upgrade\r\nUpgrade: x\r\n";
    tunnel.send(format!("GET /tunnel?key=a HTTP/1.1\r\n{fields}\r\n"));
    let mut head = [0; 12];
    tunnel.read_exact(&mut head);
    assert_eq!(&head, b"HTTP/1.1 101");
    gateway.check_each(3, "/?key=a", 429);
    drop(tunnel);
    eventually("the tunnel has ended", || in_flight(&gateway) == 0);
    gateway.check_each(20, "/?key=a", 200);
}

#[test]
fn a_waiter_of_its_own_permit_holds_no_shared_permit() {
    // Whatever the order of the zones' names.
    for all in ["all", "zones"] {
        let held = HoldingOrigin::of("slow");
        let zones = zone(all, "$host", "none") + &zone("client", "$arg_client", "none");
        let limits = format!(
            "limits = [{{ zone = \"{all}\", burst = 100, in_flight = 2 }}, \
             {{ zone = \"client\", burst = 20, in_flight = 1 }}]"
        );
        let gateway = start_drip(&held.origin, &zones, &[("/", &limits)]);
        let target = |nth: i64| format!("/slow{nth}?client=a");
        let mut clients = Vec::new();
        for nth in 0..6 {
            clients.push(gateway.ask(&target(nth)));
            eventually("it runs or waits", || {
                let waits = gateway.count("drip_zone_queue_depth", &[]) >= nth;
                held.targets().len() == 1 && waits
            });
        }
        for _ in 0..5 {
            let status = gateway.fetch("/quick?client=b").status;
            assert_eq!(status, 200, "{all}");
        }
        for (nth, client) in (0..).zip(&mut clients) {
            held.release(&target(nth));
            assert_eq!(client.answer().status, 200, "{all}");
        }
        let mut arrivals = held.targets();
        arrivals.retain(|target| target.ends_with('a'));
        assert_eq!(arrivals, (0..6).map(target).collect::<Vec<_>>(), "{all}");
        eventually("nothing runs or waits", || {
            let of = |name| gateway.count(name, &[]);
            (of("drip_zone_in_flight"), of("drip_zone_queue_depth")) == (0, 0)
        });
    }
}

#[test]
fn a_client_that_waits_at_a_gate_holds_its_own_permits_and_no_more_of_all() {
    let slow = HoldingOrigin::start();
    let quick = Origin::start();
    let zones = zone("all", "$host", "none") + &zone("client", "$arg_client", "none");
    let quick_origin = format!(
        "[origins.quick]\nservers = [\"http://{}\"]\n",
        quick.address
    );
    let gate = format!("max_in_flight = 1\nqueue_timeout = \"60s\"\n{quick_origin}{zones}");
    let limits = "limits = [{ zone = \"all\", burst = 100, in_flight = 3 }, \
                  { zone = \"client\", burst = 20, in_flight = 2 }]";
    let quick_route = format!("\n[[routes]]\npath = \"/quick\"\norigin = \"quick\"\n{limits}");
    let slow_route = format!("{limits}{quick_route}");
    let gateway = start_drip(&slow.origin, &gate, &[("/slow", &slow_route)]);
    let in_zone = |name: &str| gateway.count(name, &[("zone", "all")]);
    let target = |nth: usize| format!("/slow{nth}?client=a");
    let ask = |nth| gateway.ask(&target(nth));
    let mut clients: Vec<_> = (0..6).map(ask).collect();
    eventually("one runs, one waits at the gate, four in the zones", || {
        let waits_at_gate = gateway.count("drip_origin_queue_depth", &[]) == 1;
        let in_zones = gateway.count("drip_zone_queue_depth", &[]);
        slow.targets().len() == 1 && waits_at_gate && in_zones >= 4
    });
    assert_eq!(in_zone("drip_zone_in_flight"), 2);
    for client in ["b", "c", "d", "b"] {
        let target = format!("/quick?client={client}");
        assert_eq!(gateway.fetch(&target).status, 200);
    }
    // Its request to the other origin counts separately.
    let mut own = gateway.ask("/quick?client=a");
    for nth in 0..6 {
        slow.release(&target(nth));
    }
    all_pass(clients.iter_mut().chain([&mut own]));
    eventually("nothing runs", || in_zone("drip_zone_in_flight") == 0);
}

#[test]
fn the_state_is_reported_and_kept_by_a_reload() {
    let held = HoldingOrigin::start();
    let text = file(&held.origin, "none", "burst = 1, in_flight = 1");
    let gateway = Gateway::start(&text);
    let ask = |name: &str| gateway.ask(&format!("/{name}?key=a"));
    let mut clients = vec![ask("first")];
    held.origin.wait_for(1);
    clients.push(ask("second"));
    gateway.wait_for_depth(1);
    let zone = || json(&gateway, "/api/zones/z");
    let received = zone();
    assert_eq!(received["rate"], "none");
    assert_eq!(received["in_flight"], 1);
    assert_eq!(received["limits"][0]["in_flight"], 1);
    let key = keys(&gateway, "").remove(0);
    assert_eq!((&key["in_flight"], &key["depth"]), (&1.into(), &1.into()));
    // Two may run from now on, and one of them is the waiting one.
    let more = text.replace("in_flight = 1", "in_flight = 2");
    gateway.site.write(&more);
    eventually("it is in force", || zone()["limits"][0]["in_flight"] == 2);
    held.origin.wait_for(2);
    clients.push(ask("third"));
    gateway.wait_for_depth(1);
    for nth in ["first", "second", "third"] {
        held.release(&format!("/{nth}?key=a"));
    }
    all_pass(&mut clients);
    eventually("nothing runs", || in_flight(&gateway) == 0);
}
