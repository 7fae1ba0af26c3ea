//! `mask_keys`: where a key of a client would be shown, and how it is addressed by its masked name.

use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::gateway::history::nth_change;
use crate::support::live::Listener;
use crate::support::operator::{ask, delete, json, parse, post};
use crate::support::{Answer, Client, Gateway, Origin, Site, eventually, whole_lines};

/// A part of each key, and of nothing else.
pub(super) const SECRET: &str = "sk_live";

/// A zone whose key is a field of the request, before a gate that its keys share.
fn file(origin: &Origin, zone: &str) -> String {
    let origin = origin.address;
    format!(
        r#"
[log]
level = "debug"
access = "access.log"

[origins.app]
servers = ["http://{origin}"]

[origins.gated]
servers = ["http://{origin}"]
rate = "1r/h"
share = "z"
queue = 1
queue_timeout = "1h"

[zones.z]
key = "$http_x_api_key"
rate = "60r/h"
{zone}

[zones.z.plans.gold]
keys = ["sk_live_gold"]
weight = 2

[zones.z.plans.fast]
keys = ["sk_live_fast"]
rate = "20r/s"

[[routes]]
path = "/"
origin = "app"
limits = [{{ zone = "z", burst = 1 }}]

[[routes]]
path = "/gated"
origin = "gated"
limits = [{{ zone = "z", burst = 100, nodelay = true }}]
"#
    )
}

pub(super) fn send(gateway: &Gateway, path: &str, key: &str) -> Client {
    let mut client = Client::connect(gateway.address());
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\n\r\n").as_bytes());
    client
}

/// One request that passes, one that waits, which is returned, and `count` that are rejected.
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

fn put(gateway: &Gateway, key: &str, body: &str) -> Answer {
    let length = body.len();
    let fields = format!("Content-Length: {length}\r\n\r\n{body}");
    let path = format!("/api/zones/z/keys/{key}/override");
    let mut client = Client::connect(gateway.site.admin);
    client.send(format!("PUT {path} HTTP/1.1\r\nHost: localhost\r\n{fields}").as_bytes());
    client.answer()
}

/// What is shown: the place, and the text.
pub(super) type Shown = Vec<(String, String)>;

