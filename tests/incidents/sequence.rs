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

use super::bench::{Bench, FILE};
use super::driver::{is_calm, lasts};
use super::scene::{SEEN_WITHIN, follows, wait};
use super::steps::{STEPS, Step};
use crate::support::night::day_or_night;
use crate::support::now;
use crate::support::operator::{ask, json};

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
