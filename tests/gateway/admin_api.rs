//! `/api`: what it reports about zones, keys, the file and origins, and what it changes.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json as value};

use crate::support::operator::{ask, delete, json, keys, names, parse};
use crate::support::{
    Client, Gateway, MARGIN, Origin, best_of_three, check_gaps, drip, eventually, fetch, now,
    one_zone,
};

/// This many requests for a key: the first passes, the others wait.
fn crowd(gateway: &Gateway, key: &str, count: usize) -> Vec<Client> {
    let ask = |_| Client::ask(gateway.address(), &format!("/?key={key}"));
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
fn a_zone_tells_its_settings_its_totals_and_who_waits() {
    let origin = Origin::start();
    let file = one_zone(&origin, "30r/m", "burst = 3, delay = 1")
        + "[[routes]]\npath = \"/fast\"\nhost = \"a.example\"\norigin = \"app\"\nmax_wait = \"1500ms\"\ndry_run = true\n\
           limits = [{ zone = \"z\", burst = 9, nodelay = true }]\n[zones.other]\nkey = \"$host\"\nrate = \"0.5r/s\"\nmax_keys = 7\nidle_timeout = \"90s\"\n";
    let gateway = Gateway::start(&file);
    let mut first = fetch(gateway.address(), "/?key=a");
    assert_eq!(first.status, 200);
    first = fetch(gateway.address(), "/?key=a");
    assert_eq!(first.status, 200);
    let asked = now();
    let waiting: Vec<_> = (0..2)
        .map(|_| Client::ask(gateway.address(), "/?key=a"))
        .collect();
    gateway.wait_for_depth(2);
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 429);
    assert_eq!(fetch(gateway.address(), "/?key=b").status, 200);

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
    let gateway = Gateway::start(
        &(one_zone(&origin, "1r/m", "burst = 9")
            + "[[routes]]\npath = \"/fast\"\norigin = \"app\"\nlimits = [{ zone = \"z\", burst = 9, nodelay = true }]\n"),
    );
    assert_eq!(keys(&gateway, ""), [] as [Value; 0]);
    for _ in 0..6 {
        assert_eq!(fetch(gateway.address(), "/fast?key=owes").status, 200);
    }
    assert_eq!(fetch(gateway.address(), "/fast?key=once").status, 200);
    let _one = crowd(&gateway, "one", 2);
    let _three = crowd(&gateway, "three", 4);

    let by_depth = keys(&gateway, "");
    assert_eq!(names(&by_depth), ["three", "one", "owes", "once"]);
    let three = &by_depth[0];
    assert_eq!(three["depth"], 3);
    assert_eq!(three["state"], "active");
    assert!((2.9..=3.0).contains(&number(&three["excess"])), "{three}");
    assert!(
        (0.0..5.0).contains(&number(&three["oldest_wait_seconds"])),
        "{three}"
    );
    let owes = &by_depth[2];
    assert_eq!(
        (&owes["depth"], &owes["oldest_wait_seconds"]),
        (&value!(0), &value!(0.0))
    );
    assert!((4.8..=5.0).contains(&number(&owes["excess"])), "{owes}");

    assert_eq!(
        names(&keys(&gateway, "?sort=excess")),
        ["owes", "three", "one", "once"]
    );
    assert_eq!(
        names(&keys(&gateway, "?sort=oldest_wait&limit=2")),
        ["one", "three"]
    );
    assert_eq!(names(&keys(&gateway, "?limit=1")), ["three"]);

    let parked = || {
        keys(&gateway, "")
            .iter()
            .filter(|key| key["state"] == "parked")
            .count()
    };
    eventually("those who do not wait are parked", || parked() == 2);
    assert_eq!(
        names(&keys(&gateway, "?sort=excess&limit=1000")),
        ["owes", "three", "one", "once"]
    );
}

#[test]
fn thousands_of_keys_are_listed_each_once() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/m", "burst = 9, nodelay = true"));
    let mut client = Client::connect(gateway.address());
    for nth in 0..1_500 {
        client.get(&format!("/?key={nth}"));
        assert_eq!(client.answer().status, 200);
    }
    for _ in 0..3 {
        assert_eq!(fetch(gateway.address(), "/?key=77").status, 200);
    }
    let listed = keys(&gateway, "?sort=excess&limit=1000");
    assert_eq!(listed[0]["key"], "77");
    let mut all = names(&listed);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 1000);
    let zone = json(&gateway, "/api/zones/z");
    let remembered = number(&zone["keys"]["active"]) + number(&zone["keys"]["parked"]);
    assert!((remembered - 1500.0).abs() < 0.5, "{remembered}");
}

