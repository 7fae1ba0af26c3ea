//! Tests of `/api`: its reports about zones, keys, the file and origins, and its changes.

use std::fs;
use std::path::Path;
use std::thread;

use serde_json::{Value, json as value};

use crate::gateway::check::check_all;
use crate::support::operator::{ask, delete, json, keys, names, parse};
use crate::support::{
    Client, Gateway, MARGIN, MS, Origin, all_pass, best_of_three, check_gaps, eventually, now,
    one_zone, start_limited,
};

/// A route whose requests do not wait.
const FAST: &str = "[[routes]]\npath = \"/fast\"\norigin = \"app\"\nlimits = [{ zone = \"z\", burst = 20, nodelay = true }]\n";

/// Sends this many requests for a key. The first passes, the others wait.
fn crowd(gateway: &Gateway, key: &str, count: usize) -> Vec<Client> {
    let ask = |_| gateway.ask(&format!("/?key={key}"));
    let state = |depth: usize| {
        let found = |it: &Value| it["key"] == key && it["depth"] == depth;
        keys(gateway, "").iter().any(found)
    };
    let mut clients = vec![ask(0)];
    eventually("the first is there", || state(0));
    clients.extend((1..count).map(ask));
    eventually("the others wait", || state(count - 1));
    clients
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn a_zone_reports_its_settings_totals_and_waiters() {
    let origin = Origin::start();
    let file = one_zone(&origin, "30r/m", "burst = 3, delay = 1")
        + "[[routes]]\npath = \"/fast\"\nhost = \"a.example\"\norigin = \"app\"\nmax_wait = \"1500ms\"\ndry_run = true\n\
           limits = [{ zone = \"z\", burst = 9, nodelay = true }]\n[zones.other]\nkey = \"$host\"\nrate = \"0.5r/s\"\nmax_keys = 7\nidle_timeout = \"90s\"\n";
    let gateway = Gateway::start(&file);
    gateway.check_each(2, "/?key=a", 200);
    let asked = now();
    let waiting = [(); 2].map(|()| gateway.ask("/?key=a"));
    gateway.wait_for_depth(2);
    assert_eq!(gateway.fetch("/?key=a").status, 429);
    assert_eq!(gateway.fetch("/?key=b").status, 200);

    let zone = json(&gateway, "/api/zones/z");
    let waited = asked.elapsed().as_secs_f64();
    let oldest = number(&zone["oldest_wait_seconds"]);
    assert!(oldest > 0.0 && oldest <= waited, "{oldest} of {waited}");
    let mut expected = value!({
        "name": "z", "key": "$arg_key", "algorithm": "leaky_bucket", "store": "memory", "on_store_failure": "local",
        "rate": "30r/m", "max_keys": 100_000, "new_keys": null,
        "limits": [
            {"route": "/", "burst": 3, "delay": 1, "nodelay": false, "max_wait_seconds": null, "in_flight": null, "dry_run": false},
            {"route": "a.example /fast", "burst": 9, "delay": null, "nodelay": true, "max_wait_seconds": 1.5, "in_flight": null, "dry_run": true},
        ],
        "totals": {"passed": 3, "delayed": 0, "rejected": 1, "cancelled": 0, "rejected_elsewhere": 0, "no_key": 0, "delayed_dry_run": 0, "rejected_dry_run": 0},
        "rejections": {"burst": 1, "max_wait": 0, "in_flight": 0, "keys": 0, "store": 0, "restart": 0, "paused": 0, "stopping": 0},
        "depth": 2, "depth_max": 2, "in_flight": 0, "oldest_wait_seconds": oldest,
        "keys": {"active": 1, "parked": 1},
    });
    assert_eq!(zone, expected);

    drop(waiting);
    gateway.wait_for_depth(0);
    let all = json(&gateway, "/api/zones");
    expected["totals"]["cancelled"] = value!(2);
    for field in ["depth", "depth_max"] {
        expected[field] = value!(0);
    }
    expected["oldest_wait_seconds"] = value!(0.0);
    assert_eq!(all["zones"][0], expected);
    assert_eq!(all["zones"][1]["name"], "other");
    assert_eq!(all["zones"][1]["limits"], value!([]));
    assert_eq!(all["zones"][1]["max_keys"], 7);
    assert_eq!(all["zones"].as_array().map(Vec::len), Some(2));
}

#[test]
fn keys_are_listed_by_depth_by_excess_and_by_wait() {
    let origin = Origin::start();
    let gateway = Gateway::start(&(one_zone(&origin, "1r/m", "burst = 9") + FAST));
    assert_eq!(keys(&gateway, ""), [] as [Value; 0]);
    gateway.check_each(6, "/fast?key=owes", 200);
    assert_eq!(gateway.fetch("/fast?key=once").status, 200);
    let _one = crowd(&gateway, "one", 2);
    let _three = crowd(&gateway, "three", 4);

    let by_depth = keys(&gateway, "");
    assert_eq!(names(&by_depth), ["three", "one", "owes", "once"]);
    let three = &by_depth[0];
    assert_eq!(three["depth"], 3);
    assert_eq!(three["state"], "active");
    assert!((2.9..=3.0).contains(&number(&three["excess"])), "{three}");
    let waited = number(&three["oldest_wait_seconds"]);
    assert!((0.0..5.0).contains(&waited), "{three}");
    let owes = &by_depth[2];
    assert_eq!(owes["depth"], 0);
    assert_eq!(owes["oldest_wait_seconds"], 0.0);
    assert!((4.8..=5.0).contains(&number(&owes["excess"])), "{owes}");

    let parked = || {
        let keys = keys(&gateway, "");
        keys.iter().filter(|it| it["state"] == "parked").count()
    };
    eventually("keys without waiters are parked", || parked() == 2);
    for (query, expected) in [
        (
            "?sort=excess&limit=1000",
            &["owes", "three", "one", "once"][..],
        ),
        ("?sort=oldest_wait&limit=2", &["one", "three"]),
        ("?limit=1", &["three"]),
    ] {
        assert_eq!(names(&keys(&gateway, query)), expected, "{query}");
    }
}

#[test]
fn any_key_can_be_named() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/m", "burst = 0").replace("$arg_key", "$uri");
    let gateway = Gateway::start(&file);
    for (target, shown, named) in [
        ("/%3Cb%3E/", "/<b>/", "%2F%3Cb%3E%2F"),
        (
            "/%22%0A%5C%FF",
            "/\"\\x0A\\\\\\xFF",
            "/%22%5Cx0A%5C%5C%5CxFF",
        ),
        ("/%C3%A9+%25", "/é+%", "%2F%C3%A9+%25"),
    ] {
        assert_eq!(gateway.fetch(target).status, 200, "{target}");
        assert_eq!(gateway.fetch(target).status, 429, "{target}");
        assert_eq!(names(&keys(&gateway, "?sort=excess")), [shown]);
        let path = format!("/api/zones/z/keys/{named}");
        let forgotten = (200, value!({"forgotten": true, "dropped": 0}));
        assert_eq!(delete(&gateway, &path), forgotten);
        let status = gateway.fetch(target).status;
        assert_eq!(status, 200, "{target} is forgiven");
        // Parked keys are forgotten completely.
        eventually("it is parked", || {
            keys(&gateway, "")[0]["state"] == "parked"
        });
        assert_eq!(delete(&gateway, &path).0, 200);
        assert_eq!(keys(&gateway, "").len(), 0);
        assert_eq!(delete(&gateway, &path).0, 404);
    }
}

