//! Tests of a Redis that refuses commands: reaction and messages of the gateway.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::programs::redis::Redis;
use crate::support::operator::{ask as operator_ask, json};
use crate::support::{Gateway, Origin, assert_contains, eventually, side_by_side};

const ALLOW: &str = "allow EVAL, EVALSHA and the commands of the scripts in Redis";
const DELETE: &str = "delete it in Redis, or set another redis.prefix";

/// One way to make a Redis refuse scripts: the error, the remedy, and how to undo it.
struct Refusal {
    /// Arguments of `redis-server`.
    arguments: &'static str,
    by: &'static str,
    says: &'static str,
    remedy: &'static str,
    undo: Option<&'static str>,
}

/// Returns a refusal in which an operator takes commands from the gateways.
const fn acl(by: &'static str, says: &'static str) -> Refusal {
    Refusal {
        arguments: "",
        by,
        says,
        remedy: ALLOW,
        undo: Some("ACL SETUSER default +@all"),
    }
}

const REFUSALS: [Refusal; 4] = [
    Refusal {
        arguments: "--rename-command EVAL a --rename-command EVALSHA b",
        by: "PING",
        says: "unknown command",
        remedy: ALLOW,
        undo: None,
    },
    acl(
        "ACL SETUSER default -eval -evalsha",
        "no permissions to run the 'eval",
    ),
    acl(
        "ACL SETUSER default -get -mget -hget",
        "can't run this command",
    ),
    // The write with which a gateway probes whether Redis is back is refused too.
    acl("ACL SETUSER default -set -hset", "can't run this command"),
];

fn file(origin: &Origin, redis: &Redis, gate: &str, zone: &str) -> String {
    format!(
        "workers = 2\n[origins.app]\nservers = [\"http://{}\"]\n{gate}\n\
         [redis]\nurl = \"{}\"\ntimeout = \"2s\"\n\
         [zones.z]\nkey = \"$arg_key\"\n{zone}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\" }}]\n",
        origin.address,
        redis.url()
    )
}

fn headline(gateway: &Gateway) -> Value {
    // The gateway retries again and again.
    thread::sleep(Duration::from_millis(20));
    json(gateway, "/api/headline")["headline"].clone()
}

/// Fails unless a headline has this evidence and remedy. The remedy begins with a capital letter.
fn check_says(headline: &Value, evidence: &str, remedy: &str) {
    for (field, part) in [("evidence", evidence), ("remedy", &remedy[1..])] {
        let text = headline[field].as_str().expect("a text");
        assert!(text.contains(part), "{headline}");
    }
}

/// Checks the reports of a gateway that shares a gate or a zone in a Redis with this refusal.
///
/// None reports an outage, also after some retries.
fn check(refusal: &Refusal, is_gate: bool) {
    let arguments: Vec<&str> = refusal.arguments.split_whitespace().collect();
    let (origin, redis) = (Origin::start(), Redis::with(&arguments));
    redis.ask(refusal.by);
    let own = "rate = \"1000r/s\"";
    let (gate, zone, title, line) = if is_gate {
        (
            "rate = \"50r/s\"\nstore = \"redis\"",
            own,
            "The gate of app goes on alone with 1/10 of its rate: Redis refused its claims",
            "the store refuses the claims of the origin's gate, and the number of gateways is unknown",
        )
    } else {
        (
            "",
            "rate = \"1000r/s\"\nstore = \"redis\"",
            "Redis refuses all requests of z",
            "the store refused the key of a request",
        )
    };
    let gateway = Gateway::start(&file(&origin, &redis, gate, zone));
    let ask = || assert_eq!(gateway.fetch("/?key=a").status, 200);
    ask();
    let headline = || {
        if !is_gate {
            ask();
        }
        headline(&gateway)
    };
    eventually("the headline says so", || {
        headline()["cause"] == "store_refuses"
    });
    let received = headline();
    assert_eq!(received["title"], title);
    check_says(&received, refusal.says, refusal.remedy);
    let line = gateway.wait_for_line(line);
    assert_contains!(line, refusal.remedy);
    if is_gate {
        assert_contains!(line, refusal.says);
        let sharing = &json(&gateway, "/api/origins")["origins"][0]["gate"]["sharing"];
        assert_eq!(sharing["alone"], true, "{sharing}");
        let reason = sharing["reason"].as_str().expect("a reason");
        assert!(reason.contains(refusal.says), "{sharing}");
    }
    thread::sleep(Duration::from_millis(1200));
    let log = gateway.log();
    for wrong in ["does not answer", "the store is out", "the store is back"] {
        assert!(!log.contains(wrong), "{log}");
    }
    assert_eq!(log.matches("the store refused ").count(), 1, "{log}");
    assert_eq!(gateway.value("drip_store_up", &[]), Some(1.0));
    if let Some(undo) = refusal.undo {
        redis.ask(undo);
        if is_gate {
            gateway.wait_for_line("the gateways share the rate again");
        }
        eventually("the headline is another", || {
            headline()["cause"] != "store_refuses"
        });
    }
}

