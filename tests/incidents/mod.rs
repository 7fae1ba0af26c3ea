//! Half an hour of incidents, and whether the headline told each of them.
//!
//! A gateway with steady traffic gets one incident after another. Each must become the headline,
//! with its cause, its subject and its evidence, and must leave it afterwards. At the end the
//! headline's history is what was done, in the same order.
//!
//! Here each incident lasts until it is seen. For half an hour of them:
//!
//! ```text
//! DRIP_INCIDENT_SECONDS=120 cargo test --test all incidents -- --nocapture
//! ```

mod bench;
mod blind_spots;
mod traffic;

use std::time::Duration;
use std::{env, thread};

use serde_json::Value;

use crate::gateway::operator::{ask, json};
use crate::support::now;
use bench::{Bench, FILE, Server};
use traffic::Load;

/// How long a headline may take on a busy machine: the samples of ten seconds, and some more.
const SEEN_WITHIN: Duration = Duration::from_secs(40);

/// Something goes wrong, is seen, and ends.
struct Incident {
    cause: &'static str,
    about: Option<&'static str>,
    /// Parts of title, evidence and remedy.
    says: &'static [&'static str],
    says_not: &'static [&'static str],
    begin: fn(&mut Bench),
    end: fn(&mut Bench),
    /// Causes that may come before or after it.
    on_the_way: &'static [&'static str],
}

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
        says_not: &["what the queue is for"],
        begin: |bench| bench.traffic.add(Load::Hasty),
        end: |bench| bench.traffic.add(Load::Steady),
        on_the_way: &["waiting"],
    },
    Incident {
        cause: "waiting",
        about: Some("per_client"),
        says: &["wait in per_client", "the oldest for"],
        says_not: &[],
        begin: |bench| bench.traffic.crowd("/deep?key=patient", 60),
        end: |bench| bench.traffic.leave(),
        on_the_way: &["leaving"],
    },
    Incident {
        // The deepest queue is another one's.
        cause: "rejecting",
        about: Some("per_client"),
        says: &["greedy causes", "`burst` is reached", "One client"],
        says_not: &["patient", MORE_RATE],
        begin: |bench| {
            bench.traffic.crowd("/deep?key=patient", 60);
            bench.traffic.add(Load::Greedy);
        },
        end: |bench| {
            bench.traffic.add(Load::Steady);
            bench.traffic.leave();
        },
        on_the_way: &["waiting", "leaving"],
    },
    Incident {
        cause: "file_error",
        about: None,
        says: &["previous settings stay in force"],
        says_not: &[],
        begin: |bench| bench.write(&FILE.replace("10r/s", "many")),
        end: |bench| bench.write(FILE),
        on_the_way: &[],
    },
    Incident {
        cause: "origin_errors",
        about: Some("api"),
        says: &["with 5xx", "the origin's own log"],
        says_not: &[MORE_RATE],
        begin: |bench| bench.servers([Server::Error, Server::Error]),
        end: |bench| bench.servers([Server::Fine, Server::Fine]),
        on_the_way: &[],
    },
    Incident {
        cause: "origin_failing",
        about: Some("api"),
        says: &["Origin api", "Repair the origin"],
        says_not: &[MORE_RATE],
        begin: |bench| bench.servers([Server::Dead, Server::Dead]),
        end: |bench| bench.servers([Server::Fine, Server::Fine]),
        on_the_way: &["server_out"],
    },
    Incident {
        cause: "server_out",
        about: Some("api"),
        says: &["1 of 2 servers of origin api is out"],
        says_not: &[MORE_RATE],
        begin: |bench| bench.servers([Server::Fine, Server::Dead]),
        end: |bench| bench.servers([Server::Fine, Server::Fine]),
        on_the_way: &["origin_failing"],
    },
    Incident {
        cause: "key_flood",
        about: Some("per_client"),
        says: &["new keys", "of 100,000 keys", "set `new_keys`"],
        says_not: &[],
        begin: |bench| bench.traffic.add(Load::Flood),
        end: |bench| bench.traffic.add(Load::Steady),
        on_the_way: &[],
    },
    Incident {
        cause: "store_out",
        about: None,
        says: &["The store is out", "on_store_failure", "Redis"],
        says_not: &[MORE_RATE],
        begin: |bench| bench.redis.kill(),
        end: |bench| bench.redis.restart(),
        on_the_way: &[],
    },
    Incident {
        cause: "paused",
        about: Some("per_client"),
        says: &["per_client is paused", "127.0.0.1", "Resume"],
        says_not: &[MORE_RATE],
        begin: |bench| bench.change("PUT", r#"{"pause": true, "for": "1h"}"#),
        end: |bench| bench.change("DELETE", ""),
        on_the_way: &["rejecting", "waiting"],
    },
    Incident {
        cause: "overridden",
        about: Some("per_client"),
        says: &["not as in the file", "20r/s", "127.0.0.1"],
        says_not: &[],
        begin: |bench| bench.change("PUT", r#"{"rate": "20r/s", "for": "1h"}"#),
        end: |bench| bench.change("DELETE", ""),
        on_the_way: &[],
    },
];

/// How long each incident lasts after it was seen.
fn lasts() -> Duration {
    let seconds = env::var("DRIP_INCIDENT_SECONDS").ok();
    let seconds = seconds.map(|it| it.parse().expect("a whole number"));
    Duration::from_secs(seconds.unwrap_or(0))
}

/// Title, evidence and remedy.
fn text(headline: &Value) -> String {
    let part = |name: &str| headline[name].as_str().expect("a text").to_owned();
    [part("title"), part("evidence"), part("remedy")].join(" ")
}

/// Waits for a headline.
fn wait_for(bench: &Bench, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let deadline = now() + SEEN_WITHIN;
    loop {
        let headline = json(&bench.gateway, "/api/headline")["headline"].clone();
        if is_it(&headline) {
            return headline;
        }
        assert!(now() < deadline, "{what} is not told: {headline:#}");
        thread::sleep(Duration::from_millis(200));
    }
}

fn wait_for_calm(bench: &Bench) {
    wait_for(bench, "calm", |it| it["cause"] == "fine");
}

#[test]
fn each_incident_becomes_the_headline_and_leaves_it() {
    let mut bench = Bench::start();
    wait_for_calm(&bench);
    for incident in INCIDENTS {
        (incident.begin)(&mut bench);
        let told = wait_for(&bench, incident.cause, |it| {
            let says = |part: &&str| text(it).contains(*part);
            let is_warning = it["severity"] == "warn" || it["severity"] == "bad";
            it["cause"] == incident.cause && is_warning && incident.says.iter().all(says)
        });
        let about = incident.about.map_or(Value::Null, Value::from);
        assert_eq!(told["about"], about, "{told:#}");
        for part in incident.says_not {
            assert!(!text(&told).contains(part), "{part:?} in {told:#}");
        }
        check_that_top_tells(&bench, incident.cause);
        thread::sleep(lasts());
        (incident.end)(&mut bench);
        wait_for_calm(&bench);
    }
    check_history(&bench);
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
fn check_history(bench: &Bench) {
    let told = json(&bench.gateway, "/api/headline");
    let history = told["history"].as_array().expect("a list").iter().rev();
    let causes: Vec<_> = history
        .map(|it| it["headline"]["cause"].as_str().expect("a cause"))
        .collect();
    let mut wanted = INCIDENTS.iter().peekable();
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
