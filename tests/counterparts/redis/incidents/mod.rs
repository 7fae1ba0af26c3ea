//! Half an hour of incidents, and whether the headline told each of them.
//!
//! Gateways with steady traffic get one incident after another. Each must become the headline
//! within ten seconds, with its cause, its subject, its evidence and what to do, and must leave it
//! within five seconds of its end. At the end the headline's history is what was done, in the same
//! order.
//!
//! | file | incidents |
//! |---|---|
//! | here | Redis gone, 500 to all, a dead server, one abuser, a flood of keys, clients that leave, long queues, errors in the file, pauses, overrides |
//! | `abuser` | two abusers, one after the other |
//! | `blind_spots` | full connections, a limit without keys, an untrusted balancer, a constant key, a log that may not grow |
//! | `back_off` | an origin that becomes slow behind a gate that backs off |
//! | `gate` | a gate that rejects because it is full |
//! | `leaving` | clients that leave before an origin answers, and at its gate |
//! | `descriptors` | no file descriptors left |
//!
//! Here each incident lasts until it is seen. For half an hour of them:
//!
//! ```text
//! DRIP_INCIDENT_SECONDS=120 cargo test --test long incidents -- --nocapture
//! ```

mod abuser;
mod back_off;
mod bench;
mod blind_spots;
mod descriptors;
mod gate;
mod leaving;
mod scene;
mod traffic;

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::night::day_or_night;
use crate::support::now;
use crate::support::operator::{ask, json};
use bench::{Bench, FILE, Server};
use scene::{CALM_WITHIN, SEEN_WITHIN, Wanted, is_calm, lasts, text, wait};
use traffic::Load;

/// Something goes wrong, is seen, and ends.
struct Incident {
    cause: &'static str,
    about: Option<&'static str>,
    /// Parts of title, evidence and remedy.
    says: &'static [&'static str],
    /// A part of the remedy: the right action.
    remedy: &'static str,
    says_not: &'static [&'static str],
    begin: fn(&mut Bench),
    end: fn(&mut Bench),
    /// How long it truly goes on after `end`.
    goes_on: Duration,
    /// Causes that may come before or after it.
    on_the_way: &'static [&'static str],
}

/// As in [`FILE`]: a server that is out is tried again after this.
const FAIL_TIMEOUT: Duration = Duration::from_secs(3);

const MORE_RATE: &str = "raise `rate`";

