//! Incidents of files that are broken, overridden or changed by mistake, and of full disks.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::clients::{Background, STEADY, get, steady};
use super::driver::{Check, Incident, Is, Line, RULE, Rule, Series, Severity};
use super::servers::{Server, app, rated};
use crate::support::operator::{ask, send};
use crate::support::{Gateway, Site, eventually};

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

#[test]
fn a_broken_file_is_reported_with_its_line_and_a_rate_changed_by_mistake_with_the_change() {
    let server = Server::start();
    let file = |rate: &str| {
        let rate = format!("rate = \"{rate}\"");
        rated(&server, &rate, "burst = 5, nodelay = true")
    };
    let gateway = Gateway::start(&file("20r/s"));
    let _clients = three(&gateway);
    let text = gateway.site.text(&file("many"));
    assert_eq!(text.lines().nth(6), Some("rate = \"many\""));
    for (wrong, rule) in [("many", &BROKEN), ("20r/m", &WRONG_RATE)] {
        let begin = || gateway.site.write(&file(wrong));
        let mut incident = Incident::begin(&gateway, rule, begin);
        incident.reported();
        incident.end(|| gateway.site.write(&file("20r/s")));
    }
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

#[test]
fn a_plan_that_lost_most_keys_is_reported_before_anybody_is_rejected_and_with_the_rejections() {
    let server = Server::start();
    for (rate, rule) in [("50r/s", &LOST_KEYS), ("2r/s", &LOST_AND_REJECTED)] {
        let site = Site::new();
        let gold = site.folder().join("gold.txt");
        let write = |keys: &str| fs::write(&gold, keys).expect("a file");
        write("alice\nbob\ncarol\n");
        let file = rated(
            &server,
            &format!("rate = \"{rate}\""),
            "burst = 5, nodelay = true",
        );
        let plan = format!("[zones.per_key.plans.gold]\nfile = \"gold.txt\"\nrate = \"1{rate}\"\n");
        site.write(&(file + &plan));
        let gateway = Gateway::run(site);
        gateway.wait_until_ready();
        let _clients = three(&gateway);
        let mut incident = Incident::begin(&gateway, rule, || write("alice\n"));
        incident.reported();
        incident.end(|| write("alice\nbob\ncarol\n"));
    }
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

#[test]
fn a_pause_and_an_override_that_are_forgotten_are_reported_with_who_set_them() {
    const OVERRIDE: &str = "/api/zones/per_key/override";
    let server = Server::start();
    let file = rated(&server, "rate = \"50r/s\"", "burst = 1000");
    let gateway = Gateway::start(&file);
    let _steady = steady(&gateway, STEADY, |nth| {
        get(format!("/?key=user{}", nth % 20))
    });
    for (body, rule) in [
        (r#"{"pause": true, "for": "1h"}"#, &PAUSED),
        (r#"{"rate": "20r/s", "for": "1h"}"#, &OVERRIDDEN),
    ] {
        let mut incident = Incident::begin(&gateway, rule, || {
            let answer = send(&gateway, "PUT", OVERRIDE, body);
            assert_eq!(answer.status, 200, "{}", answer.text());
        });
        incident.reported();
        incident.end(|| {
            let answer = ask(&gateway, "DELETE", OVERRIDE, "");
            assert_eq!(answer.status, 200, "{}", answer.text());
        });
    }
}
