//! Tests of what the operator sees of collapsed requests.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::live::Listener;
use crate::support::operator::json as api;
use crate::support::{
    Client, Gateway, HoldingOrigin, Origin, all_pass, assert_contains, eventually, fetch,
    one_origin,
};

/// Number of clients that request the same page at once.
const CROWD: usize = 10;

fn collapsing(plain: &str, collapse: &str) -> String {
    format!("{plain}[routes.collapse]\n{collapse}\n")
}

fn shared(gateway: &Gateway) -> Value {
    api(gateway, "/api/origins")["origins"][0]["shared"].clone()
}

#[test]
fn what_is_received_sent_and_kept_is_shown_while_a_route_collapses() {
    let origin = HoldingOrigin::of("held");
    let plain = one_origin(origin.origin.address, "", "");
    let file = collapsing(&plain, "keep = \"1h\"");
    let gateway = Gateway::start(&file);
    let mut live = Listener::connect(&gateway, "", "");
    live.next();
    let before = shared(&gateway);
    assert_eq!(before["received"], 0);
    assert_eq!(before["share"], Value::Null);

    let ask = |()| Client::ask(gateway.address(), "/page?held");
    let mut crowd = [(); CROWD].map(ask);
    origin.origin.wait_for(1);
    thread::sleep(Duration::from_millis(300));
    origin.release("/page?held");
    all_pass(&mut crowd);
    for _ in 0..5 {
        assert_eq!(fetch(gateway.address(), "/page?held").status, 200);
    }
    assert_eq!(origin.targets().len(), 1, "one departure answers all");

    let received = shared(&gateway);
    let of = |outcome: &str| received["requests"][outcome].as_i64().expect("a number");
    assert_eq!(of("leader"), 1, "{received}");
    assert_eq!(of("follower") + of("kept"), 14, "{received}");
    assert!(of("follower") > 0, "{received}");
    assert_eq!(received["received"], 15);
    assert_eq!(received["sent"], 1);
    let share = received["share"].as_f64().expect("a share");
    assert!((share - 14.0 / 15.0).abs() < 1e-9, "{received}");
    for outcome in ["alone", "leader", "follower", "kept", "stale", "refresh"] {
        assert_eq!(gateway.shared(outcome), of(outcome), "{outcome}");
    }
    let app = [("origin", "app")];
    let waited = gateway.count("drip_shared_wait_seconds_count", &app);
    assert_eq!(waited, of("follower"));

    let kept = || api(&gateway, "/api/origins")["shared_answers"].clone();
    let received = kept();
    assert_eq!(received["answers"], 1);
    assert_eq!(received["evicted"], 0);
    assert_eq!(received["max_bytes"], 64 << 20);
    for (name, field) in [
        ("drip_shared_answers", "answers"),
        ("drip_shared_answers_bytes", "bytes"),
        ("drip_shared_answers_max_bytes", "max_bytes"),
        ("drip_shared_evictions_total", "evicted"),
    ] {
        assert_eq!(gateway.count(name, &[]), received[field], "{name}");
    }
    assert!(received["bytes"].as_u64() > Some(400), "{received}");

    let (mut asked, mut wait) = (0, None);
    while asked < 15 {
        let sample = live.next().data;
        let second = &sample["origins"][0]["shared"];
        asked += second["received"].as_u64().expect("a number");
        wait = second["wait_p99"].as_f64().or(wait);
        assert_eq!(sample["shared_answers"]["max_bytes"], 64 << 20);
    }
    assert_eq!(asked, 15);
    assert!(wait.is_some_and(|it| (0.25..5.0).contains(&it)), "{wait:?}");
    let shown = gateway.top();
    assert_contains!(shown, "shared  received  sent", "93.3 %");

    gateway.site.write(&plain);
    gateway.wait_for_line("the changed file is in force");
    assert!(!gateway.metrics().0.contains("\ndrip_shared_"));
    assert_eq!(kept(), Value::Null);
    assert_eq!(shared(&gateway), Value::Null);
    eventually("a sample without it", || {
        !gateway.top().contains("shared  ")
    });

    // The new file starts without the old counts and kept responses.
    gateway.site.write(&file);
    eventually("the route collapses again", || {
        shared(&gateway) != Value::Null
    });
    assert_eq!(gateway.shared("leader"), 0);
    let nothing = json!({"answers": 0, "bytes": 0, "max_bytes": 64 << 20, "evicted": 0});
    assert_eq!(kept(), nothing);
}

#[test]
fn answers_that_go_before_their_time_are_counted() {
    let origin = Origin::answering(|exchange| exchange.reply(&[b'x'; 2000]));
    let plain = one_origin(origin.address, "shared_answers = \"8KB\"", "");
    for (keep, evicts) in [("1h", true), ("1ms", false)] {
        let collapse = format!("keep = \"{keep}\"");
        let gateway = Gateway::start(&collapsing(&plain, &collapse));
        for page in 0..9 {
            assert_eq!(fetch(gateway.address(), &format!("/{page}")).status, 200);
            thread::sleep(Duration::from_millis(5));
        }
        let kept = api(&gateway, "/api/origins")["shared_answers"].clone();
        assert!(kept["bytes"].as_u64() <= Some(8 << 10), "{kept}");
        let evicted = kept["evicted"].as_u64().expect("a number");
        assert_eq!(evicted > 0, evicts, "{keep}: {kept}");
        let counted = gateway.count("drip_shared_evictions_total", &[]);
        assert_eq!(counted, kept["evicted"], "{keep}");
    }
}