#[test]
fn who_waits_keeps_order_and_pace_when_the_debt_is_forgotten() {
    best_of_three(|_| {
        let origin = Origin::start();
        let gateway = Gateway::start(&(one_zone(&origin, "5r/s", "burst = 20") + FAST));
        gateway.check_each(11, "/fast?key=a", 200);
        let ask = |nth: i64| gateway.ask(&format!("/wait{nth}?key=a"));
        let wait = |nth| {
            let client = ask(nth);
            gateway.wait_for_depth(nth + 1);
            client
        };
        let mut clients: Vec<_> = (0..4).map(wait).collect();
        let forgotten = now();
        let answer = delete(&gateway, "/api/zones/z/keys/a");
        assert_eq!(answer, (200, value!({"forgotten": true, "dropped": 0})));
        let excess = number(&keys(&gateway, "")[0]["excess"]);
        if !(3.0..=4.0).contains(&excess) {
            return Err(format!("four wait, and the level is {excess}"));
        }
        clients.push(ask(4));
        all_pass(&mut clients);
        let waited = origin.arrivals();
        let targets: Vec<_> = waited[11..].iter().map(|it| it.target.clone()).collect();
        let expected = [0, 1, 2, 3, 4].map(|nth| format!("/wait{nth}?key=a"));
        assert_eq!(targets, expected);
        let moments = origin.moments("/wait");
        let first = moments[0] - forgotten;
        if first > 200 * MS + MARGIN {
            return Err(format!("the first left {first:?} after its debt"));
        }
        check_gaps(&moments, 200 * MS, 20 * MS)
    });
}