#[test]
fn any_key_can_be_named() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/m", "burst = 0").replace("$arg_key", "$uri");
    let gateway = Gateway::start(&file);
    for (target, shown, named) in [
        (
            "/%3Cscript%3Ealert(1)%3C/script%3E",
            "/<script>alert(1)</script>",
            "%2F%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        ),
        ("/%22quoted'", "/\"quoted'", "/%22quoted'"),
        (
            "/line%0Abreak%09",
            "/line\\x0Abreak\\x09",
            "%2Fline%5Cx0Abreak%5Cx09",
        ),
        ("/%FF%C3", "/\\xFF\\xC3", "%2F%5CxFF%5CxC3"),
        ("/%5CxFF", "/\\\\xFF", "%2F%5C%5CxFF"),
        ("/%C3%A9+%25", "/é+%", "%2F%C3%A9+%25"),
    ] {
        assert_eq!(fetch(gateway.address(), target).status, 200, "{target}");
        assert_eq!(fetch(gateway.address(), target).status, 429, "{target}");
        assert_eq!(names(&keys(&gateway, "?sort=excess")), [shown]);
        let path = format!("/api/zones/z/keys/{named}");
        assert_eq!(
            delete(&gateway, &path),
            (200, value!({"forgotten": true, "dropped": 0}))
        );
        assert_eq!(
            fetch(gateway.address(), target).status,
            200,
            "{target} is forgiven"
        );
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
        let gateway = Gateway::start(
            &(one_zone(&origin, "5r/s", "burst = 20")
                + "[[routes]]\npath = \"/fast\"\norigin = \"app\"\nlimits = [{ zone = \"z\", burst = 20, nodelay = true }]\n"),
        );
        for _ in 0..11 {
            assert_eq!(fetch(gateway.address(), "/fast?key=a").status, 200);
        }
        let mut clients: Vec<_> = (0..4)
            .map(|nth| {
                let client = Client::ask(gateway.address(), &format!("/wait{nth}?key=a"));
                gateway.wait_for_depth(nth + 1);
                client
            })
            .collect();
        let forgotten = now();
        let answer = delete(&gateway, "/api/zones/z/keys/a");
        assert_eq!(answer, (200, value!({"forgotten": true, "dropped": 0})));
        let excess = number(&keys(&gateway, "")[0]["excess"]);
        if !(3.0..=4.0).contains(&excess) {
            return Err(format!("four wait, and the level is {excess}"));
        }
        clients.push(Client::ask(gateway.address(), "/wait4?key=a"));
        assert!(
            clients
                .iter_mut()
                .all(|client| client.answer().status == 200)
        );
        let waited = origin.arrivals();
        let targets: Vec<_> = waited[11..].iter().map(|it| it.target.clone()).collect();
        assert_eq!(
            targets,
            [0, 1, 2, 3, 4].map(|nth| format!("/wait{nth}?key=a"))
        );
        let moments = origin.moments("/wait");
        let first = moments[0] - forgotten;
        if first > Duration::from_millis(200) + MARGIN {
            return Err(format!(
                "two seconds of debt were forgotten, and the first left after {first:?}"
            ));
        }
        check_gaps(
            &moments,
            Duration::from_millis(200),
            Duration::from_millis(20),
        )
    });
}

#[test]
fn with_drop_those_who_wait_get_503_and_the_key_starts_anew() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/m", "burst = 5"));
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
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    assert_eq!(origin.moments("key=a").len(), 2);
}

