//! Tests of which responses followers get, and which requests go to the origin one by one.

use std::thread;

use super::{ask, file, how, request, wait_until_passed};
use crate::support::scripted::{Script, Scripted};
use crate::support::{Client, Gateway, MS};

/// Number of requests that wait while the first one is at the origin.
const FOLLOWERS: usize = 3;

/// Responses that all followers get, some of each kind. `terms/tests` has all.
const SHARED: [(u16, &str); 5] = [
    (200, ""),
    (204, ""),
    (404, ""),
    (200, "Date: {-60}\nExpires: {60}"),
    (200, "Vary: Accept-Encoding\nVary: Accept-Language"),
];

/// Responses that each request gets from the origin itself.
const NOT_SHARED: [(u16, &str); 7] = [
    (201, ""),
    (304, "ETag: \"a\""),
    (403, ""),
    (404, "Cache-Control: no-store"),
    (200, "Vary: Accept-Encoding\nVary: Origin"),
    (200, "Set-Cookie: a=b"),
    (200, "X-Accel-Expires: 0\nCache-Control: public, max-age=60"),
];

#[test]
fn those_who_wait_get_what_a_shared_cache_may_give_them_and_go_on_by_themselves_otherwise() {
    let scripts: Vec<_> = SHARED.into_iter().chain(NOT_SHARED).collect();
    let at_origin = scripts.clone();
    let origin = Scripted::holding(move |target| {
        let nth: usize = target[1..].parse().expect("a number");
        let (status, fields) = at_origin[nth];
        Script { status, fields }
    });
    let gateway = Gateway::start(&file(origin.origin.address, ""));
    let at = gateway.address();
    let target = |nth: usize| format!("/{nth}");
    let mut clients: Vec<Vec<Client>> = Vec::new();
    for nth in 0..scripts.len() {
        clients.push(vec![ask(at, &target(nth), "")]);
    }
    origin.origin.wait_for(scripts.len());
    for (nth, clients) in clients.iter_mut().enumerate() {
        clients.extend((0..FOLLOWERS).map(|_| ask(at, &target(nth), "")));
    }
    let all = scripts.len() * (1 + FOLLOWERS);
    wait_until_passed(&gateway, i64::try_from(all).expect("few"));
    assert_eq!(origin.origin.arrivals().len(), scripts.len());
    origin.open();
    let mut wrong = Vec::new();
    for (nth, clients) in clients.into_iter().enumerate() {
        let (status, fields) = scripts[nth];
        let is_shared = nth < SHARED.len();
        let answers: Vec<_> = clients.into_iter().map(|mut it| it.answer()).collect();
        let mut hows: Vec<_> = answers.iter().map(how).collect();
        let mut bodies: Vec<_> = answers.iter().map(crate::support::Answer::text).collect();
        hows.sort_unstable();
        bodies.sort_unstable();
        bodies.dedup();
        let asked = origin.asked(&target(nth));
        let has_body = !matches!(status, 204 | 304);
        let each = 1 + FOLLOWERS;
        let expected = if is_shared {
            (1, 1, "follower")
        } else {
            (each, if has_body { each } else { 1 }, "")
        };
        let statuses_fit = answers.iter().all(|it| it.status == status);
        if (asked, bodies.len(), hows[1]) != expected || !statuses_fit {
            wrong.push(format!(
                "{status} {fields:?}: {asked} departures, {bodies:?}, {hows:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A complete response serves new requests for the shorter of `keep` and its own lifetime.
#[test]
fn an_answer_serves_newcomers_for_the_shorter_of_keep_and_its_own_lifetime() {
    let origin = Scripted::start(|target: &str| Script {
        status: 200,
        fields: if target == "/short" {
            "Cache-Control: max-age=1"
        } else {
            ""
        },
    });
    for (keep, target, is_kept) in [
        ("keep = \"1h\"", "/long", true),
        ("keep = \"1h\"", "/short", false),
        ("keep = \"1s\"", "/long", false),
    ] {
        let gateway = Gateway::start(&file(origin.origin.address, keep));
        let fetch = || ask(gateway.address(), target, "").answer();
        assert_eq!(how(&fetch()), "leader", "{keep} {target}");
        assert_eq!(how(&fetch()), "kept", "{keep} {target}");
        thread::sleep(1200 * MS);
        let expected = if is_kept { "kept" } else { "leader" };
        assert_eq!(how(&fetch()), expected, "{keep} {target}");
    }
    // Nothing is kept by default.
    let gateway = Gateway::start(&file(origin.origin.address, ""));
    for _ in 0..2 {
        assert_eq!(how(&ask(gateway.address(), "/long", "").answer()), "leader");
    }
}

/// Requests for a part, conditional requests, and HEAD never lead.
///
/// Their responses would be useless to other requests.
#[test]
fn requests_for_a_part_and_conditional_ones_never_lead_and_neither_does_head() {
    let script = |_: &str| Script {
        status: 200,
        fields: "ETag: \"a\"\nLast-Modified: Tue, 01 Jan 2030 00:00:00 GMT",
    };
    let origin = Scripted::holding(script);
    let gateway = Gateway::start(&file(origin.origin.address, "keep = \"1h\""));
    let at = gateway.address();
    let fields = [
        "Range: bytes=0-1\r\n",
        "Range: bytes=0-1\r\nIf-Range: \"a\"\r\n",
        "If-None-Match: \"a\"\r\n",
        "If-Modified-Since: Tue, 01 Jan 2030 00:00:00 GMT\r\n",
    ];
    let mut clients: Vec<_> = fields.iter().map(|it| ask(at, "/a", it)).collect();
    let mut head = Client::connect(at);
    head.send(request("HEAD", "/a", "").as_bytes());
    // None of them waits for another one.
    origin.origin.wait_for(5);
    let mut whole = ask(at, "/a", "");
    origin.origin.wait_for(6);
    origin.open();
    assert_eq!(how(&whole.answer()), "leader");
    for (client, fields) in clients.iter_mut().zip(fields) {
        assert_eq!(how(&client.answer()), "", "{fields}");
    }
    assert_eq!(head.head().field("x-drip-shared"), None);
    // They share the response of another leader.
    for fields in fields {
        assert_eq!(how(&ask(at, "/a", fields).answer()), "kept", "{fields}");
    }
    assert_eq!(origin.asked("/a"), 6);
}