#[test]
fn with_drop_those_who_wait_get_503_and_the_key_starts_anew() {
    let (origin, gateway) = start_limited("1r/m", "burst = 5");
    let mut clients = crowd(&gateway, "a", 5);
    let _others = crowd(&gateway, "b", 2);
    assert_eq!(clients.remove(0).answer().status, 200);
    let answer = delete(&gateway, "/api/zones/z/keys/a?drop=true");
    assert_eq!(answer, (200, value!({"forgotten": true, "dropped": 4})));
    for mut client in clients {
        let answer = client.answer();
        assert_eq!(answer.status, 503);
        assert_eq!(answer.number("retry-after"), 1);
    }
    let zone = json(&gateway, "/api/zones/z");
    assert_eq!(zone["rejections"]["stopping"], 4);
    assert_eq!(zone["totals"]["rejected"], 4);
    assert_eq!(zone["depth"], 1, "others wait on");
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    assert_eq!(origin.moments("key=a").len(), 2);
}

#[test]
fn the_file_and_its_errors_are_reported() {
    let (origin, gateway) = start_limited("4r/s", "burst = 2");
    let at_first = json(&gateway, "/api/config");
    assert_eq!(at_first["file"], "gateway.toml");
    assert_eq!(at_first["version"], env!("CARGO_PKG_VERSION"));
    let store = &json(&gateway, "/api/store")["store"];
    assert_eq!(*store, Value::Null, "no zone is shared");
    assert_eq!(at_first["error"], Value::Null);
    let printed = check_all(&gateway.site.file()).stdout;
    let printed = String::from_utf8(printed).expect("text");
    let (_, printed) = printed.split_once("\n\n").expect("a summary");
    assert_eq!(at_first["settings"], printed);
    let loaded_at = at_first["loaded_at"].as_str().expect("a time").to_owned();
    let is_time = |it: &str| it.len() == 24 && it.ends_with('Z') && &it[19..20] == ".";
    assert!(is_time(&loaded_at), "{loaded_at}");

    // Two errors, reported with their locations. The settings in force stay.
    let broken = one_zone(&origin, "0r/s", "burst = 2, bust = 3");
    gateway.site.write(&broken);
    let reload = || {
        let answer = ask(&gateway, "POST", "/api/reload", "");
        (answer.status, parse(&answer))
    };
    let (status, refused) = reload();
    let error = refused["error"].clone();
    assert_eq!(status, 422);
    let lines = gateway.site.text(&broken);
    let line_of = |part: &str| lines[..lines.find(part).expect("it")].lines().count();
    let problems = &error["problems"];
    let first = (&problems[0]["line"], &problems[0]["column"]);
    assert_eq!(first, (&line_of("0r/s").into(), &8.into()), "{error}");
    assert_eq!(problems[1]["line"], line_of("bust"), "{error}");
    let shown = json(&gateway, "/api/config");
    assert_eq!(shown["error"], error);
    assert_eq!(shown["settings"], at_first["settings"]);
    assert_eq!(shown["loaded_at"], loaded_at.as_str());
    // The file has been broken since the first time.
    thread::sleep(5 * MS);
    assert_eq!(reload().1["error"]["since"], error["since"]);

    gateway.site.write(&one_zone(&origin, "8r/s", "burst = 2"));
    let (status, reloaded) = reload();
    assert_eq!((status, &reloaded["error"]), (200, &Value::Null));
    assert!(reloaded["settings"].to_string().contains("8r/s"));
    assert!(reloaded["loaded_at"].as_str() > Some(&*loaded_at));
    assert_eq!(json(&gateway, "/api/zones/z")["rate"], "8r/s");

    fs::remove_file(gateway.site.file()).expect("it is there");
    let message = reload().1["error"]["problems"][0]["message"].clone();
    let says = message
        .as_str()
        .expect("a text")
        .starts_with("cannot be read");
    assert!(says, "{message}");
}