const INCIDENTS: &[Incident] = &[
    Incident {
        cause: "leaving",
        about: Some("hasty"),
        says: &[
            "leave hasty before their turn, after about",
            "Set `max_wait` = ",
            "raise `rate` to ",
        ],
        remedy: "Set `max_wait` = ",
        says_not: &["what the queue is for"],
        begin: |bench| bench.traffic.add(Load::Hasty),
        end: |bench| bench.traffic.add(Load::Steady),
        goes_on: Duration::ZERO,
        on_the_way: &["waiting"],
    },
    Incident {
        cause: "waiting",
        about: Some("per_client"),
        says: &["wait in per_client", "the oldest for"],
        remedy: "If the wait is too long",
        says_not: &[],
        begin: |bench| bench.traffic.crowd("/deep?key=patient", 60),
        end: |bench| bench.traffic.leave(),
        goes_on: Duration::ZERO,
        on_the_way: &["leaving"],
    },
    Incident {
        // The deepest queue is another one's.
        cause: "rejecting",
        about: Some("per_client"),
        says: &["greedy causes", "`burst` is reached", "One client"],
        remedy: "If it may have more, give it a plan",
        says_not: &["patient", MORE_RATE],
        begin: |bench| {
            bench.traffic.crowd("/deep?key=patient", 60);
            bench.traffic.add(Load::Greedy);
        },
        end: |bench| {
            bench.traffic.add(Load::Steady);
            bench.traffic.leave();
        },
        goes_on: Duration::ZERO,
        on_the_way: &["waiting", "leaving"],
    },
    Incident {
        cause: "file_error",
        about: None,
        says: &["previous settings stay in force"],
        remedy: "Correct the file",
        says_not: &[],
        begin: |bench| bench.write(&FILE.replace("10r/s", "many")),
        end: |bench| bench.write(FILE),
        goes_on: Duration::ZERO,
        on_the_way: &[],
    },
    Incident {
        cause: "origin_errors",
        about: Some("api"),
        says: &["with 5xx", "the origin's own log"],
        remedy: "Read the origin's own log",
        says_not: &[MORE_RATE],
        begin: |bench| bench.servers([Server::Error, Server::Error]),
        end: |bench| bench.servers([Server::Fine, Server::Fine]),
        goes_on: Duration::ZERO,
        on_the_way: &[],
    },
    Incident {
        cause: "origin_failing",
        about: Some("api"),
        says: &["Origin api", "Repair the origin"],
        remedy: "Repair the origin",
        says_not: &[MORE_RATE],
        begin: |bench| bench.servers([Server::Dead, Server::Dead]),
        end: |bench| bench.servers([Server::Fine, Server::Fine]),
        goes_on: FAIL_TIMEOUT,
        on_the_way: &["server_out"],
    },
    Incident {
        cause: "server_out",
        about: Some("api"),
        says: &["1 of 2 servers of origin api is out"],
        remedy: "Repair the server",
        says_not: &[MORE_RATE],
        begin: |bench| bench.servers([Server::Fine, Server::Dead]),
        end: |bench| bench.servers([Server::Fine, Server::Fine]),
        goes_on: FAIL_TIMEOUT,
        on_the_way: &["origin_failing"],
    },
    Incident {
        cause: "key_flood",
        about: Some("per_client"),
        says: &["new keys", "of 100,000 keys", "set `new_keys`"],
        remedy: "set `new_keys` in the zone",
        says_not: &[],
        begin: |bench| bench.traffic.add(Load::Flood),
        end: |bench| bench.traffic.add(Load::Steady),
        goes_on: Duration::ZERO,
        on_the_way: &[],
    },
    Incident {
        cause: "store_out",
        about: None,
        says: &["The store is out", "on_store_failure", "Redis"],
        remedy: "Bring Redis or the way to it back",
        says_not: &[MORE_RATE],
        begin: |bench| bench.redis.kill(),
        end: |bench| bench.redis.restart(),
        goes_on: Duration::ZERO,
        on_the_way: &[],
    },
    Incident {
        cause: "paused",
        about: Some("per_client"),
        says: &["per_client is paused", "127.0.0.1", "Resume"],
        remedy: "Resume it",
        says_not: &[MORE_RATE],
        begin: |bench| bench.change("PUT", r#"{"pause": true, "for": "1h"}"#),
        end: |bench| bench.change("DELETE", ""),
        goes_on: Duration::ZERO,
        on_the_way: &["rejecting", "waiting"],
    },
    Incident {
        cause: "overridden",
        about: Some("per_client"),
        says: &["not as in the file", "20r/s", "127.0.0.1"],
        remedy: "Undo the override",
        says_not: &[],
        begin: |bench| bench.change("PUT", r#"{"rate": "20r/s", "for": "1h"}"#),
        end: |bench| bench.change("DELETE", ""),
        goes_on: Duration::ZERO,
        on_the_way: &[],
    },
];

/// Waits for a headline, at most for `limit` after `began`.
fn wait_for(
    bench: &Bench,
    began: Instant,
    limit: Duration,
    what: &str,
    is_it: impl Fn(&Value) -> bool,
) -> Value {
    let headline = || json(&bench.gateway, "/api/headline")["headline"].clone();
    wait(began, limit, what, headline, is_it)
}

/// By day, some gateways have some of the incidents each, at the same time.
#[test]
fn each_incident_becomes_the_headline_and_leaves_it() {
    let gateways = day_or_night(6, 1);
    let each = INCIDENTS.len().div_ceil(gateways);
    thread::scope(|scope| {
        for incidents in INCIDENTS.chunks(each) {
            scope.spawn(move || suffer(incidents));
        }
    });
}

/// One gateway has these incidents, one after another.
fn suffer(incidents: &[Incident]) {
    let mut bench = Bench::start();
    wait_for(&bench, now(), SEEN_WITHIN, "calm", is_calm);
    for incident in incidents {
        let cause = incident.cause;
        let wanted = Wanted {
            cause,
            is_bad: false,
            says: incident.says,
            remedy: incident.remedy,
        };
        let began = now();
        (incident.begin)(&mut bench);
        let told = wait_for(&bench, began, SEEN_WITHIN, cause, |it| wanted.is_told(it));
        let about = incident.about.map_or(Value::Null, Value::from);
        assert_eq!(told["about"], about, "{told:#}");
        assert!(told["since"].is_number(), "{told:#}");
        for part in incident.says_not {
            assert!(!text(&told).contains(part), "{part:?} in {told:#}");
        }
        check_that_top_tells(&bench, cause);
        thread::sleep(lasts());
        (incident.end)(&mut bench);
        let limit = incident.goes_on + CALM_WITHIN;
        let what = format!("calm after {cause}");
        let calm = wait_for(&bench, now(), limit, &what, is_calm);
        let ended = calm["ended"]["at"].as_f64();
        assert!(ended > told["since"].as_f64(), "{calm:#}");
    }
    check_history(&bench, incidents);
}

/// The text of `drip top` begins with the same headline.
fn check_that_top_tells(bench: &Bench, cause: &str) {
    let deadline = now() + SEEN_WITHIN;
    loop {
        let headline = json(&bench.gateway, "/api/headline")["headline"].clone();
        let told = bench.top();
        // Numbers change from second to second.
        let title = headline["title"].as_str().expect("a title");
        if headline["cause"] == cause && told.contains(title) {
            return;
        }
        assert!(now() < deadline, "{headline:#}\n{told}");
    }
}

/// Without what may come before or after an incident, the history is the list of incidents.
fn check_history(bench: &Bench, incidents: &[Incident]) {
    let told = json(&bench.gateway, "/api/headline");
    let history = told["history"].as_array().expect("a list").iter().rev();
    let causes: Vec<_> = history
        .map(|it| it["headline"]["cause"].as_str().expect("a cause"))
        .collect();
    let mut wanted = incidents.iter().peekable();
    let mut present: Option<&Incident> = None;
    for cause in &causes {
        let is_calm = ["looking", "idle", "fine"].contains(cause);
        if is_calm || present.is_some_and(|it| it.cause == *cause) {
            continue;
        }
        if let Some(next) = wanted.next_if(|next| next.cause == *cause) {
            present = Some(next);
            continue;
        }
        let around = [present, wanted.peek().copied()];
        let is_on_the_way = around
            .iter()
            .flatten()
            .any(|it| it.on_the_way.contains(cause));
        assert!(is_on_the_way, "{cause} has no reason: {causes:?}");
    }
    let missing = wanted.next().map(|it| it.cause);
    assert_eq!(missing, None, "in {causes:?}");
}

#[test]
fn a_saved_file_is_told_with_what_changed() {
    let bench = Bench::start();
    bench.write(&FILE.replace("10r/s", "20r/s"));
    let deadline = now() + SEEN_WITHIN;
    loop {
        let answer = ask(&bench.gateway, "GET", "/api/config", "");
        let text = answer.text();
        if text.contains("zones.per_client.rate 10r/s -> 20r/s") {
            return;
        }
        assert!(now() < deadline, "{text}");
        thread::sleep(Duration::from_millis(100));
    }
}
