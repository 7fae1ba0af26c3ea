//! Tests of `mask_keys`: no output shows a client's key, and masked names identify keys.

use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::gateway::history::nth_change;
use crate::support::live::Listener;
use crate::support::operator::{self, ask, delete, json, parse, post, undo};
use crate::support::{
    Answer, Client, Gateway, Origin, all_pass, assert_contains, eventually, one_origin, whole_lines,
};

/// Part of each key, and of nothing else.
pub(super) const SECRET: &str = "sk_live";

/// Returns a file with a zone keyed by a field, before a gate that its keys share.
fn file(origin: &Origin, zone: &str) -> String {
    let address = origin.address;
    let tables = format!(
        r#"
[origins.gated]
servers = ["http://{address}"]
rate = "1r/h"
share = "z"
queue = 1
queue_timeout = "1h"

[zones.z]
key = "$http_x_api_key"
rate = "60r/h"
{zone}

[zones.z.plans]
gold = {{ keys = ["sk_live_gold"], weight = 2 }}
fast = {{ keys = ["sk_live_fast"], rate = "20r/s" }}

[[routes]]
path = "/gated"
origin = "gated"
limits = [{{ zone = "z", burst = 100, nodelay = true }}]
"#
    );
    let log = "[log]\nlevel = \"debug\"\naccess = \"access.log\"\n";
    let limits = "limits = [{ zone = \"z\", burst = 1 }]\n";
    format!("{}{limits}", one_origin(address, log, &tables))
}

pub(super) fn send(gateway: &Gateway, path: &str, key: &str) -> Client {
    let mut client = gateway.connect();
    client.send(format!(
        "GET {path} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\n\r\n"
    ));
    client
}

/// Sends a request that passes, one that waits, which is returned, and `count` rejected ones.
fn limited(gateway: &Gateway, path: &str, key: &str, count: usize) -> Client {
    assert_eq!(send(gateway, path, key).answer().status, 200);
    let before = waiting(gateway);
    let waits = send(gateway, path, key);
    eventually("one waits", || waiting(gateway) == before + 1);
    for _ in 0..count {
        let status = send(gateway, path, key).answer().status;
        assert!(status == 429 || status == 503, "{status}");
    }
    waits
}

fn waiting(gateway: &Gateway) -> u64 {
    let depth = |value: &Value| value.as_u64().expect("a number");
    let origins = json(gateway, "/api/origins");
    let gates = origins["origins"].as_array().expect("a list").iter();
    let at_gates: u64 = gates
        .filter_map(|it| it["gate"].get("queue_depth").map(depth))
        .sum();
    at_gates + depth(&json(gateway, "/api/zones/z")["depth"])
}

/// Overrides a key.
fn put(gateway: &Gateway, key: &str, body: &str) -> Answer {
    let path = format!("/api/zones/z/keys/{key}/override");
    operator::send(gateway, "PUT", &path, body)
}

/// Outputs of the gateway: source and text.
#[derive(Default)]
pub(super) struct Shown(pub Vec<(String, String)>);

impl Shown {
    fn add(&mut self, source: &str, text: &impl ToString) {
        self.0.push((source.to_owned(), text.to_string()));
    }
}

