//! Tests of `/api/live`: a sample each second, and the last ten minutes for a new listener.

use std::time::Duration;

use serde_json::Value;

use crate::support::live::Listener;
use crate::support::operator::ask;
use crate::support::{Gateway, Origin, one_zone, start_limited};

#[test]
fn each_second_is_reported_as_it_was() {
    let (origin, gateway) = start_limited("10r/s", "burst = 100");
    let mut listener = Listener::connect(&gateway, "", "");
    let newest = listener.history().last().copied().unwrap_or(0);
    let _clients = [(); 60].map(|()| gateway.ask("/?key=%3Ca%3E"));
    let count = |value: &Value| value.as_u64().expect("a number");
    let (mut passed, mut delayed, mut seen) = (0, 0, Vec::new());
    for seq in newest + 1..newest + 5 {
        let event = listener.next();
        let sample = event.data;
        assert_eq!(event.name, "sample");
        assert_eq!((event.id, &sample["seq"]), (Some(seq), &Value::from(seq)));
        let zone = &sample["zones"][0];
        passed += count(&zone["passed"]);
        delayed += count(&zone["delayed"]);
        seen.push(sample);
    }
    // One request at once, and on a busy machine some more that arrive after their slots.
    assert!((1..=6).contains(&passed), "{passed}");
    assert!((20..=42).contains(&delayed), "{delayed} in 3 to 4 seconds");
    let last = &seen[3];
    let zone = &last["zones"][0];
    assert_eq!(zone["name"], "z");
    assert_eq!(zone["rate"], 10.0);
    assert_eq!(zone["keys"], 1);
    assert_eq!(zone["rejected"], 0);
    let per_second = count(&zone["delayed"]);
    assert!((8..=12).contains(&per_second), "{per_second}");
    let depth = count(&zone["depth"]);
    assert!((10..=40).contains(&depth), "{depth}");
    assert_eq!(zone["depth_max"], depth);
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value}"));
    let waits = ["wait_p50", "wait_p95", "oldest_wait"].map(|name| number(&zone[name]));
    let [p50, p95, oldest] = waits;
    // The request that leaves now has waited as long as those that still wait.
    let is_same = p50 <= p95 && p95 < oldest * 1.07 && p50 > oldest - 2.0;
    assert!(is_same, "{zone}");
    let deepest = &last["deepest"][0];
    assert_eq!(deepest["zone"], "z");
    assert_eq!(deepest["key"], "<a>");
    assert_eq!(deepest["depth"], depth);
    let app = &last["origins"][0];
    assert_eq!(app["name"], "app");
    assert_eq!((&app["healthy"], &app["servers"]), (&1.into(), &1.into()));
    assert_eq!(last["reload"], 0);
    assert_eq!(last["error"], Value::Null);
    assert_eq!(last["stopping"], false);
    assert!(number(&last["time"]) - number(&seen[0]["time"]) > 2.5);

    // A reload and a broken file are reported, too.
    let faster = one_zone(&origin, "20r/s", "burst = 100");
    for (text, status) in [(&*faster, 200), ("nonsense", 422)] {
        gateway.site.write(text);
        assert_eq!(ask(&gateway, "POST", "/api/reload", "").status, status);
    }
    let samples = std::iter::repeat_with(|| listener.next().data);
    let sample = samples.take(3).find(|it| it["reload"] == 1);
    let sample = sample.expect("a sample after the reload");
    assert_eq!(sample["zones"][0]["rate"], 20.0);
    assert_eq!(sample["error"]["line"], 4);
    assert!(sample["error"]["message"].is_string());
}

#[test]
fn whoever_comes_back_gets_what_was_missed() {
    let gateway = Gateway::start(&one_zone(&Origin::start(), "1r/s", "burst = 0"));
    // Samples are taken even without a listener.
    std::thread::sleep(Duration::from_millis(2_200));
    let all = Listener::connect(&gateway, "", "").history();
    assert!(all.len() >= 3 && all[0] == 1, "{all:?}");
    assert!(all.windows(2).all(|pair| pair[1] == pair[0] + 1), "{all:?}");
    for (query, fields) in [("", "Last-Event-ID: 2\r\n"), ("?since=2", "")] {
        let mut listener = Listener::connect(&gateway, query, fields);
        let missed = listener.history();
        assert_eq!(missed[0], 3, "{missed:?}");
        let next = listener.next();
        assert_eq!(next.id, missed.last().map(|last| last + 1));
    }
    // The number is from an earlier process, or invalid.
    for fields in ["Last-Event-ID: 987654\r\n", "Last-Event-ID: x\r\n"] {
        assert_eq!(Listener::connect(&gateway, "", fields).history()[0], 1);
    }
}

#[test]
fn sixty_four_may_listen_and_one_more_replaces_the_oldest() {
    let gateway = Gateway::start(&one_zone(&Origin::start(), "1r/s", "burst = 0"));
    let listen = || Listener::connect(&gateway, "", "");
    let mut listeners: Vec<_> = std::iter::repeat_with(listen).take(64).collect();
    let mut newcomer = listen();
    newcomer.history();
    assert_eq!(newcomer.next().name, "sample");
    // Its response ends completely.
    let rest = listeners.remove(0).rest();
    assert!(rest.ends_with(b"0\r\n\r\n"), "{} bytes", rest.len());
    // The other listeners continue. The history is empty if a listener came before the first
    // sample.
    for listener in &mut listeners {
        let newest = listener.history().last().copied().unwrap_or(0);
        let next = listener.next();
        assert_eq!((next.id, &*next.name), (Some(newest + 1), "sample"));
    }
}