/// No other site can change anything, with or without the token.
///
/// [`super::admin_tokens`] tests tokens.
#[test]
fn no_other_site_changes_anything_with_or_without_the_token() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/m", "burst = 0");
    let start = |token| Gateway::start_with(&file, &[("DRIP_ADMIN_TOKEN", Path::new(token))]);
    let bearer = "Authorization: Bearer s3cret\r\n";
    for (gateway, token) in [(start(" s3cret\n"), bearer), (start(""), "")] {
        assert_eq!(gateway.fetch("/?key=a").status, 200);
        for (method, path) in [("POST", "/api/reload"), ("DELETE", "/api/zones/z/keys/a")] {
            let status = |fields: &str| {
                let fields = format!("{token}{fields}");
                ask(&gateway, method, path, &fields).status
            };
            assert_eq!(status("Origin: https://evil.example\r\n"), 403);
            assert_eq!(status("Origin: null\r\n"), 403);
            assert_eq!(status("Sec-Fetch-Site: cross-site\r\n"), 403);
            let own = format!("Origin: http://{}\r\n", gateway.site.admin);
            let same = format!("{own}Sec-Fetch-Site: same-origin\r\n");
            assert_eq!(status(&same), 200);
        }
    }
}

#[test]
fn wrong_api_requests_are_explained() {
    let (_origin, gateway) = start_limited("1r/m", "burst = 0");
    for (status, asked) in [
        (404, "GET /nothing"),
        (404, "GET /api"),
        (404, "GET /api/zones/"),
        (404, "GET /api/zones/nope"),
        (404, "GET /api/zones/nope/keys"),
        (404, "DELETE /api/zones/nope/keys/a"),
        (404, "DELETE /api/zones/z/keys/a"),
        (404, "DELETE /api/zones/z/keys/"),
        (404, "DELETE /api/zones/z/keys/%5C"),
        (400, "GET /api/zones/z/keys?sort=name"),
        (400, "GET /api/zones/z/keys?limit=0"),
        (400, "GET /api/zones/z/keys?limit=1001"),
        (400, "GET /api/zones/z/keys?limit=many"),
        (400, "DELETE /api/zones/z/keys/a?drop=yes"),
        (400, "GET /api/live?since=yesterday"),
    ] {
        let (method, path) = asked.split_once(' ').expect("a method");
        let answer = ask(&gateway, method, path, "");
        assert_eq!(answer.status, status, "{asked}");
        let error = parse(&answer)["error"].to_string();
        assert!(error.len() > 12, "{asked}: {error}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("content-security-policy", "default-src 'self'"),
        ] {
            assert_eq!(answer.field(name), Some(value));
        }
    }
    for (method, path, allowed) in [
        ("POST", "/api/zones", "GET, HEAD"),
        ("PUT", "/api/zones/z/keys", "GET, HEAD"),
        ("GET", "/api/zones/z/keys/a", "DELETE"),
        ("GET", "/api/reload", "POST"),
        ("POST", "/api/live", "GET, HEAD"),
        ("POST", "/metrics", "GET, HEAD"),
    ] {
        let answer = ask(&gateway, method, path, "");
        assert_eq!(answer.status, 405, "{method} {path}");
        assert_eq!(answer.field("allow"), Some(allowed), "{method} {path}");
    }
    for path in "healthz readyz metrics api/zones api/config api/live".split(' ') {
        let mut client = Client::connect(gateway.site.admin);
        client.send(format!("HEAD /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert!(client.head().first_line.contains(" 200 "), "{path}");
    }
}
