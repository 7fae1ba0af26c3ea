//! The incidents of `sequence`.

use super::bench::{Bench, FILE, Server};
use super::driver::{RULE, Rule};
use super::traffic::Load;

/// Something goes wrong, is seen, and ends.
pub struct Step {
    pub rule: Rule,
    pub begin: fn(&mut Bench),
    pub end: fn(&mut Bench),
    /// Causes that may come before or after it.
    pub on_the_way: &'static [&'static str],
}

/// As in [`FILE`]: a server that is out is tried again after this many seconds.
const FAIL_TIMEOUT: u64 = 3;

const MORE_RATE: &str = "raise `rate`";

pub const STEPS: &[Step] = &[
    Step {
        rule: Rule {
            cause: Some("leaving"),
            about: Some("hasty"),
            says: &[
                "leave hasty before their turn, after about",
                "Set `max_wait = ",
                "raise `rate` to ",
            ],
            helps: &["Set `max_wait = "],
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
