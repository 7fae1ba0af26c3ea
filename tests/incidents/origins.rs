//! Incidents of origins that answer with errors, slowly or not at all, or refuse connections.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use super::clients::{STEADY, crowd, get, steady};
use super::driver::{Incident, Is, Line, RULE, Rule, Series, Severity, has, pauses};
use super::servers::{Mode, Server, answer_once, app};
use crate::support::{Gateway, Metrics, Origin, free_address, now};

/// Seconds after which a server that is out is tried again.
const FAIL_TIMEOUT: u64 = 3;

const ERRORS: Rule = Rule {
    severity: Severity::Bad,
    about: Some("app"),
    says: &["app", "5xx|500"],
    helps: &["own log"],
    never: &["raise", r"take 0 ms"],
    metrics: &[Series {
        name: "drip_origin_responses_total",
        labels: &[("origin", "app"), ("code", "5xx")],
        is: Is::Higher,
    }],
    ..RULE
};

const ONE_DEAD: Rule = Rule {
    worst: Severity::Warn,
    about: Some("app"),
    says: &["1 of 2", "app"],
    helps: &["Repair the server"],
    never: &["app does not answer"],
    calm: RULE.calm + FAIL_TIMEOUT,
    ..RULE
};

const DEAD: Rule = Rule {
    severity: Severity::Bad,
    about: Some("app"),
    says: &["app", "no answer|does not answer|no server"],
    helps: &["Repair|Start"],
    never: &["raise .*rate"],
    calm: RULE.calm + FAIL_TIMEOUT,
    ..RULE
};

/// Two servers of one origin behind a gateway, under steady load.
fn two_servers() -> (Gateway, [Server; 2]) {
    let servers = [Server::start(), Server::start()];
    let addresses = servers.each_ref().map(Server::address);
    let origin = format!("max_fails = 1\nfail_timeout = \"{FAIL_TIMEOUT}s\"");
    (Gateway::start(&app(&addresses, &origin, "")), servers)
}

#[test]
fn an_origin_that_answers_500_is_reported() {
    let (gateway, servers) = two_servers();
    let _steady = steady(&gateway, STEADY, |_| get("/"));
    let be = |mode| servers.iter().for_each(|it| it.be(mode));
    let incident = Incident::begin(&gateway, &ERRORS, || be(Mode::Error));
    let mut incident = incident.waiting_for_end();
    incident.reported();
    incident.end(|| be(Mode::Fine));
}

#[test]
fn a_dead_server_of_two_is_reported_by_its_address() {
    let (gateway, [_alive, dead]) = two_servers();
    let _steady = steady(&gateway, STEADY, |_| get("/"));
    let incident = Incident::begin(&gateway, &ONE_DEAD, || dead.be(Mode::Close));
    let mut incident = incident.saying(regex::escape(&dead.address().to_string()));
    incident.reported();
    incident.end(|| dead.be(Mode::Fine));
}

#[test]
fn an_origin_whose_servers_are_dead_is_reported() {
    let (gateway, servers) = two_servers();
    let _steady = steady(&gateway, STEADY, |_| get("/"));
    let be = |mode| servers.iter().for_each(|it| it.be(mode));
    let mut incident = Incident::begin(&gateway, &DEAD, || be(Mode::Close));
    incident.reported();
    incident.end(|| be(Mode::Fine));
}

/// Pattern of the usual response time in milliseconds, on a busy machine.
const USUAL: &str = r"\b[2-9]\d ms";
const WAITS_FOR: &str = "what .*app.* waits for|own log";

const HANGS: Rule = Rule {
    within: 6,
    severity: Severity::Bad,
    about: Some("app"),
    says: &[
        "app",
        "none .*answered|answered nothing|no answer",
        r"\b([3-9]|\d\d)(\.\d)? s\b",
        r"\b[1-9]\d* requests",
        USUAL,
    ],
    helps: &[WAITS_FOR],
    never: &[
        r"\bfine\b",
        r"\bidle\b",
        "no requests are waiting",
        "raise",
        "max_in_flight",
    ],
    log: Some(Line {
        levels: &["ERROR"],
        parts: &["app"],
    }),
    metrics: &[Series {
        name: OLDEST,
        labels: &[("origin", "app")],
        is: Is::AtLeast(3.0),
    }],
    ..RULE
};

