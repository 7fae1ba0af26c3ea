//! Zones: an abuser, a rate that is too low, floods of keys, and queues.

use std::thread;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use super::clients::{STEADY, crowd, get, steady};
use super::driver::{Incident, RULE, Rule, Severity, has, text};
use super::servers::{Server, limited};
use crate::support::{Gateway, now};

/// Twenty users of 25 requests a second together.
const USERS: usize = 20;

fn user(nth: usize) -> super::clients::Request {
    get(format!("/?key=user{}", nth % USERS))
}

/// A gateway that limits by the argument `key`.
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

#[test]
fn one_abuser_beside_many_users_is_reported_by_its_key() {
    let server = Server::start();
    let gateway = by_key(&server, "5r/s", "burst = 5, nodelay = true");
    let _users = steady(&gateway, STEADY, user);
    let mut abuser = None;
    let mut incident = Incident::begin(&gateway, &ABUSER, || {
        let every = Duration::from_millis(20);
        abuser = Some(steady(&gateway, every, |_| get("/?key=greedy")));
    });
    incident.reported();
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

/// The rate that a headline advises: the one that a button would set, or the first in the remedy that is not the present one.
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
    let file = limited(server.address(), zone, "/", "burst = 20");
    let gateway = Gateway::start(&file);
    // Thirty clients, each with four requests a second.
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
    thread::sleep(Duration::from_secs(30).saturating_sub(began.elapsed()));
    for seen in incident.seen() {
        let headline = seen.headline;
        if let Some(rate) = advised(&headline) {
            let text = text(&headline);
            assert!((4.0..=8.0).contains(&rate), "{rate} in {headline:#}");
            assert!(has(&text, r"\b\d+(\.\d)? (ms|s)\b"), "no wait: {text}");
        }
    }
    drop(clients);
    // Hundreds wait still.
    incident.leave();
}

const FLOOD: Rule = Rule {
    worst: Severity::Warn,
    about: Some("per_key"),
    says: &["new keys"],
    helps: &["new_keys"],
    never_helps: &["max_keys.*new_keys"],
    ..RULE
};

#[test]
fn a_flood_of_invented_keys_is_reported() {
    let server = Server::start();
    let gateway = by_key(&server, "5r/s", "burst = 5, nodelay = true");
    let _users = steady(&gateway, STEADY, user);
    let mut flood = None;
    let mut incident = Incident::begin(&gateway, &FLOOD, || {
        let invented = |nth| get(format!("/?key=invented{nth}"));
        flood = Some(steady(&gateway, Duration::from_millis(5), invented));
    });
    incident.reported();
    incident.end(|| drop(flood));
}

const LONG_QUEUE: Rule = Rule {
    worst: Severity::Warn,
    about: Some("per_key"),
    says: &["wait", "per_key"],
    helps: &["if .*raise .*rate"],
    // The queue lasts for 6 s.
    calm: 15,
    ..RULE
};

#[test]
fn a_long_queue_is_reported_with_the_condition_for_more_rate() {
    let server = Server::start();
    let gateway = by_key(&server, "10r/s", "burst = 200");
    let _users = steady(&gateway, STEADY, user);
    let begin = || crowd(&gateway, 60, |_| get("/?key=patient"));
    let mut incident = Incident::begin(&gateway, &LONG_QUEUE, begin);
    incident.reported();
    // It ends by itself, after 6 s in all.
    incident.end(|| ());
}

#[test]
fn lines_about_rejections_have_short_numbers() {
    let server = Server::start();
    let gateway = by_key(&server, "5r/s", "burst = 5, nodelay = true");
    let greedy = steady(&gateway, Duration::from_millis(13), |_| get("/?key=greedy"));
    let line = gateway.wait_for_line("limiting requests");
    drop(greedy);
    assert!(line.contains(" excess="), "{line}");
    assert!(!has(&line, r"excess=\d+\.\d{3,}"), "{line}");
}
