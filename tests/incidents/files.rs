//! Files that are broken or overridden, and disks that are full.

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::clients::{STEADY, get, steady};
use super::driver::{Check, Incident, Is, Line, RULE, Rule, Series, Severity};
use super::servers::{Server, app, rated};
use crate::support::operator::{ask, send};
use crate::support::{Gateway, eventually};

const BROKEN: Rule = Rule {
    within: 5,
    worst: Severity::Warn,
    says: &["line 7|:7:", "previous settings"],
    helps: &["Correct the file"],
    never: &["restart"],
    log: Some(Line {
        levels: &["ERROR"],
        parts: &[":7:"],
    }),
    metrics: &[Series {
        name: "drip_config_last_reload_successful",
        labels: &[],
        is: Is::Exactly(0.0),
    }],
    check: Some(Check {
        status: 1,
        parts: &[":7:"],
    }),
    ..RULE
};

#[test]
fn a_broken_file_is_reported_with_its_line() {
    let server = Server::start();
    let file = |rate: &str| rated(&server, &format!("rate = \"{rate}\""), "burst = 5");
    let gateway = Gateway::start(&file("50r/s"));
    let _steady = steady(&gateway, STEADY, |_| get("/?key=a"));
    let text = gateway.site.text(&file("many"));
    assert_eq!(text.lines().nth(6), Some("rate = \"many\""));
    let begin = || gateway.site.write(&file("many"));
    let mut incident = Incident::begin(&gateway, &BROKEN, begin);
    incident.reported();
    incident.end(|| gateway.site.write(&file("50r/s")));
}

const PAUSED: Rule = Rule {
    within: 5,
    about: Some("per_key"),
    says: &[r"127\.0\.0\.1", "until", "paused"],
    helps: &["Undo|Resume"],
    never: &["raise"],
    ..RULE
};

const OVERRIDDEN: Rule = Rule {
    worst: Severity::Warn,
    says: &[r"127\.0\.0\.1", "until", "20r/s"],
    ..PAUSED
};

const OVERRIDE: &str = "/api/zones/per_key/override";

fn put(gateway: &Gateway, body: &str) {
    let answer = send(gateway, "PUT", OVERRIDE, body);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn undo(gateway: &Gateway) {
    let answer = ask(gateway, "DELETE", OVERRIDE, "");
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn a_pause_and_an_override_that_are_forgotten_are_reported_with_who_set_them() {
    let server = Server::start();
    let file = rated(&server, "rate = \"50r/s\"", "burst = 1000");
    let gateway = Gateway::start(&file);
    let _steady = steady(&gateway, STEADY, |nth| {
        get(format!("/?key=user{}", nth % 20))
    });
    let pause = || put(&gateway, r#"{"pause": true, "for": "1h"}"#);
    let mut incident = Incident::begin(&gateway, &PAUSED, pause);
    incident.reported();
    incident.end(|| undo(&gateway));
    let slower = || put(&gateway, r#"{"rate": "20r/s", "for": "1h"}"#);
    let mut incident = Incident::begin(&gateway, &OVERRIDDEN, slower);
    incident.reported();
    incident.end(|| undo(&gateway));
}

const FULL_DISK: Rule = Rule {
    worst: Severity::Warn,
    says: &[
        "access log",
        "No space left|File too large",
        r"\b\d+ lines?",
    ],
    helps: &["room|disk|LimitFSIZE"],
    never: &[r"\bapp\b"],
    metrics: &[Series {
        name: "drip_log_dropped_total",
        labels: &[],
        is: Is::Higher,
    }],
    ..RULE
};

#[test]
fn a_log_that_may_not_grow_is_reported_while_requests_are_served() {
    let server = Server::start();
    let log = "[log]\naccess = \"access.log\"\n";
    let gateway = Gateway::start(&app(&[server.address()], "", log));
    let _steady = steady(&gateway, STEADY, |_| get("/"));
    let id = i32::try_from(gateway.id()).ok().and_then(Pid::from_raw);
    let limit = |bytes| {
        let limit = Rlimit {
            current: Some(bytes),
            maximum: Some(1 << 30),
        };
        prlimit(id, Resource::Fsize, limit).expect("a limit");
    };
    let mut incident = Incident::begin(&gateway, &FULL_DISK, || limit(500));
    incident.reported();
    let answered = || {
        let labels = [("route", "/"), ("code", "200")];
        gateway.metrics().count("drip_requests_total", &labels)
    };
    let before = answered();
    eventually("requests are served", || answered() > before + 20);
    incident.end(|| limit(1 << 30));
}
