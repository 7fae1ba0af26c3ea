//! Half an hour of incidents, and whether the headline reports each of them.
//!
//! Gateways with steady traffic get one incident after another. Each must become the headline within ten seconds, with its
//! cause, its subject, its evidence and what to do, and must leave it within five seconds of its end. At the end the history
//! is the list of incidents, in their order.
//!
//! Here each incident lasts until it is seen. For half an hour of them:
//!
//! ```text
//! DRIP_LONG=1 DRIP_INCIDENT_SECONDS=120 cargo test --test plain incidents::sequence -- --nocapture
//! ```

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::bench::{Bench, FILE, Server};
use super::driver::{RULE, Rule, is_calm, lasts};
use super::scene::{SEEN_WITHIN, follows, wait};
use super::traffic::Load;
use crate::support::night::day_or_night;
use crate::support::now;
use crate::support::operator::{ask, json};

/// Something goes wrong, is seen, and ends.
struct Step {
    rule: Rule,
    begin: fn(&mut Bench),
    end: fn(&mut Bench),
    /// Causes that may come before or after it.
    on_the_way: &'static [&'static str],
}

/// As in [`FILE`]: a server that is out is tried again after this many seconds.
const FAIL_TIMEOUT: u64 = 3;

const MORE_RATE: &str = "raise `rate`";

