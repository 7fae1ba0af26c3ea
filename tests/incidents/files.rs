//! Incidents of files that are broken, overridden or changed by mistake, and of full disks.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::clients::{Background, STEADY, get, steady};
use super::driver::{Check, Incident, Is, Line, RULE, Rule, Series, Severity};
use super::servers::{Server, app, rated};
use crate::support::operator::{put, undo};
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

const WRONG_RATE: Rule = Rule {
    within: 6,
    about: Some("per_key"),
    says: &["20r/s -> 20r/m", "per_key", r"\d+ s after"],
    helps: &["take .*back|raise .*rate"],
    never: &["plan", "One client"],
    log: Some(Line {
        levels: &["WARN", "ERROR"],
        parts: &["began: ", "20r/s -> 20r/m"],
    }),
    check: Some(Check {
        status: 0,
        parts: &[],
    }),
    ..RULE
};

/// Starts three clients with ten requests per second each.
fn three(gateway: &Gateway) -> Background {
    let names = ["alice", "bob", "carol"];
    let every = Duration::from_millis(33);
    steady(gateway, every, move |nth| {
        get(format!("/?key={}", names[nth % 3]))
    })
}

/// Returns a file with this rate.
fn with_rate(server: &Server, rate: &str) -> String {
    let rate = format!("rate = \"{rate}\"");
    rated(server, &rate, "burst = 5, nodelay = true")
}

/// The log reports the end, too.
#[test]
fn a_broken_file_is_reported_with_its_line_until_it_is_repaired() {
    let server = Server::start();
    let gateway = Gateway::start(&with_rate(&server, "20r/s"));
    let _clients = three(&gateway);
    let broken = with_rate(&server, "many");
    let text = gateway.site.text(&broken);
    assert_eq!(text.lines().nth(6), Some("rate = \"many\""));
    let mut incident = Incident::begin(&gateway, &BROKEN, || gateway.site.write(&broken));
    incident.reported();
    incident.end(|| gateway.site.write(&with_rate(&server, "20r/s")));
}

#[test]
fn a_rate_changed_by_mistake_is_reported_with_the_change() {
    let server = Server::start();
    let gateway = Gateway::start(&with_rate(&server, "20r/s"));
    let _clients = three(&gateway);
    let begin = || gateway.site.write(&with_rate(&server, "20r/m"));
    let mut incident = Incident::begin(&gateway, &WRONG_RATE, begin);
    incident.reported();
    incident.end(|| gateway.site.write(&with_rate(&server, "20r/s")));
}

const LOST_KEYS: Rule = Rule {
    within: 6,
    says: &[r"gold\.txt", "2 keys (less|fewer)|lost 2"],
    helps: &["restore"],
    log: Some(Line {
        levels: &["WARN"],
        parts: &[r"gold\.txt"],
    }),
    ..RULE
};

const LOST_AND_REJECTED: Rule = Rule {
    about: Some("per_key"),
    says: &[r"after .*gold\.txt|gold\.txt.* after", "2 keys"],
    ..RULE
};

/// Plays the loss of two of three keys of a plan. Without a plan, a key has this rate.
fn lose_keys(rate: &str, rule: &Rule) {
    let server = Server::start();
    let plan = format!("[zones.per_key.plans.gold]\nfile = \"gold.txt\"\nrate = \"1{rate}\"\n");
    let file = with_rate(&server, rate) + &plan;
    let gateway = Gateway::start_beside(&[("gold.txt", "alice\nbob\ncarol\n")], &file);
    let gold = gateway.site.folder().join("gold.txt");
    let write = |keys: &str| fs::write(&gold, keys).expect("a file");
    let _clients = three(&gateway);
    let mut incident = Incident::begin(&gateway, rule, || write("alice\n"));
    incident.reported();
    incident.end(|| write("alice\nbob\ncarol\n"));
}

#[test]
fn a_plan_that_lost_most_keys_is_reported_before_anybody_is_rejected() {
    lose_keys("50r/s", &LOST_KEYS);
}

#[test]
fn a_plan_that_lost_most_keys_is_reported_with_the_rejections() {
    lose_keys("2r/s", &LOST_AND_REJECTED);
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
    let answered = || gateway.requests("/", "200");
    let before = answered();
    eventually("requests are served", || answered() > before + 20);
    incident.end(|| limit(1 << 30));
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

/// Plays an override that is forgotten.
fn forget_override(body: &str, rule: &Rule) {
    const OVERRIDE: &str = "/api/zones/per_key/override";
    let server = Server::start();
    let file = rated(&server, "rate = \"50r/s\"", "burst = 1000");
    let gateway = Gateway::start(&file);
    let _steady = steady(&gateway, STEADY, |nth| {
        get(format!("/?key=user{}", nth % 20))
    });
    let begin = || _ = put(&gateway, OVERRIDE, body);
    let mut incident = Incident::begin(&gateway, rule, begin);
    incident.reported();
    incident.end(|| undo(&gateway, OVERRIDE));
}

#[test]
fn a_pause_that_is_forgotten_is_reported_with_who_set_it() {
    forget_override(r#"{"pause": true, "for": "1h"}"#, &PAUSED);
}

#[test]
fn an_override_that_is_forgotten_is_reported_with_who_set_it() {
    forget_override(r#"{"rate": "20r/s", "for": "1h"}"#, &OVERRIDDEN);
}
