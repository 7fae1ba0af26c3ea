//! Incidents of zones: abusers, and a rate that is too low.

use std::thread;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use super::clients::{Background, Request, STEADY, get, steady};
use super::driver::quiet::is_calm;
use super::driver::{Incident, RULE, Rule, Severity, has, text};
use super::servers::{Server, limited};
use crate::support::night::day_or_night;
use crate::support::operator::json;
use crate::support::{Gateway, assert_contains, eventually, now};

/// Twenty users with 25 requests per second in total.
const USERS: usize = 20;

fn user(nth: usize) -> Request {
    get(format!("/?key=user{}", nth % USERS))
}

/// Starts a gateway that limits by the argument `key`.
fn by_key(server: &Server, rate: &str, limit: &str) -> Gateway {
    let zone = format!("key = \"$arg_key\"\nrate = \"{rate}\"");
    Gateway::start(&limited(server.address(), &zone, "/", limit))
}

const ABUSER: Rule = Rule {
    worst: Severity::Warn,
    about: Some("per_key"),
    says: &["greedy", r"\b([5-9]\d|100) %"],
    helps: &["plan"],
    never: &["raise .*rate", "queue is full", r"causes \d %"],
    ..RULE
};

const SECOND: Rule = Rule {
    cause: Some("rejecting"),
    says: &[r"second causes 100 % of the rejections\."],
    helps: &["One client asks for more than its limit"],
    never: &["greedy causes"],
    ..ABUSER
};

/// Starts a gateway for many users, each with 5r/s.
fn many_users(server: &Server) -> Gateway {
    by_key(server, "5r/s", "burst = 5, nodelay = true")
}

/// Starts a client that sends a request with this key each `millis` milliseconds.
fn abuse(gateway: &Gateway, millis: u64, key: &str) -> Background {
    let target = format!("/?key={key}");
    steady(gateway, Duration::from_millis(millis), move |_| {
        get(&*target)
    })
}

#[test]
fn an_abuser_beside_many_users_is_reported_by_its_key() {
    let server = Server::start();
    let gateway = many_users(&server);
    let _users = steady(&gateway, STEADY, user);
    let mut abuser = None;
    let begin = || abuser = Some(abuse(&gateway, 20, "greedy"));
    let mut incident = Incident::begin(&gateway, &ABUSER, begin);
    incident.reported();
    let line = gateway.wait_for_line("limiting requests");
    assert!(has(&line, r"excess=\d+(\.\d{1,2})?( |$)"), "{line}");
    incident.end(|| abuser = None);
}

/// The first abuser has more rejections in the last minute when the second one is reported.
#[test]
fn an_abuser_is_not_reported_for_the_next_one() {
    let server = Server::start();
    let gateway = many_users(&server);
    let _users = steady(&gateway, STEADY, user);
    let first = abuse(&gateway, 10, "greedy");
    gateway.wait_for_line("greedy causes");
    drop(first);
    eventually("all is calm", || {
        is_calm(&json(&gateway, "/api/headline")["headline"])
    });
    let mut incident = Incident::since(&gateway, &SECOND, now());
    let abuser = abuse(&gateway, 40, "second");
    incident.reported();
    thread::sleep(Duration::from_secs(day_or_night(2, 3)));
    let last = text(&incident.latest());
    assert_contains!(last, "second causes");
    incident.end(|| drop(abuser));
}

const LOW_RATE: Rule = Rule {
    within: 12,
    about: Some("per_key"),
    says: &[r"\b30\b|\ball\b", r"\b\d+(\.\d)? (ms|s)\b"],
    helps: &[r"\d+r/s"],
    never: &[r"127\.0\.1\.\d+ causes"],
    ..RULE
};

/// Returns the rate that a headline advises.
///
/// This is the rate that a button would set, or the first new rate in the remedy.
fn advised(headline: &Value) -> Option<f64> {
    let rate = Regex::new("([0-9]+(\\.[0-9]+)?)r/s").expect("a pattern");
    let remedy = headline["remedy"].as_str().unwrap_or_default();
    let texts = headline["advised_rate"].as_str().into_iter();
    let found = texts.chain([remedy]).flat_map(|it| rate.captures_iter(it));
    let mut rates = found.filter_map(|it| it[1].parse::<f64>().ok());
    rates.find(|rate| *rate > 1.0)
}

#[test]
fn a_rate_that_is_too_low_for_all_is_never_advised_below_what_comes() {
    let server = Server::start();
    let zone = "key = \"$remote_addr\"\nrate = \"1r/s\"";
    let file = limited(server.address(), zone, "/", "burst = 14");
    let gateway = Gateway::start(&file);
    // Thirty clients with four requests per second each.
    let client = |nth: usize| {
        let last = u8::try_from(nth % 30 + 1).expect("less than 256");
        get("/").from([127, 0, 1, last])
    };
    let mut clients = None;
    let mut incident = Incident::begin(&gateway, &LOW_RATE, || {
        let every = Duration::from_micros(8_333);
        clients = Some(steady(&gateway, every, client));
    });
    let began = now();
    incident.reported();
    let span = Duration::from_secs(day_or_night(9, 30));
    thread::sleep(span.saturating_sub(began.elapsed()));
    for seen in incident.seen() {
        let headline = seen.headline;
        if let Some(rate) = advised(&headline) {
            let text = text(&headline);
            assert!((4.0..=8.0).contains(&rate), "{rate} in {headline:#}");
            assert!(has(&text, r"\b\d+(\.\d)? (ms|s)\b"), "no wait: {text}");
        }
    }
    drop(clients);
    // Hundreds of requests still wait.
    incident.leave();
}
