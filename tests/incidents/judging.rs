//! Whether the driver judges: headlines and lines that are made up, each wrong in one point.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::driver::{RULE, Rule, Severity, general, lines};
use crate::support::now;

const RULE_OF_TEST: Rule = Rule {
    severity: Severity::Warn,
    worst: Severity::Warn,
    about: Some("app"),
    says: &["no answer|answered nothing", r"\b[3-9] s\b"],
    helps: &["own log"],
    titles: &["gate"],
    never: &["raise .*rate"],
    never_helps: &["max_in_flight"],
    ..RULE
};

fn good() -> Value {
    json!({
        "cause": "origin_hangs", "severity": "warn", "about": "app",
        "title": "App has ANSWERED NOTHING for 4 s", "evidence": "All 20 of `max_in_flight` wait.",
        "remedy": "Read its own log.", "also": ["The gate of app rejects 3.5 a second"]
    })
}

/// The same with another value of a field.
fn with(name: &str, value: impl Into<Value>) -> Value {
    let mut headline = good();
    headline[name] = value.into();
    headline
}

fn lacks(headline: &Value) -> usize {
    RULE_OF_TEST.lacks(headline, &[]).len()
}

fn forbidden(headline: &Value) -> usize {
    RULE_OF_TEST.forbidden(headline, true).len()
}

#[test]
fn a_headline_satisfies_a_rule_in_all_points_or_not() {
    assert_eq!(RULE_OF_TEST.lacks(&good(), &[]), [""; 0]);
    for wrong in [
        with("severity", "fine"),
        with("severity", "bad"),
        with("about", "other"),
        with("about", Value::Null),
        with("title", "app has answered nothing for 2 s"),
        with("title", "app hangs for 4 s"),
        // It stands in the wrong place.
        with("remedy", "Read the log of app. Its own."),
        with("also", json!([])),
    ] {
        assert_eq!(lacks(&wrong), 1, "{wrong:#}");
    }
    let more = ["10.0.0.1".to_owned()];
    assert_eq!(RULE_OF_TEST.lacks(&good(), &more).len(), 1);
}

#[test]
fn what_must_not_be_said_is_found_wherever_it_stands() {
    assert_eq!(forbidden(&good()), 0);
    for wrong in [
        with("title", "Raise its `rate`"),
        with("evidence", "raise the rate"),
        with("remedy", "raise `rate`"),
        with("also", json!(["raise a rate"])),
        with("remedy", "Look at `max_in_flight`."),
        with("severity", "bad"),
    ] {
        assert_eq!(forbidden(&wrong), 1, "{wrong:#}");
    }
    // After the end, only what may never be said.
    let after = |headline: &Value| RULE_OF_TEST.forbidden(headline, false).len();
    assert_eq!(after(&with("severity", "bad")), 0);
    assert_eq!(after(&with("title", "Raise its `rate`")), 1);
}

fn general(headline: &Value, stuck: u64) -> Vec<String> {
    general::forbidden(headline, Duration::from_secs(stuck))
}

#[test]
fn noise_and_reassurance_are_found_in_any_headline() {
    for right in [
        "20 ms",
        "100 ms",
        "0.5 ms",
        "12.25 %",
        "127.0.9.250 and 192.0.2.100.",
        "file.toml:7:12: 1,234",
        "until 2026-11-29T21:22:57.174Z;",
    ] {
        assert_eq!(general(&with("evidence", right), 0), [""; 0]);
    }
    for wrong in [
        with("evidence", "Its slowest answers take 0 ms."),
        with("evidence", "excess=20.40951912"),
        with("evidence", "after 0.123 s"),
        with("evidence", "after 0.123."),
        with("also", json!(["All is well"])),
        with("title", "Everything is fine"),
        with("remedy", "Raise `no_such_setting`."),
        with("remedy", "Raise `server.max_conections`."),
    ] {
        assert_eq!(general(&wrong, 0).len(), 1, "{wrong:#}");
    }
    let right = "Raise `server.max_connections`, `LimitNOFILE` or `net.ipv4.ip_local_port_range`.";
    assert_eq!(general(&with("remedy", right), 0), [""; 0]);
}

#[test]
fn more_for_an_origin_that_answers_nothing_is_found() {
    for wrong in [
        with("title", "No requests are waiting"),
        with("remedy", "Raise its `max_in_flight`."),
        with("remedy", "If the origin can do more, raise `rate`."),
    ] {
        assert_eq!(general(&wrong, 0), [""; 0]);
        assert_eq!(general(&wrong, 5).len(), 1, "{wrong:#}");
    }
}

#[test]
fn a_line_that_begins_an_incident_needs_its_level_and_the_remedy() {
    let line = |level: &str, cause: &str, remedy: &str| {
        format!(
            "2026-01-01T00:00:00Z {level:>5} drip: began: x cause=\"{cause}\" remedy=\"{remedy}\""
        )
    };
    let began = |lines: &[String], severity: &str| {
        lines::began(lines, &[with("severity", severity)], "origin_hangs").len()
    };
    let right = |level| line(level, "origin_hangs", "Read its own log.");
    assert_eq!(began(&[right("WARN")], "warn"), 0);
    assert_eq!(began(&[right("ERROR")], "bad"), 0);
    // A cause that was not seen is not judged.
    let other = line("INFO", "waiting", "");
    assert_eq!(began(&[right("WARN"), other.clone()], "warn"), 0);
    assert_eq!(began(&[right("INFO")], "warn"), 1);
    assert_eq!(began(&[right("WARN")], "bad"), 1);
    assert_eq!(began(&[right("ERROR")], "warn"), 1);
    assert_eq!(began(&[line("WARN", "origin_hangs", "-")], "warn"), 1);
    assert_eq!(began(&[other], "warn"), 1);
}

#[test]
fn an_incident_that_ends_before_its_end_is_found() {
    let of = |about: &str| {
        let line = "2026-01-01T00:00:00Z INFO drip: ended: x cause=\"origin_hangs\"";
        format!("{line} about=\"{about}\"")
    };
    let at: Instant = now();
    let later = at + Duration::from_secs(1);
    let lines = [(at, of("app")), (at, of("other")), (later, of("app"))];
    let ended = |until| lines::ended(&lines, &good(), until).len();
    assert_eq!((ended(at), ended(later)), (0, 1));
    assert_eq!(ended(later + Duration::from_secs(1)), 2);
}