#[test]
fn a_gate_whose_claims_redis_refuses_says_why_and_what_helps() {
    let taken = |(by, says)| Refusal {
        by,
        says,
        remedy: DELETE,
        undo: Some("DEL drip:gate:app.2"),
        ..REFUSALS[1]
    };
    // Another value has the key.
    let taken = [
        ("LPUSH drip:gate:app.2 taken", "WRONGTYPE"),
        ("SET drip:gate:app.2 taken", "WRONGTYPE"),
    ]
    .map(taken);
    side_by_side(REFUSALS.iter().chain(&taken), |it| check(it, true));
}

#[test]
fn a_zone_whose_operations_redis_refuses_says_why_and_what_helps() {
    side_by_side(&REFUSALS, |it| check(it, false));
}

/// A gate reports that Redis refuses its permits or its back-off.
///
/// Another value has the key. The rest of what the origin shares works.
#[test]
fn a_gate_reports_that_redis_refuses_its_permits_or_back_off() {
    const SHARED: &str = "max_in_flight = 6\nstore = \"redis\"";
    let cases = [
        (
            &["drip:places:app.1"][..],
            "\ngateways = 3",
            "The gate of app goes on alone with 1/3 of its permits: Redis refused to lease it any",
        ),
        (
            &["drip:places:app.1"],
            "\non_store_failure = \"closed\"",
            "The gate of app starts nothing: Redis refused to lease it permits",
        ),
        (
            &["drip:backoff:app.2"],
            "\n[origins.app.backoff]\nslow = \"1s\"",
            "The gate of app backs off alone: Redis refused to tell what other gateways have learned",
        ),
        // A gate that starts no request is reported before one that has part of the rate.
        (
            &["drip:places:app.1", "drip:gate:app.2"],
            "\non_store_failure = \"closed\"\nrate = \"50r/s\"",
            "The gate of app starts nothing: Redis refused to lease it permits",
        ),
    ];
    let check = |(keys, more, title): (&[&str], &str, &str)| {
        let (origin, redis) = (Origin::start(), Redis::start());
        for key in keys {
            redis.ask(&format!("LPUSH {key} taken"));
        }
        let gate = format!("{SHARED}{more}");
        let gateway = Gateway::start(&file(&origin, &redis, &gate, "rate = \"1000r/s\""));
        eventually("the headline says so", || {
            headline(&gateway)["title"] == title
        });
        let received = headline(&gateway);
        assert_eq!(received["cause"], "store_refuses");
        check_says(&received, "WRONGTYPE", DELETE);
        assert_eq!(gateway.value("drip_store_up", &[]), Some(1.0));
        redis.ask(&format!("DEL {}", keys.join(" ")));
        eventually("the headline is another", || {
            headline(&gateway)["cause"] != "store_refuses"
        });
    };
    side_by_side(cases, check);
}

/// An error of Redis never shows a part of a masked key.
///
/// Redis names the arguments of a command that it does not know.
#[test]
fn of_a_masked_key_no_part_of_an_error_of_redis_is_shown() {
    let check = |(mask, is_shown): (&str, bool)| {
        let renamed = ["--rename-command", "EVALSHA", "another"];
        let (origin, redis) = (Origin::start(), Redis::with(&renamed));
        let zone = format!("rate = \"1000r/s\"\nstore = \"redis\"{mask}");
        let gateway = Gateway::start(&file(&origin, &redis, "", &zone));
        eventually("the headline says so", || {
            thread::sleep(Duration::from_millis(20));
            assert_eq!(gateway.fetch("/?key=sk_live").status, 200);
            headline(&gateway)["cause"] == "store_refuses"
        });
        let line = gateway.wait_for_line("the store refused the key of a request");
        for text in [line, headline(&gateway).to_string()] {
            assert_eq!(text.contains("sk_live"), is_shown, "{text}");
        }
    };
    side_by_side([("", true), ("\nmask_keys = true", false)], check);
}

