//! Files that were changed by mistake: a rate, the keys of a plan, a setting that waits for a restart.

use std::fs;
use std::time::Duration;

use super::clients::{Background, STEADY, get, steady};
use super::driver::{Check, Incident, Line, RULE, Rule, Severity};
use super::servers::{Server, app, rated};
use crate::support::{Gateway, Site};

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

/// Three clients, each with ten requests a second.
fn three(gateway: &Gateway) -> Background {
    let names = ["alice", "bob", "carol"];
    let every = Duration::from_millis(33);
    steady(gateway, every, move |nth| {
        get(format!("/?key={}", names[nth % 3]))
    })
}

#[test]
fn a_rate_that_was_changed_by_mistake_is_reported_with_the_change() {
    let server = Server::start();
    let file = |rate: &str| {
        rated(
            &server,
            &format!("rate = \"{rate}\""),
            "burst = 5, nodelay = true",
        )
    };
    let gateway = Gateway::start(&file("20r/s"));
    let _clients = three(&gateway);
    let begin = || gateway.site.write(&file("20r/m"));
    let mut incident = Incident::begin(&gateway, &WRONG_RATE, begin);
    incident.reported();
    incident.end(|| gateway.site.write(&file("20r/s")));
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

/// A gateway whose plan `gold` has the keys of `gold.txt`, each with a higher rate.
fn with_plan(server: &Server, rate: &str, limit: &str) -> Gateway {
    let site = Site::new();
    let gold = site.folder().join("gold.txt");
    fs::write(gold, "alice\nbob\ncarol\n").expect("a file");
    let file = rated(server, &format!("rate = \"{rate}\""), limit);
    let plan = format!("[zones.per_key.plans.gold]\nfile = \"gold.txt\"\nrate = \"1{rate}\"\n");
    site.write(&(file + &plan));
    let gateway = Gateway::run(site);
    gateway.wait_until_ready();
    gateway
}

fn write_gold(gateway: &Gateway, keys: &str) {
    fs::write(gateway.site.folder().join("gold.txt"), keys).expect("a file");
}

#[test]
fn a_plan_that_lost_most_keys_is_reported_before_anybody_is_rejected() {
    let server = Server::start();
    let gateway = with_plan(&server, "50r/s", "burst = 50, nodelay = true");
    let _clients = three(&gateway);
    let lose = || write_gold(&gateway, "alice\n");
    let mut incident = Incident::begin(&gateway, &LOST_KEYS, lose);
    incident.reported();
    incident.end(|| write_gold(&gateway, "alice\nbob\ncarol\n"));
}

const LOST_AND_REJECTED: Rule = Rule {
    about: Some("per_key"),
    says: &[r"after .*gold\.txt|gold\.txt.* after", "2 keys"],
    ..RULE
};

#[test]
fn rejections_after_a_plan_lost_keys_are_reported_with_the_plan() {
    let server = Server::start();
    let gateway = with_plan(&server, "2r/s", "burst = 5, nodelay = true");
    let _clients = three(&gateway);
    let lose = || write_gold(&gateway, "alice\n");
    let mut incident = Incident::begin(&gateway, &LOST_AND_REJECTED, lose);
    incident.reported();
    incident.end(|| write_gold(&gateway, "alice\nbob\ncarol\n"));
}

const NEEDS_RESTART: Rule = Rule {
    within: 5,
    worst: Severity::Warn,
    says: &[r"server\.workers", "restart"],
    ..RULE
};

#[test]
fn a_setting_that_waits_for_a_restart_is_reported() {
    let server = Server::start();
    let file = |workers: u8| format!("workers = {workers}\n{}", app(&[server.address()], "", ""));
    let gateway = Gateway::start(&file(2));
    let _steady = steady(&gateway, STEADY, |_| get("/"));
    let begin = || gateway.site.write(&file(3));
    let mut incident = Incident::begin(&gateway, &NEEDS_RESTART, begin);
    incident.reported();
    incident.end(|| gateway.site.write(&file(2)));
}