/// Returns all outputs of the gateway about limited requests, overrides and reloads.
fn all_that_is_shown(zone: &str) -> Vec<(String, String)> {
    let origin = Origin::start();
    let text = file(&origin, zone);
    let gateway = Gateway::start(&text);
    let mut shown = Shown::default();

    let long = format!("sk_live_{}", "x".repeat(300));
    let mut held = vec![limited(&gateway, "/", "sk_live_alpha", 30)];
    held.push(limited(&gateway, "/", &long, 3));
    // The second one is delayed.
    all_pass(&mut [1, 2].map(|_| send(&gateway, "/", "sk_live_fast")));
    held.push(limited(&gateway, "/gated", "sk_live_gold", 3));
    let headline = || json(&gateway, "/api/headline").to_string();
    eventually("it blames a key", || headline().contains("causes"));
    shown.add("headline", &headline());
    let (status, what_if) = post(&gateway, "/api/zones/z/what-if", r#"{"rate": "1000r/s"}"#);
    assert_eq!(status, 200, "{what_if}");
    shown.add("what-if", &what_if);

    act(&gateway, &text, &mut shown);
    read(&gateway, &mut shown);
    read_logs(&gateway, &mut shown);
    drop(held);
    shown.0
}

/// Sets overrides and saves the file.
fn act(gateway: &Gateway, text: &str, shown: &mut Shown) {
    // One override that stays, one that expires, and one that is removed.
    for (key, span) in [("alpha", "1h"), ("beta", "1s"), ("gone", "1h")] {
        let body = format!(r#"{{"rate": "61r/h", "for": "{span}"}}"#);
        let set = put(gateway, &format!("sk_live_{key}"), &body);
        assert_eq!(set.status, 200, "{}", set.text());
        shown.add("the answer to an override", &set.text());
    }
    let (status, undone) = delete(gateway, "/api/zones/z/keys/sk_live_gone/override");
    assert_eq!(status, 200, "{undone}");
    gateway.wait_for_line("override expired");
    nth_change(gateway, 5);
    let two = r#"["sk_live_gold", "sk_live_new"]"#;
    gateway
        .site
        .write(&text.replace(r#"["sk_live_gold"]"#, two));
    nth_change(gateway, 6);
    let config = |what: &str| json(gateway, "/api/config")[what].clone();
    shown.add("settings", &config("settings"));
    shown.add("changes", &config("changes"));
    let twice = format!("{text}[zones.z.plans.b]\nkeys = [\"sk_live_gold\"]\n");
    gateway.site.write(&twice);
    eventually("the file is broken", || !config("error").is_null());
    shown.add("problems", &config("error"));
}

/// Reads the admin port, directly and by `drip top`.
fn read(gateway: &Gateway, shown: &mut Shown) {
    let names = "zones zones/z zones/z/overrides origins routes store headline";
    let sorts = "depth excess oldest_wait requests rejections wait";
    let names = names.split(' ').map(|name| format!("/api/{name}"));
    let sorts = sorts
        .split(' ')
        .map(|sort| format!("/api/zones/z/keys?sort={sort}"));
    for path in names.chain(sorts) {
        shown.add(&path, &json(gateway, &path));
    }
    for path in ["/metrics", "/", "/healthz", "/readyz"] {
        shown.add(path, &ask(gateway, "GET", path, "").text());
    }
    read_samples(gateway, shown);
}

/// Reads two samples of the stream, and the output of `drip top` for them.
pub(super) fn read_samples(gateway: &Gateway, shown: &mut Shown) {
    let mut live = Listener::connect(gateway, "", "");
    shown.add("history of the stream", &live.next().data);
    shown.add("sample", &live.next().data);
    shown.add("drip top", &gateway.top());
}

/// Parts of lines of the log.
#[rustfmt::skip]
const EVENTS: [&str; 8] = [
    "limiting requests", "delaying requests", "the origin's gate rejects", "override set",
    "override expired", "override undone", "the changed file is in force", "is in the plans",
];

/// Reads both logs.
fn read_logs(gateway: &Gateway, shown: &mut Shown) {
    for event in EVENTS {
        gateway.wait_for_line(event);
        let lines = gateway.log_lines().into_iter().map(|(_, line)| line);
        let lines: Vec<_> = lines.filter(|line| line.contains(event)).collect();
        shown.add(&format!("log: {event}"), &lines.join("\n"));
    }
    let access = || whole_lines(gateway.site.folder().join("access.log"));
    eventually("the access log has its lines", || {
        access().lines().count() >= 36
    });
    shown.add("access log", &access());
    shown.add("log", &gateway.log());
}

/// Outputs that never show a key.
#[rustfmt::skip]
const WITHOUT_KEYS: [&str; 9] = [
    "the answer to an override", "/api/zones", "/api/zones/z", "/api/routes", "/api/store",
    "/api/headline", "/", "/healthz", "/readyz",
];

#[test]
fn a_masked_key_is_shown_nowhere() {
    let mut names = 0;
    for (source, text) in all_that_is_shown("mask_keys = true") {
        assert!(!text.contains(SECRET), "{source}: {text}");
        names += usize::from(text.contains("key-"));
    }
    assert!(names > 20, "its masked name is shown instead: {names}");
}

#[test]
fn without_mask_keys_each_of_these_outputs_shows_the_key() {
    let shown = all_that_is_shown("");
    let without = shown.iter().filter(|(_, text)| !text.contains(SECRET));
    let without: Vec<&str> = without.map(|(source, _)| source.as_str()).collect();
    let unexpected = without.iter().filter(|it| !WITHOUT_KEYS.contains(it));
    assert_eq!(unexpected.collect::<Vec<_>>(), Vec::<&&str>::new());
}

const PAUSE: &str = r#"{"pause": true, "for": "1h"}"#;

/// Returns the names of the listed keys.
fn names(gateway: &Gateway, sort: &str) -> Vec<String> {
    let keys = operator::keys(gateway, &format!("?sort={sort}"));
    let mut names: Vec<String> = operator::names(&keys)
        .into_iter()
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

#[test]
fn a_key_is_found_by_its_masked_name_which_is_the_same_in_each_list() {
    let origin = Origin::start();
    let gateway = Gateway::start(&file(&origin, "mask_keys = true"));
    let long = |last: &str| format!("sk_live_{}{last}", "x".repeat(300));
    for key in ["sk_live_alpha", &long("1"), &long("2")] {
        assert_eq!(send(&gateway, "/", key).answer().status, 200);
    }
    let known = names(&gateway, "depth");
    assert_eq!(known.len(), 3, "{known:?}");
    assert_eq!(names(&gateway, "requests"), known);

    // Each override applies to one key, the one of its name.
    let overridden = || {
        let overrides = json(&gateway, "/api/zones/z/overrides");
        overrides["keys"].as_array().map(Vec::len)
    };
    for name in &known {
        let set = put(&gateway, name, PAUSE);
        assert_eq!(set.status, 200, "{}", set.text());
    }
    assert_eq!(overridden(), Some(3));
    for name in &known {
        undo(&gateway, &format!("/api/zones/z/keys/{name}/override"));
        let (status, forgotten) = delete(&gateway, &format!("/api/zones/z/keys/{name}"));
        assert_eq!((status, &forgotten["forgotten"]), (200, &Value::Bool(true)));
    }
    let keys = operator::keys(&gateway, "");
    assert!(keys.iter().all(|key| key["excess"] == 0.0), "{keys:?}");
    // The unmasked key itself works, too.
    assert_eq!(send(&gateway, "/", "sk_live_alpha").answer().status, 200);
    undo(&gateway, "/api/zones/z/keys/sk_live_alpha");

    let forgotten = delete(&gateway, "/api/zones/z/keys/key-000000000000");
    let set = put(&gateway, "key-000000000000", PAUSE);
    for (status, answer) in [forgotten, (set.status, parse(&set))] {
        assert_eq!(status, 404);
        let error = answer["error"].as_str().expect("a text");
        assert_contains!(error, "write the key itself");
    }
    assert_eq!(overridden(), Some(0));
}

#[test]
fn a_key_that_is_only_among_the_heaviest_is_found_and_another_run_has_other_names() {
    let origin = Origin::start();
    let zone = "mask_keys = true\nidle_timeout = \"1ms\"\nmax_keys = 4";
    let gateway = Gateway::start(&file(&origin, zone));
    assert_eq!(send(&gateway, "/", "sk_live_alpha").answer().status, 200);
    let name = names(&gateway, "requests").remove(0);
    undo(&gateway, &format!("/api/zones/z/keys/{name}"));
    eventually("the key is forgotten", || {
        names(&gateway, "depth").is_empty()
    });
    let set = put(&gateway, &name, PAUSE);
    assert_eq!(set.status, 200, "{}", set.text());
    let _held = send(&gateway, "/", "sk_live_alpha");
    gateway.wait_for_depth(1);

    let other = Gateway::start(&file(&origin, "mask_keys = true"));
    assert_eq!(send(&other, "/", "sk_live_alpha").answer().status, 200);
    assert_ne!(names(&other, "requests"), [name]);
}

#[test]
fn the_headlines_about_one_key_and_its_peer_show_the_masked_name() {
    let origin = Origin::start();
    let zone = "key = \"$remote_addr\"\nmask_keys = true";
    let text = file(&origin, "").replace("key = \"$http_x_api_key\"", zone);
    let gateway = Gateway::start(&text);
    let mut client = gateway.connect();
    // The first one passes, and the second one waits and holds its connection.
    let _waits = ["1", "2"].map(|_| gateway.ask("/"));
    gateway.wait_for_depth(1);
    let headline = || json(&gateway, "/api/headline");
    eventually("the headline says so", || {
        for named in ["192.0.2.1", "192.0.2.2"] {
            let fields = format!("Host: a\r\nX-Forwarded-For: {named}");
            client.send(format!("GET / HTTP/1.1\r\n{fields}\r\n\r\n"));
            client.answer();
            thread::sleep(Duration::from_millis(20));
        }
        headline()["headline"]["cause"] == "untrusted_proxy"
    });
    let headline = headline().to_string();
    assert_contains!(headline, "all clients behind key-");
    assert!(!headline.contains("127.0.0.1"), "{headline}");
    let mut live = Listener::connect(&gateway, "", "");
    let history = live.next().data.to_string();
    assert_contains!(history, "only_key");
    let zones = history.split("\"zones\"").skip(1);
    for zone in zones.filter_map(|it| it.split("\"origins\"").next()) {
        assert!(!zone.contains("127.0.0.1"), "{zone}");
    }
}