/// All that the gateway shows of limited requests, overrides and reloads.
fn all_that_is_shown(zone: &str) -> Shown {
    let origin = Origin::start();
    let text = file(&origin, zone);
    let gateway = Gateway::start(&text);
    let mut shown = Vec::new();

    let long = format!("sk_live_{}", "x".repeat(300));
    let mut held = vec![limited(&gateway, "/", "sk_live_alpha", 30)];
    held.push(limited(&gateway, "/", &long, 3));
    // The second one is delayed.
    for mut client in [1, 2].map(|_| send(&gateway, "/", "sk_live_fast")) {
        assert_eq!(client.answer().status, 200);
    }
    held.push(limited(&gateway, "/gated", "sk_live_gold", 3));
    eventually("the headline blames a key", || {
        json(&gateway, "/api/headline")
            .to_string()
            .contains("causes")
    });
    let headline = json(&gateway, "/api/headline").to_string();
    shown.push(("headline".to_owned(), headline));
    let (status, what_if) = post(&gateway, "/api/zones/z/what-if", r#"{"rate": "1000r/s"}"#);
    assert_eq!(status, 200, "{what_if}");
    shown.push(("what-if".to_owned(), what_if.to_string()));

    act(&gateway, &text, &mut shown);
    read(&gateway, &mut shown);
    read_logs(&gateway, &mut shown);
    drop(held);
    shown
}

/// Sets overrides and saves the file.
fn act(gateway: &Gateway, text: &str, shown: &mut Shown) {
    // One override that stays, one that expires, and one that ends.
    for (key, span) in [
        ("sk_live_alpha", "1h"),
        ("sk_live_beta", "1s"),
        ("sk_live_gone", "1h"),
    ] {
        let body = format!(r#"{{"rate": "61r/h", "for": "{span}"}}"#);
        let set = put(gateway, key, &body);
        assert_eq!(set.status, 200, "{}", set.text());
        shown.push(("the answer to an override".to_owned(), set.text()));
    }
    let (status, undone) = delete(gateway, "/api/zones/z/keys/sk_live_gone/override");
    assert_eq!(status, 200, "{undone}");
    gateway.wait_for_line("override expired");
    nth_change(gateway, 5);
    gateway
        .site
        .write(&text.replace(r#"["sk_live_gold"]"#, r#"["sk_live_gold", "sk_live_new"]"#));
    nth_change(gateway, 6);
    shown.push((
        "settings".to_owned(),
        json(gateway, "/api/config")["settings"].to_string(),
    ));
    shown.push((
        "changes".to_owned(),
        json(gateway, "/api/config")["changes"].to_string(),
    ));
    gateway.site.write(&format!(
        "{text}[zones.z.plans.b]\nkeys = [\"sk_live_gold\"]\n"
    ));
    eventually("the file is broken", || {
        !json(gateway, "/api/config")["error"].is_null()
    });
    shown.push((
        "problems".to_owned(),
        json(gateway, "/api/config")["error"].to_string(),
    ));
}

/// Reads the admin port, and by `drip top`.
fn read(gateway: &Gateway, shown: &mut Shown) {
    for path in [
        "zones",
        "zones/z",
        "zones/z/overrides",
        "origins",
        "routes",
        "store",
        "headline",
    ] {
        let path = format!("/api/{path}");
        shown.push((path.clone(), json(gateway, &path).to_string()));
    }
    for sort in [
        "depth",
        "excess",
        "oldest_wait",
        "requests",
        "rejections",
        "wait",
    ] {
        let path = format!("/api/zones/z/keys?sort={sort}");
        shown.push((path.clone(), json(gateway, &path).to_string()));
    }
    for path in ["/metrics", "/", "/healthz", "/readyz"] {
        shown.push((path.to_owned(), ask(gateway, "GET", path, "").text()));
    }
    read_samples(gateway, shown);
}

/// Reads two samples of the stream, and what `drip top` makes of them.
pub(super) fn read_samples(gateway: &Gateway, shown: &mut Shown) {
    let mut live = Listener::connect(gateway, "", "");
    shown.push((
        "history of the stream".to_owned(),
        live.next().data.to_string(),
    ));
    shown.push(("sample".to_owned(), live.next().data.to_string()));
    let mut top = Command::new(env!("CARGO_BIN_EXE_drip"));
    let admin = format!("http://{}", gateway.site.admin);
    let top = top
        .args(["top", "--once", &admin])
        .output()
        .expect("it runs");
    assert!(top.status.success(), "{top:?}");
    shown.push((
        "drip top".to_owned(),
        String::from_utf8_lossy(&top.stdout).into_owned(),
    ));
}

/// Reads both logs.
fn read_logs(gateway: &Gateway, shown: &mut Shown) {
    for event in [
        "limiting requests",
        "delaying requests",
        "the origin's gate rejects",
        "override set",
        "override expired",
        "override undone",
        "the changed file is in force",
        "is in the plans",
    ] {
        eventually(event, || gateway.log().contains(event));
        let lines = gateway.log_lines().into_iter().map(|(_, line)| line);
        let lines: Vec<_> = lines.filter(|line| line.contains(event)).collect();
        shown.push((format!("log: {event}"), lines.join("\n")));
    }
    let access = || whole_lines(gateway.site.folder().join("access.log"));
    eventually("the access log has its lines", || {
        access().lines().count() >= 36
    });
    shown.push(("access log".to_owned(), access()));
    shown.push(("log".to_owned(), gateway.log()));
}

/// Where no key is shown in any case.
const WITHOUT_KEYS: [&str; 9] = [
    "the answer to an override",
    "/api/zones",
    "/api/zones/z",
    "/api/routes",
    "/api/store",
    "/api/headline",
    "/",
    "/healthz",
    "/readyz",
];

#[test]
fn a_masked_key_is_shown_nowhere() {
    let mut names = 0;
    for (place, text) in all_that_is_shown("mask_keys = true") {
        assert!(!text.contains(SECRET), "{place}: {text}");
        names += usize::from(text.contains("key-"));
    }
    assert!(names > 20, "its masked name is shown instead: {names}");
}

#[test]
fn without_mask_keys_each_of_these_places_shows_it() {
    let shown = all_that_is_shown("");
    let without = shown.iter().filter(|(_, text)| !text.contains(SECRET));
    let without: Vec<&str> = without.map(|(place, _)| place.as_str()).collect();
    let unexpected = without.iter().filter(|it| !WITHOUT_KEYS.contains(it));
    assert_eq!(unexpected.collect::<Vec<_>>(), Vec::<&&str>::new());
}

/// The names of the listed keys.
fn names(gateway: &Gateway, sort: &str) -> Vec<String> {
    let list = json(gateway, &format!("/api/zones/z/keys?sort={sort}"));
    let keys = list["keys"].as_array().expect("a list").iter();
    let name = |key: &Value| key["key"].as_str().expect("a text").to_owned();
    let mut names: Vec<String> = keys.map(name).collect();
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
    for name in &known {
        let set = put(&gateway, name, r#"{"pause": true, "for": "1h"}"#);
        assert_eq!(set.status, 200, "{}", set.text());
    }
    let overrides = json(&gateway, "/api/zones/z/overrides");
    assert_eq!(overrides["keys"].as_array().map(Vec::len), Some(3));
    for name in &known {
        let (status, undone) = delete(&gateway, &format!("/api/zones/z/keys/{name}/override"));
        assert_eq!(status, 200, "{undone}");
    }
    for name in &known {
        let (status, forgotten) = delete(&gateway, &format!("/api/zones/z/keys/{name}"));
        assert_eq!(
            (status, &forgotten["forgotten"]),
            (200, &Value::Bool(true)),
            "{forgotten}"
        );
    }
    let keys = json(&gateway, "/api/zones/z/keys");
    let keys = keys["keys"].as_array().expect("a list");
    assert!(keys.iter().all(|key| key["excess"] == 0.0), "{keys:?}");
    // The key itself does, too.
    assert_eq!(send(&gateway, "/", "sk_live_alpha").answer().status, 200);
    let (status, _) = delete(&gateway, "/api/zones/z/keys/sk_live_alpha");
    assert_eq!(status, 200);

    for (status, answer) in [delete(&gateway, "/api/zones/z/keys/key-000000000000"), {
        let set = put(
            &gateway,
            "key-000000000000",
            r#"{"pause": true, "for": "1h"}"#,
        );
        (set.status, parse(&set))
    }] {
        assert_eq!(status, 404);
        let error = answer["error"].as_str().expect("a text");
        assert!(error.contains("write the key itself"), "{error}");
    }
    let overrides = json(&gateway, "/api/zones/z/overrides");
    assert_eq!(overrides["keys"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_key_that_is_only_among_the_heaviest_is_found_and_another_run_has_other_names() {
    let origin = Origin::start();
    let site = Site::new();
    site.write(&file(
        &origin,
        "mask_keys = true\nidle_timeout = \"1ms\"\nmax_keys = 4",
    ));
    let gateway = Gateway::run(site);
    gateway.wait_until_ready();
    assert_eq!(send(&gateway, "/", "sk_live_alpha").answer().status, 200);
    let name = names(&gateway, "requests").remove(0);
    let (status, _) = delete(&gateway, &format!("/api/zones/z/keys/{name}"));
    assert_eq!(status, 200);
    eventually("the key is forgotten", || {
        names(&gateway, "depth").is_empty()
    });
    let set = put(&gateway, &name, r#"{"pause": true, "for": "1h"}"#);
    assert_eq!(set.status, 200, "{}", set.text());
    let held = send(&gateway, "/", "sk_live_alpha");
    gateway.wait_for_depth(1);
    thread::sleep(Duration::from_millis(100));
    drop(held);

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
    let mut client = Client::connect(gateway.address());
    let mut ask_as_two = || {
        for named in ["192.0.2.1", "192.0.2.2"] {
            let fields = format!("Host: a\r\nX-Forwarded-For: {named}");
            client.send(format!("GET / HTTP/1.1\r\n{fields}\r\n\r\n").as_bytes());
            client.answer();
            thread::sleep(Duration::from_millis(20));
        }
    };
    // The first one passes, and the second one holds its connection.
    let waits = ["1", "2"].map(|_| Client::ask(gateway.address(), "/"));
    gateway.wait_for_depth(1);
    eventually("the headline says so", || {
        ask_as_two();
        json(&gateway, "/api/headline")["headline"]["cause"] == "untrusted_proxy"
    });
    let headline = json(&gateway, "/api/headline").to_string();
    assert!(headline.contains("all clients behind key-"), "{headline}");
    assert!(!headline.contains("127.0.0.1"), "{headline}");
    let mut live = Listener::connect(&gateway, "", "");
    let history = live.next().data.to_string();
    assert!(history.contains("only_key"), "{history}");
    let zones = history.split("\"zones\"").skip(1);
    for zone in zones.filter_map(|it| it.split("\"origins\"").next()) {
        assert!(!zone.contains("127.0.0.1"), "{zone}");
    }
    drop(waits);
}
