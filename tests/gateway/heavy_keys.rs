//! Tests of the keys with the most requests, rejections and waiting time.

use serde_json::{Value, json as value};

use crate::support::live::Listener;
use crate::support::operator::{ask, json, parse};
use crate::support::{Gateway, Origin, eventually, one_zone, start_limited};

fn heavy(gateway: &Gateway, query: &str) -> Value {
    json(gateway, &format!("/api/zones/z/keys{query}"))
}

/// Returns names, requests and rejections of the listed keys.
fn counts(list: &Value) -> Vec<(&str, u64, u64)> {
    let keys = list["keys"].as_array().expect("a list").iter();
    keys.map(|key| {
        let number = |field: &str| key[field].as_u64().expect("a number");
        let name = key["key"].as_str().expect("a text");
        (name, number("requests"), number("rejections"))
    })
    .collect()
}

fn ask_times(gateway: &Gateway, target: &str, times: usize) {
    let mut client = gateway.connect();
    for _ in 0..times {
        client.fetch(target);
    }
}

#[test]
fn the_heaviest_keys_are_listed_and_who_is_rejected_most_is_not_who_waits_most() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/h", "burst = 2, nodelay = true")
        + "[[routes]]\npath = \"/queue\"\norigin = \"app\"\nlimits = [{ zone = \"z\", burst = 9 }]\n\
           [[routes]]\npath = \"/dry\"\norigin = \"app\"\ndry_run = true\nlimits = [{ zone = \"z\", burst = 0 }]\n\
           [zones.z.plans.gold]\nkeys = [\"deep\"]\nrate = \"5r/s\"\n";
    let gateway = Gateway::start(&file);
    ask_times(&gateway, "/?key=busy", 3);
    ask_times(&gateway, "/?key=greedy", 10);
    ask_times(&gateway, "/dry?key=shadow", 5);
    ask_times(&gateway, "/queue?key=deep", 8);

    let by_requests = heavy(&gateway, "?sort=requests");
    let expected = [
        ("greedy", 10, 7),
        ("deep", 8, 0),
        ("shadow", 5, 0),
        ("busy", 3, 0),
    ];
    assert_eq!(counts(&by_requests), expected);
    assert_eq!(by_requests["window_seconds"], 60);
    assert_eq!(by_requests["error"], 0.0);
    assert_eq!(by_requests["total"], 26.0);
    let greedy = &by_requests["keys"][0];
    assert!(greedy["excess"].as_f64() > Some(1.9), "{greedy}");
    assert_eq!(greedy["depth"], 0);
    assert!(greedy.get("plan").is_none());

    let rejected = heavy(&gateway, "?sort=rejections&window=600&limit=1");
    assert_eq!(counts(&rejected), expected[..1]);
    assert_eq!(rejected["window_seconds"], 600);
    assert_eq!(rejected["total"], 7.0);

    let waited = heavy(&gateway, "?sort=wait&window=60");
    assert_eq!(counts(&waited), [("deep", 8, 0)]);
    assert_eq!(waited["keys"][0]["plan"], "gold");
    let seconds = waited["keys"][0]["wait_seconds"].as_f64();
    assert!(seconds > Some(0.1), "{waited}");
}

#[test]
fn windows_count_by_other_algorithms_and_two_zones_count_each_its_own() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/h", "burst = 100, nodelay = true")
        .replace("limits = [", "limits = [{ zone = \"windows\" }, ")
        + "[zones.windows]\nkey = \"$http_user\"\nrate = \"2r/h\"\nalgorithm = \"sliding_window_log\"\n";
    let gateway = Gateway::start(&file);
    let mut client = gateway.connect();
    for _ in 0..5 {
        client.send(b"GET /?key=a HTTP/1.1\r\nHost: a\r\nUser: u\r\n\r\n");
        client.answer();
    }
    let of_windows = json(&gateway, "/api/zones/windows/keys?sort=rejections");
    assert_eq!(counts(&of_windows), [("u", 5, 3)]);
    let of_z = heavy(&gateway, "?sort=requests");
    let only = counts(&of_z);
    assert_eq!(only, [("a", 2, 0)], "the others joined no queue of it");
}

#[test]
fn a_wrong_query_says_what_would_be_right() {
    let (_origin, gateway) = start_limited("1r/s", "burst = 2");
    for (query, part) in [
        (
            "sort=requests&window=61",
            "window is 61; it must be 60 or 600",
        ),
        ("window=60", "window goes with sort=requests"),
        ("sort=depth&window=600", "window goes with sort=requests"),
        (
            "sort=rejections&limit=0",
            "limit is 0; it must be from 1 to 1000",
        ),
        ("sort=deepest", "rejections or wait"),
    ] {
        let answer = ask(&gateway, "GET", &format!("/api/zones/z/keys?{query}"), "");
        assert_eq!(answer.status, 400, "{query}");
        let error = parse(&answer)["error"].to_string();
        assert!(error.contains(part), "{query}: {error}");
    }
}

#[test]
fn each_sample_names_who_is_rejected_most_and_its_share() {
    let (_origin, gateway) = start_limited("1r/h", "burst = 0");
    for (key, times) in [
        ("%3Cone%3E", 13),
        ("two", 5),
        ("three", 3),
        ("four", 3),
        ("good", 1),
    ] {
        ask_times(&gateway, &format!("/?key={key}"), times);
    }
    let mut listener = Listener::connect(&gateway, "", "");
    listener.history();
    let mut zone = Value::Null;
    eventually("the rejections are in a sample", || {
        zone = listener.next().data["zones"][0].clone();
        zone["rejected_keys"][0]["rejections"] == 12
    });
    let keys = zone["rejected_keys"].as_array().expect("a list");
    let names: Vec<_> = keys.iter().map(|it| it["key"].as_str()).collect();
    let seen = (names.len(), names[0], names[2]);
    assert_eq!(seen, (3, Some("<one>"), Some("four")));
    assert_eq!(keys[0]["requests"], 13);
    for (key, expected) in keys.iter().zip([0.6, 0.2]) {
        let share = key["share"].as_f64().expect("a share");
        assert!((share - expected).abs() < 1e-9, "{zone}");
    }
    assert_eq!(zone["max_keys"], 100_000);
    assert_eq!(zone["keys"], value!(5));
}