#[test]
fn the_file_and_its_errors_are_told() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "4r/s", "burst = 2"));
    let at_first = json(&gateway, "/api/config");
    assert_eq!(at_first["file"], "gateway.toml");
    assert_eq!(at_first["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(at_first["error"], Value::Null);
    let printed = drip()
        .arg("check")
        .arg("-c")
        .arg(gateway.site.file())
        .output()
        .expect("runs");
    assert_eq!(
        at_first["settings"].as_str(),
        Some(&*String::from_utf8_lossy(&printed.stdout))
    );
    let loaded_at = at_first["loaded_at"].as_str().expect("a time").to_owned();
    assert_eq!(
        (loaded_at.len(), &loaded_at[10..11], &loaded_at[19..20]),
        (24, "T", ".")
    );
    assert!(loaded_at.ends_with('Z'), "{loaded_at}");

    // Two errors, reported with their places; the settings in force stay.
    let broken = one_zone(&origin, "0r/s", "burst = 2, bust = 3");
    gateway.site.write(&broken);
    let refused = ask(&gateway, "POST", "/api/reload", "");
    assert_eq!(refused.status, 422);
    let error = parse(&refused)["error"].clone();
    let lines = gateway.site.text(&broken);
    let line_of = |part: &str| {
        1 + lines
            .lines()
            .position(|line| line.contains(part))
            .expect("a line")
    };
    let problems = error["problems"].as_array().expect("a list");
    let places: Vec<_> = problems
        .iter()
        .map(|it| (it["line"].clone(), it["column"].clone()))
        .collect();
    assert_eq!(places[0], (value!(line_of("0r/s")), value!(8)), "{error}");
    assert_eq!(places[1].0, value!(line_of("bust")), "{error}");
    let shown = json(&gateway, "/api/config");
    assert_eq!(shown["error"], error);
    assert_eq!(shown["settings"], at_first["settings"]);
    assert_eq!(shown["loaded_at"], loaded_at.as_str());
    // It has been broken since the first time.
    thread::sleep(Duration::from_millis(5));
    assert_eq!(
        parse(&ask(&gateway, "POST", "/api/reload", ""))["error"]["since"],
        error["since"]
    );

    gateway.site.write(&one_zone(&origin, "8r/s", "burst = 2"));
    let reloaded = ask(&gateway, "POST", "/api/reload", "");
    assert_eq!(reloaded.status, 200);
    let reloaded = parse(&reloaded);
    assert_eq!(reloaded["error"], Value::Null);
    assert!(
        reloaded["settings"]
            .as_str()
            .is_some_and(|it| it.contains("8r/s"))
    );
    assert!(reloaded["loaded_at"].as_str() > Some(&*loaded_at));
    assert_eq!(json(&gateway, "/api/zones/z")["rate"], "8r/s");

    fs::remove_file(gateway.site.file()).expect("it is there");
    let gone = parse(&ask(&gateway, "POST", "/api/reload", ""));
    let message = gone["error"]["problems"][0]["message"]
        .as_str()
        .expect("a text")
        .to_owned();
    assert!(message.starts_with("cannot be read"), "{message}");
}

#[test]
fn origins_tell_their_servers() {
    let (origin, other) = (Origin::start(), Origin::start());
    let file = one_zone(&origin, "1r/m", "burst = 2").replace(
        &format!("servers = [\"http://{}\"]", origin.address),
        &format!(
            "servers = [\"http://{}\", \"http://{}\"]\nmax_in_flight = 5",
            origin.address, other.address
        ),
    );
    let gateway = Gateway::start(&file);
    for key in ["a", "b", "c"] {
        assert_eq!(
            fetch(gateway.address(), &format!("/?key={key}")).status,
            200
        );
    }
    eventually("nothing is in flight", || {
        json(&gateway, "/api/origins")["origins"][0]["in_flight"] == 0
    });
    let origins = json(&gateway, "/api/origins");
    let server = |nth: usize, address, answered: Value| {
        let codes = if answered == 0 {
            value!({})
        } else {
            value!({"2xx": answered})
        };
        value!({
            "url": format!("http://{address}"), "healthy": true, "in_flight": 0, "answered": answered, "failed": 0,
            "state": "asked", "out": null, "last_failure": null, "last_check": null, "codes": codes,
            "errors": {}, "latency": origins["origins"][0]["servers"][nth]["latency"],
        })
    };
    let answered = |nth: usize| origins["origins"][0]["servers"][nth]["answered"].clone();
    let all = number(&answered(0)) + number(&answered(1));
    assert!((all - 3.0).abs() < 0.5, "{origins}");
    assert_eq!(
        origins,
        value!({"origins": [{
            "name": "app", "in_flight": 0, "max_in_flight": 5,
            "gate": origins["origins"][0]["gate"],
            "servers": [server(0, origin.address, answered(0)), server(1, other.address, answered(1))],
            "codes": {"2xx": 3}, "errors": {}, "latency": origins["origins"][0]["latency"],
        }]})
    );
}

#[test]
fn what_changes_something_needs_the_token_and_no_other_site() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/m", "burst = 0");
    let with = Gateway::start_with(&file, &[("DRIP_ADMIN_TOKEN", Path::new(" s3cret\n"))]);
    let without = Gateway::start_with(&file, &[("DRIP_ADMIN_TOKEN", Path::new(""))]);
    for gateway in [&with, &without] {
        assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    }
    for (method, path) in [("POST", "/api/reload"), ("DELETE", "/api/zones/z/keys/a")] {
        for fields in [
            "",
            "Authorization: Bearer s3cre\r\n",
            "Authorization: Basic s3cret\r\n",
        ] {
            let refused = ask(&with, method, path, fields);
            assert_eq!(refused.status, 401, "{method} {path} {fields}");
            assert_eq!(refused.field("www-authenticate"), Some("Bearer"));
        }
        assert_eq!(
            ask(&with, method, path, "Authorization: Bearer s3cret\r\n").status,
            200
        );
        for other in [
            "Origin: https://evil.example\r\n",
            "Origin: null\r\n",
            "Sec-Fetch-Site: cross-site\r\n",
        ] {
            let fields = format!("Authorization: Bearer s3cret\r\n{other}");
            assert_eq!(ask(&with, method, path, &fields).status, 403, "{other}");
            assert_eq!(ask(&without, method, path, other).status, 403, "{other}");
        }
        let own = format!(
            "Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n",
            without.site.admin
        );
        assert_eq!(
            ask(&without, method, path, &own).status,
            200,
            "{method} {path}"
        );
    }
    for path in ["/api/zones", "/api/config", "/metrics"] {
        assert_eq!(
            ask(&with, "GET", path, "").status,
            200,
            "{path} is read without a token"
        );
    }
}

