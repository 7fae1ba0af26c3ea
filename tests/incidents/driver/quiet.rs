//! Checks that a gateway is calm: no warning in the headline, and no line above INFO.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::rule::Severity;
use super::watch::{Seen, Watch};
use super::{general, lines};
use crate::support::{Gateway, MS, now};

/// Returns whether a headline is neither a warning nor the first one.
pub fn is_calm(headline: &Value) -> bool {
    let title = headline["title"].as_str().unwrap_or_default();
    Severity::of(headline) < Severity::Warn && !title.starts_with("Looking")
}

/// Returns the lines above INFO since `since`.
pub fn loud_lines(gateway: &Gateway, since: Instant) -> Vec<String> {
    let lines = gateway.log_lines().into_iter();
    let lines = lines.filter(|(at, line)| *at >= since && lines::is_loud(line));
    lines.map(|(_, line)| line).collect()
}

/// Fails if any headline is wrong.
pub fn check_none(mut wrong: Vec<String>) {
    let count = wrong.len();
    wrong.truncate(3);
    assert!(wrong.is_empty(), "{count} headlines: {}", wrong.join("\n"));
}

/// Fails if the gateway reports a warning in its headline or a line above INFO within `span`.
pub fn stays_quiet(gateway: &Gateway, span: Duration) {
    let began = now();
    let watch = Watch::start(gateway.site.admin);
    while began.elapsed() < span {
        thread::sleep(100 * MS);
    }
    let seen = watch.seen();
    assert!(seen.len() > 3, "{} headlines", seen.len());
    let mut wrong = Vec::new();
    for Seen {
        headline, stuck, ..
    } in seen
    {
        let found = general::forbidden(&headline, stuck);
        if Severity::of(&headline) >= Severity::Warn || !found.is_empty() {
            wrong.push(format!("{found:#?}\n{headline:#}"));
        }
    }
    check_none(wrong);
    let loud = loud_lines(gateway, began);
    assert!(loud.is_empty(), "{loud:#?}");
}
