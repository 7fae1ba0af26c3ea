//! Tests of what each request that shares a response gets itself: limits, id, charge.

use std::collections::HashMap;

use serde_json::Value;

use super::{ask, how, wait_until_passed};
use crate::support::scripted::{Script, Scripted};
use crate::support::{Answer, Client, Gateway, eventually, fetch_with, whole_lines};

const SAYS: &str = "X-RateLimit-Limit: 990\nX-RateLimit-Remaining: 980\nRateLimit: \"x\";r=990\nX-Request-Id: origin
    X-Drip-Shared: kept\nX-Own: 1\nX-Page: origin\nServer: origin\nConnection: x-hop\nX-Hop: 1\nKeep-Alive: timeout=9
    X-Drip-Cost: 3\nAge: 7";

/// Returns a file with a collapsing route, and one at `/plain`. `X-Client` is the client's name.
fn file(origin: &Scripted, route: &str) -> String {
    let route = |path: &str| {
        format!(
            r#"
[[routes]]
path = "{path}"
origin = "app"
headers = ["x-ratelimit", "ratelimit", "shared"]
response_headers = {{ "x-page" = "drip", "server" = false }}
limits = [{{ zone = "clients", burst = 9, nodelay = true }}]
{route}
"#
        )
    };
    format!(
        r#"
request_id = "x-request-id"
[log]
format = "json"
access = "access.log"
[origins.app]
servers = ["http://{}"]
[zones.clients]
key = "$http_x_client"
rate = "1r/h"
{}
[routes.collapse]
keep = "1h"
{}
"#,
        origin.origin.address,
        route("/"),
        route("/plain")
    )
}

fn client(name: &str) -> String {
    format!("X-Client: {name}\r\n")
}

/// Returns all values of a field.
fn all<'a>(answer: &'a Answer, name: &str) -> Vec<&'a str> {
    let named = answer.head.fields.iter().filter(|(found, _)| found == name);
    named.map(|(_, value)| value.as_str()).collect()
}

fn script(_: &str) -> Script {
    Script {
        status: 200,
        fields: SAYS,
    }
}

#[test]
fn each_gets_the_fields_of_its_own_and_the_rest_of_the_origin() {
    let origin = Scripted::holding(script);
    let gateway = Gateway::start(&file(&origin, ""));
    let at = gateway.address();
    let mut clients = vec![("alice", 9, "leader", ask(at, "/a", &client("alice")))];
    origin.origin.wait_for(1);
    for (name, left) in [("bob", 9), ("bob", 8), ("carol", 9), ("alice", 8)] {
        let before = clients.len();
        clients.push((name, left, "follower", ask(at, "/a", &client(name))));
        wait_until_passed(&gateway, i64::try_from(before).expect("few") + 1);
    }
    origin.open();
    let mut answers: Vec<_> = clients
        .into_iter()
        .map(|(name, left, expected, mut client)| (name, left, expected, client.answer()))
        .collect();
    for (name, left) in [("dave", 9), ("alice", 7)] {
        answers.push((name, left, "kept", fetch_with(at, "/a", &client(name))));
    }
    let mut ids = HashMap::new();
    for (name, left, expected, answer) in &answers {
        assert_eq!(answer.status, 200);
        assert_eq!(answer.text(), "answer 1 to /a");
        let fields = |name: &str| all(answer, name);
        assert_eq!(fields("x-drip-shared"), [*expected], "{name}");
        assert_eq!(fields("x-ratelimit-limit"), ["10"], "{name}");
        let remaining = fields("x-ratelimit-remaining");
        assert_eq!(remaining, [left.to_string()], "{name}");
        assert_eq!(fields("ratelimit").len(), 1, "{name}");
        let is_listed = fields("ratelimit")[0].contains(&format!("r={left}"));
        assert!(is_listed, "{answer:?}");
        assert_eq!(fields("x-page"), ["drip"], "{name}");
        assert_eq!(fields("x-own"), ["1"], "{name}");
        assert_eq!(fields("date").len(), 1, "{name}");
        assert_eq!(fields("age").len(), 1, "{name}");
        for absent in ["server", "x-hop", "keep-alive", "set-cookie"] {
            assert_eq!(fields(absent), [""; 0], "{name} {absent}");
        }
        let id = fields("x-request-id");
        assert_eq!(id.len(), 1, "{name}");
        assert_ne!(id[0], "origin");
        assert_eq!(ids.insert(id[0].to_owned(), *expected), None, "{name}");
    }
    // The log has a line for each request, by its id.
    let log = gateway.site.folder().join("access.log");
    let lines = || -> HashMap<String, String> {
        let text = whole_lines(&log);
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        let received = lines.map(|line: Value| {
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            (text("request_id"), text("shared"))
        });
        received.collect()
    };
    eventually("all are logged", || lines().len() == answers.len());
    for (id, shared) in lines() {
        assert_eq!(ids.get(&id).copied(), Some(shared.as_str()));
    }
    assert_eq!(origin.origin.arrivals().len(), 1);
}