/// A Redis that refuses writes is reported as one outage, from its first moment.
#[test]
fn a_redis_that_takes_no_writes_is_out_once_and_not_said_to_be_silent() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let gate = "rate = \"50r/s\"\nstore = \"redis\"";
    let gateway = Gateway::start(&file(&origin, &redis, gate, "rate = \"1000r/s\""));
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    redis.ask("CONFIG SET maxmemory 1");
    let line = gateway.wait_for_line("goes on alone with 1/1 of the rate");
    assert_contains!(line, "OOM", "the store refuses the claims");
    assert_contains!(line, "make Redis accept writes");
    let since = || json(&gateway, "/api/store")["store"]["out_since"].clone();
    eventually("it is out", || since().is_string());
    let first = since();
    thread::sleep(Duration::from_millis(1200));
    assert_eq!(since(), first);
    let log = gateway.log();
    assert_eq!(log.matches("the store is out").count(), 1, "{log}");
    assert!(!log.contains("does not answer"), "{log}");
    redis.ask("CONFIG SET maxmemory 0");
    gateway.wait_for_line("the gateways share the rate again");
    assert_eq!(gateway.log().matches("the store is back").count(), 1);
}

/// The documented permissions of a gateway are enough for all its commands.
#[test]
fn the_commands_that_are_documented_are_enough() {
    let docs = include_str!("../../../../docs/operate/several-gateways-redis.md");
    let begin = docs.find("ACL SETUSER drip ").expect("the command");
    let command = docs[begin..].lines().next().expect("a line");
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/gateway/store/scripts");
    for script in fs::read_dir(scripts).expect("scripts") {
        let text = fs::read_to_string(script.expect("a script").path()).expect("a text");
        for called in text.split("call(\"").skip(1) {
            let name = called.split('"').next().expect("a name").to_lowercase();
            let allowed = format!("+{name}");
            assert!(command.split(' ').any(|it| it == allowed), "{name}");
        }
    }
    let (origin, redis) = (Origin::start(), Redis::start());
    assert_eq!(redis.ask(command), "+OK");
    let algorithms = [
        "leaky_bucket",
        "token_bucket",
        "fixed_window",
        "sliding_window_log",
        "sliding_window_counter",
    ];
    let zone = |name: &str| {
        format!(
            "[zones.{name}]\nkey = \"$arg_key\"\nrate = \"5r/m\"\nalgorithm = \"{name}\"\n\
             store = \"redis\"\non_store_failure = \"closed\"\n\
             [[routes]]\npath = \"/{name}\"\norigin = \"app\"\nlimits = [{{ zone = \"{name}\" }}]\n"
        )
    };
    let zones: String = algorithms.into_iter().map(zone).collect();
    let url = redis.url().replace("redis://", "redis://drip:secret@");
    let gateway = Gateway::start(&format!(
        "[origins.app]\nservers = [\"http://{0}\"]\nrate = \"50r/s\"\nstore = \"redis\"\n\
         [origins.shop]\nservers = [\"http://{0}\"]\n\
         [origins.shop.room]\nsessions = 1\nstore = \"redis\"\nsecret = \"0123456789abcdef\"\n\
         [[routes]]\npath = \"/shop\"\norigin = \"shop\"\n\
         [redis]\nurl = \"{url}\"\ntimeout = \"2s\"\n{zones}",
        origin.address,
    ));
    for name in algorithms {
        for _ in 0..2 {
            let status = gateway.fetch(&format!("/{name}?key=a")).status;
            assert!([200, 429].contains(&status), "{name}: {status}");
        }
        let key = format!("/api/zones/{name}/keys/a");
        assert_eq!(operator_ask(&gateway, "DELETE", &key, "").status, 200);
    }
    for status in [200, 429] {
        assert_eq!(gateway.fetch("/shop").status, status);
    }
    thread::sleep(Duration::from_millis(500));
    let log = gateway.log();
    assert!(!log.contains("the store"), "{log}");
    for name in algorithms {
        let labels = [("zone", name), ("result", "ok")];
        let done = gateway.value("drip_store_operations_total", &labels);
        assert!(done.is_some_and(|done| done >= 2.0), "{name}: {done:?}");
    }
}