#[test]
fn what_is_asked_for_in_the_wrong_way_is_told_so() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/m", "burst = 0"));
    for (method, path, status) in [
        ("GET", "/nothing", 404),
        ("GET", "/api", 404),
        ("GET", "/api/zones/", 404),
        ("GET", "/api/zones/nope", 404),
        ("GET", "/api/zones/nope/keys", 404),
        ("DELETE", "/api/zones/nope/keys/a", 404),
        ("DELETE", "/api/zones/z/keys/a", 404),
        ("DELETE", "/api/zones/z/keys/", 404),
        ("DELETE", "/api/zones/z/keys/%5C", 404),
        ("GET", "/api/zones/z/keys?sort=name", 400),
        ("GET", "/api/zones/z/keys?limit=0", 400),
        ("GET", "/api/zones/z/keys?limit=1001", 400),
        ("GET", "/api/zones/z/keys?limit=-1", 400),
        ("GET", "/api/zones/z/keys?limit=many", 400),
        ("DELETE", "/api/zones/z/keys/a?drop=yes", 400),
        ("GET", "/api/live?since=yesterday", 400),
    ] {
        let answer = ask(&gateway, method, path, "");
        assert_eq!(answer.status, status, "{method} {path}");
        let error = parse(&answer)["error"].clone();
        assert!(
            error.as_str().is_some_and(|error| error.len() > 10),
            "{path}: {error}"
        );
        assert_eq!(answer.field("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.field("x-frame-options"), Some("DENY"));
        assert_eq!(answer.field("referrer-policy"), Some("no-referrer"));
        assert_eq!(
            answer.field("content-security-policy"),
            Some("default-src 'self'")
        );
    }
    for (method, path, allowed) in [
        ("POST", "/api/zones", "GET, HEAD"),
        ("DELETE", "/api/zones/z", "GET, HEAD"),
        ("PUT", "/api/zones/z/keys", "GET, HEAD"),
        ("GET", "/api/zones/z/keys/a", "DELETE"),
        ("GET", "/api/reload", "POST"),
        ("POST", "/api/config", "GET, HEAD"),
        ("POST", "/api/live", "GET, HEAD"),
        ("POST", "/metrics", "GET, HEAD"),
    ] {
        let answer = ask(&gateway, method, path, "");
        assert_eq!(answer.status, 405, "{method} {path}");
        assert_eq!(answer.field("allow"), Some(allowed), "{method} {path}");
    }
    for path in [
        "/healthz",
        "/readyz",
        "/metrics",
        "/api/zones",
        "/api/zones/z",
        "/api/zones/z/keys",
        "/api/config",
        "/api/origins",
        "/api/live",
    ] {
        let mut client = Client::connect(gateway.site.admin);
        client.send(format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
        assert!(client.head().first_line.contains(" 200 "), "{path}");
    }
}