const STEPS: &[Step] = &[
    Step {
        rule: Rule {
            cause: Some("leaving"),
            about: Some("hasty"),
            says: &[
                "leave hasty before their turn, after about",
                "Set `max_wait` = ",
                "raise `rate` to ",
            ],
            helps: &["Set `max_wait` = "],
            never: &["what the queue is for"],
            ..RULE
        },
        begin: |bench| bench.traffic.add(Load::Hasty),
        end: |bench| bench.traffic.add(Load::Steady),
        on_the_way: &["waiting"],
    },
    Step {
        rule: Rule {
            cause: Some("waiting"),
            about: Some("per_client"),
            says: &["wait in per_client", "the oldest for"],
            helps: &["If the wait is too long"],
            ..RULE
        },
        begin: |bench| bench.traffic.crowd("/deep?key=patient", 60),
        end: |bench| bench.traffic.leave(),
        on_the_way: &["leaving"],
    },
    Step {
        // The deepest queue is another one's.
        rule: Rule {
            cause: Some("rejecting"),
            about: Some("per_client"),
            says: &["greedy causes", "`burst` is reached", "One client"],
            helps: &["If it may have more, give it a plan"],
            never: &["patient", MORE_RATE],
            ..RULE
        },
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
    Step {
        rule: Rule {
            cause: Some("file_error"),
            says: &["previous settings stay in force"],
            helps: &["Correct the file"],
            ..RULE
        },
        begin: |bench| bench.write(&FILE.replace("10r/s", "many")),
        end: |bench| bench.write(FILE),
        on_the_way: &[],
    },
    Step {
        rule: Rule {
            cause: Some("origin_errors"),
            about: Some("api"),
            says: &["with 5xx", "the origin's own log"],
            helps: &["Read the origin's own log"],
            never: &[MORE_RATE],
            ..RULE
        },
        begin: |bench| bench.servers([Server::Error, Server::Error]),
        end: |bench| bench.servers([Server::Fine, Server::Fine]),
        on_the_way: &[],
    },
    Step {
        rule: Rule {
            cause: Some("origin_failing"),
            about: Some("api"),
            says: &["Origin api", "Repair the origin"],
            helps: &["Repair the origin"],
            never: &[MORE_RATE],
            calm: RULE.calm + FAIL_TIMEOUT,
            ..RULE
        },
        begin: |bench| bench.servers([Server::Dead, Server::Dead]),
        end: |bench| bench.servers([Server::Fine, Server::Fine]),
        on_the_way: &["server_out"],
    },
    Step {
        rule: Rule {
            cause: Some("server_out"),
            about: Some("api"),
            says: &["1 of 2 servers of origin api is out"],
            helps: &["Repair the server"],
            never: &[MORE_RATE],
            calm: RULE.calm + FAIL_TIMEOUT,
            ..RULE
        },
        begin: |bench| bench.servers([Server::Fine, Server::Dead]),
        end: |bench| bench.servers([Server::Fine, Server::Fine]),
        on_the_way: &["origin_failing"],
    },
    Step {
        rule: Rule {
            cause: Some("key_flood"),
            about: Some("per_client"),
            says: &["new keys", "of 100,000 keys", "set `new_keys`"],
            helps: &["set `new_keys` in the zone"],
            ..RULE
        },
        begin: |bench| bench.traffic.add(Load::Flood),
        end: |bench| bench.traffic.add(Load::Steady),
        on_the_way: &[],
    },
    Step {
        rule: Rule {
            cause: Some("paused"),
            about: Some("per_client"),
            says: &["per_client is paused", r"127\.0\.0\.1", "Resume"],
            helps: &["Resume it"],
            never: &[MORE_RATE],
            ..RULE
        },
        begin: |bench| bench.change("PUT", r#"{"pause": true, "for": "1h"}"#),
        end: |bench| bench.change("DELETE", ""),
        on_the_way: &["rejecting", "waiting"],
    },
    Step {
        rule: Rule {
            cause: Some("overridden"),
            about: Some("per_client"),
            says: &["not as in the file", "20r/s", r"127\.0\.0\.1"],
            helps: &["Undo the override"],
            ..RULE
        },
        begin: |bench| bench.change("PUT", r#"{"rate": "20r/s", "for": "1h"}"#),
        end: |bench| bench.change("DELETE", ""),
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
    let each = STEPS.len().div_ceil(gateways);
    thread::scope(|scope| {
        for steps in STEPS.chunks(each) {
            scope.spawn(move || suffer(steps));
        }
    });
}

/// One gateway has these incidents, one after another.
fn suffer(steps: &[Step]) {
    let mut bench = Bench::start();
    wait_for(&bench, now(), SEEN_WITHIN, "calm", is_calm);
    for Step {
        rule, begin, end, ..
    } in steps
    {
        let cause = rule.cause.expect("each has one");
        let began = now();
        begin(&mut bench);
        let within = Duration::from_secs(rule.within);
        let headline = wait_for(&bench, began, within, cause, |it| follows(it, rule));
        assert!(headline["since"].is_number(), "{headline:#}");
        let wrong = rule.forbidden(&headline, true);
        assert!(wrong.is_empty(), "{wrong:#?} in {headline:#}");
        check_that_top_shows(&bench, cause);
        thread::sleep(lasts());
        end(&mut bench);
        let limit = Duration::from_secs(rule.calm);
        let what = format!("calm after {cause}");
        let calm = wait_for(&bench, now(), limit, &what, is_over);
        let ended = calm["ended"]["at"].as_f64();
        assert!(ended > headline["since"].as_f64(), "{calm:#}");
    }
    check_history(&bench, steps);
}

/// Returns whether nothing is left to say.
fn is_over(headline: &Value) -> bool {
    is_calm(headline) && headline["ended"].is_object()
}

/// The text of `drip top` begins with the same headline.
fn check_that_top_shows(bench: &Bench, cause: &str) {
    let deadline = now() + SEEN_WITHIN;
    loop {
        let headline = json(&bench.gateway, "/api/headline")["headline"].clone();
        let top = bench.top();
        // Numbers change from second to second.
        let title = headline["title"].as_str().expect("a title");
        if headline["cause"] == cause && top.contains(title) {
            return;
        }
        assert!(now() < deadline, "{headline:#}\n{top}");
    }
}

/// Without what may come before or after an incident, the history is the list of incidents.
fn check_history(bench: &Bench, steps: &[Step]) {
    let headlines = json(&bench.gateway, "/api/headline");
    let history = headlines["history"].as_array().expect("a list");
    let causes: Vec<_> = history
        .iter()
        .rev()
        .map(|it| it["headline"]["cause"].as_str().expect("a cause"))
        .collect();
    let mut steps = steps.iter().peekable();
    let mut present: Option<&Step> = None;
    for cause in &causes {
        let is_it = |step: &Step| step.rule.cause == Some(*cause);
        if present.is_some_and(is_it) {
            continue;
        }
        if let Some(next) = steps.next_if(|next| is_it(next)) {
            present = Some(next);
            continue;
        }
        let around = [present, steps.peek().copied()];
        let mut around = around.iter().flatten();
        let is_on_the_way = around.any(|it| it.on_the_way.contains(cause));
        assert!(is_on_the_way, "{cause} has no reason: {causes:?}");
    }
    let missing = steps.next().and_then(|it| it.rule.cause);
    assert_eq!(missing, None, "in {causes:?}");
}

#[test]
fn a_saved_file_is_listed_with_what_changed() {
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
