//! Origins that refuse connections, and names that do not resolve.

use std::fs;
use std::thread;
use std::time::Duration;

use super::clients::{STEADY, get, steady};
use super::driver::{Incident, Line, RULE, Rule, Severity, has, pauses, text};
use super::servers::{answer_once, app};
use crate::support::{Gateway, Origin, free_address, now};

const DEPLOY: Rule = Rule {
    within: 4,
    about: Some("app"),
    says: &["refused|refuses", "app"],
    helps: &["hold"],
    never: &["raise", "certificate", "resol"],
    ..RULE
};

#[test]
fn an_origin_that_restarts_is_reported_with_hold_and_one_that_stays_down_is_to_be_started() {
    let address = free_address();
    let listen = || Origin::at(&address.to_string(), answer_once);
    let mut origin = Some(listen());
    let gateway = Gateway::start(&app(&[address], "", ""));
    let _steady = steady(&gateway, STEADY, |_| get("/"));
    let incident = Incident::begin(&gateway, &DEPLOY, || origin = None);
    let began = now();
    let mut incident = incident.saying(regex::escape(&address.to_string()));
    incident.reported();
    // One that stays down is to be started.
    thread::sleep(Duration::from_secs(11).saturating_sub(began.elapsed()));
    loop {
        let headline = incident.latest();
        let remedy = headline["remedy"].as_str().unwrap_or_default();
        if has(remedy, "Start|Repair|port") && !has(remedy, r"^[^.;]*\bhold\b") {
            break;
        }
        let limit = Duration::from_secs(13) + pauses(began);
        assert!(began.elapsed() < limit, "{headline:#}");
    }
    incident.end(|| origin = Some(listen()));
}

const NO_NAME: Rule = Rule {
    within: 6,
    severity: Severity::Bad,
    about: Some("app"),
    says: &[r"no-such\.invalid", "resol|look.?up|DNS"],
    helps: &["DNS|resolver|name"],
    never: &["refused", "hold", "certificate"],
    log: Some(Line {
        levels: &["WARN", "ERROR"],
        parts: &[r"no-such\.invalid"],
    }),
    ..RULE
};

#[test]
fn a_name_that_does_not_resolve_is_reported_with_the_resolver() {
    let origin = "[origins.app]\nservers = [\"http://no-such.invalid:80\"]\n\
                  [[routes]]\npath = \"/\"\norigin = \"app\"\n";
    let gateway = Gateway::start(origin);
    let mut requests = None;
    let begin = || requests = Some(steady(&gateway, Duration::from_millis(200), |_| get("/")));
    let mut incident = Incident::begin(&gateway, &NO_NAME, begin);
    let headline = incident.reported();
    let resolvers = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let mut resolvers = resolvers
        .lines()
        .filter_map(|line| line.strip_prefix("nameserver "));
    if let Some(resolver) = resolvers.next() {
        let text = text(&headline);
        assert!(text.contains(resolver.trim()), "no {resolver} in {text}");
    }
    drop(requests);
    incident.leave();
}