#[test]
fn an_origin_that_hangs_is_reported_with_the_age_and_number_of_its_requests() {
    let server = Server::start();
    // The server's kernel accepts the crowd slowly.
    let patient = "connect_timeout = \"20s\"";
    let gateway = Gateway::start(&app(&[server.address()], patient, ""));
    let _steady = steady(&gateway, STEADY, |_| get("/"));
    let oldest = |metrics: &Metrics| metrics.value(OLDEST, &[("origin", "app")]);
    let mut incident = Incident::begin(&gateway, &HANGS, || server.be(Mode::Hang));
    crowd(&gateway, 600, |_| get("/"));
    incident.reported();
    let before = oldest(&gateway.metrics());
    thread::sleep(Duration::from_secs(2));
    let after = oldest(&gateway.metrics());
    let grew = after.zip(before).map(|(after, before)| after - before);
    assert!(grew >= Some(1.0), "{before:?} {after:?}");
    let seen = incident.seen().into_iter().map(|it| it.headline);
    let seconds: Vec<_> = seen.filter_map(|it| seconds(&it)).collect();
    let (first, last) = (seconds.first(), seconds.last());
    assert!(last > first, "the time does not grow: {seconds:?}");
    incident.end(|| server.be(Mode::Fine));
}

const OLDEST: &str = "drip_origin_oldest_request_seconds";

/// Returns the first number of seconds in the title of a bad headline.
fn seconds(headline: &Value) -> Option<f64> {
    let title = headline["title"].as_str()?;
    let number = Regex::new(r"([0-9]+(\.[0-9]+)?) s").expect("a pattern");
    let seconds = number.captures(title)?[1].parse();
    seconds.ok().filter(|_| headline["severity"] == "bad")
}

const SLOWER: Rule = Rule {
    worst: Severity::Warn,
    about: Some("app"),
    says: &["app", r"\b1\.\d s", USUAL],
    helps: &[WAITS_FOR],
    never: &["raise"],
    ..RULE
};

#[test]
fn an_origin_that_becomes_slow_is_reported_with_what_was_usual() {
    let server = Server::start();
    let gateway = Gateway::start(&app(&[server.address()], "", ""));
    let _steady = steady(&gateway, STEADY, |_| get("/"));
    let mut incident = Incident::begin(&gateway, &SLOWER, || server.be(Mode::Slow));
    incident.reported();
    incident.end(|| server.be(Mode::Fine));
}

const DEPLOY: Rule = Rule {
    within: 4,
    about: Some("app"),
    says: &["refused|refuses", "app"],
    helps: &["hold"],
    never: &["raise", "certificate", "resol"],
    ..RULE
};

fn listen(address: SocketAddr) -> Origin {
    Origin::at(&address.to_string(), answer_once)
}

#[test]
fn an_origin_that_restarts_is_reported_with_hold() {
    let address = free_address();
    let mut origin = Some(listen(address));
    let gateway = Gateway::start(&app(&[address], "", ""));
    let _steady = steady(&gateway, STEADY, |_| get("/"));
    let incident = Incident::begin(&gateway, &DEPLOY, || origin = None);
    let mut incident = incident.saying(regex::escape(&address.to_string()));
    incident.reported();
    incident.end(|| origin = Some(listen(address)));
}

/// The remedy for a server that stays down is to start it.
#[test]
fn an_origin_that_stays_down_is_to_be_started() {
    let address = free_address();
    let gateway = Gateway::start(&app(&[address], "", ""));
    let began = now();
    let _steady = steady(&gateway, STEADY, |_| get("/"));
    let incident = Incident::since(&gateway, &DEPLOY, began);
    let mut incident = incident.saying(regex::escape(&address.to_string()));
    incident.reported();
    loop {
        let headline = incident.latest();
        let remedy = headline["remedy"].as_str().unwrap_or_default();
        if has(remedy, "Start|Repair|port") && !has(remedy, r"^[^.;]*\bhold\b") {
            break;
        }
        let limit = Duration::from_secs(13) + pauses(began);
        assert!(began.elapsed() < limit, "{headline:#}");
    }
    let mut origin = None;
    incident.end(|| origin = Some(listen(address)));
}