/// The origin's instructions to the gateway, such as `X-Accel-Expires`, reach no client.
///
/// nginx removes `X-Accel-Expires` too. On a route that shares nothing it is meant for another
/// proxy.
#[test]
fn what_the_origin_says_of_its_answer_to_the_gateway_reaches_no_client() {
    let origin = Scripted::holding(|target: &str| Script {
        status: 200,
        fields: match target {
            "/shared" => "X-Accel-Expires: 60\nX-Accel-Buffering: no\nETag: \"a\"",
            "/alone" => "x-accel-expires: 0\nX-Accel-Buffering: no",
            _ => "X-Accel-Expires: 60\nX-Accel-Buffering: no",
        },
    });
    let gateway = Gateway::start(&file(&origin, ""));
    let at = gateway.address();
    let fetch = |target: &str, fields: &str| ask(at, target, fields);
    let mut clients = vec![
        ("leader", fetch("/shared", "X-Client: a\r\n")),
        ("", fetch("/alone", "X-Client: a\r\n")),
    ];
    origin.origin.wait_for(2);
    clients.push(("follower", fetch("/shared", "X-Client: b\r\n")));
    wait_until_passed(&gateway, 3);
    origin.open();
    let mut answers: Vec<_> = clients
        .into_iter()
        .map(|(expected, mut client)| (expected, client.answer()))
        .collect();
    for (fields, status) in [("", 200), ("If-None-Match: \"a\"\r\n", 304)] {
        let fields = format!("X-Client: c\r\n{fields}");
        let answer = fetch("/shared", &fields).answer();
        assert_eq!(answer.status, status);
        answers.push(("kept", answer));
    }
    let post = "POST /shared HTTP/1.1\r\nHost: a\r\nX-Client: d\r\nContent-Length: 0\r\n\r\n";
    let mut client = Client::connect(at);
    client.send(post.as_bytes());
    answers.push(("", client.answer()));
    for (expected, answer) in answers {
        assert_eq!(how(&answer), expected, "{answer:?}");
        assert_eq!(answer.field("x-accel-expires"), None, "{expected}");
        assert_eq!(answer.field("x-accel-buffering"), Some("no"), "{expected}");
    }
    let plain = fetch("/plain", "X-Client: e\r\n").answer();
    assert_eq!(plain.field("x-accel-expires"), Some("60"));
}

/// A response from memory is charged like one from the origin, so the limit still applies.
#[test]
fn one_that_asks_too_often_is_refused_although_the_answer_is_there() {
    let origin = Scripted::start(script);
    let gateway = Gateway::start(&file(&origin, ""));
    let at = gateway.address();
    for nth in 0..10 {
        let answer = fetch_with(at, "/a", &client("alice"));
        let expected = if nth == 0 { "leader" } else { "kept" };
        assert_eq!((answer.status, how(&answer)), (200, expected));
    }
    let refused = fetch_with(at, "/a", &client("alice"));
    assert_eq!((refused.status, how(&refused)), (429, ""));
    assert_eq!(refused.field("x-own"), None);
    assert_eq!(fetch_with(at, "/a", &client("bob")).status, 200);
}

/// Returns the zone's level for a client.
fn excess(gateway: &Gateway, name: &str) -> f64 {
    let keys = gateway.admin("/api/zones/clients/keys?limit=1000");
    let keys: Value = serde_json::from_slice(&keys.expect("an admin port").body).expect("JSON");
    let mut keys = keys["keys"].as_array().expect("keys").iter();
    let found = keys.find(|it| it["key"] == name);
    found.and_then(|it| it["excess"].as_f64()).unwrap_or(0.0)
}

/// A bill or a refund by the response applies to every request that shares it.
#[test]
fn a_bill_and_a_refund_of_the_answer_hold_for_all_who_get_it() {
    for (route, fields, expected) in [
        ("", "X-Drip-Cost: 3", 2.0),
        ("refund = [\"2xx\"]", "X-Drip-Cost: 3", 0.0),
        (
            "cost = { response_header = \"x-drip-cost\", estimate = 1, max = 5 }",
            "X-Drip-Cost: 3",
            8.0,
        ),
        (
            "cost = { response_header = \"x-drip-cost\", estimate = 2, max = 5 }",
            "X-Other: 3",
            5.0,
        ),
    ] {
        let origin = Scripted::holding(move |_: &str| Script {
            status: 200,
            fields,
        });
        let gateway = Gateway::start(&file(&origin, route));
        let at = gateway.address();
        // Each client sends three requests: a leader, a follower, and one answered from memory.
        let names = ["alice", "bob", "carol"];
        let mut clients = vec![ask(at, "/a", &client("alice"))];
        origin.origin.wait_for(1);
        for name in ["alice", "bob", "bob", "carol"] {
            let before = clients.len();
            clients.push(ask(at, "/a", &client(name)));
            wait_until_passed(&gateway, i64::try_from(before).expect("few") + 1);
        }
        origin.open();
        let mut answers: Vec<_> = clients
            .iter_mut()
            .map(crate::support::Client::answer)
            .collect();
        for name in ["alice", "bob", "carol", "carol"] {
            answers.push(fetch_with(at, "/a", &client(name)));
        }
        for _ in 0..3 {
            answers.push(fetch_with(at, "/plain", &client("plain")));
        }
        for answer in &answers {
            assert_eq!(answer.status, 200, "{route}");
            let is_reported = answer.field("x-drip-cost").is_some();
            let may_see = !route.contains("cost") && fields.contains("Cost");
            assert_eq!(is_reported, may_see);
        }
        // The level is that of three requests. The first one is not excess.
        for name in names.into_iter().chain(["plain"]) {
            let found = excess(&gateway, name);
            assert!((found - expected).abs() < 0.1, "{route} {name}: {found}");
        }
        assert_eq!(origin.asked("/a"), 1);
        assert_eq!(origin.asked("/plain"), 3);
    }
}
