use std::fmt::Write;

use super::line::{duration, level};
use crate::limit::find::{Criterion, FindReport, Found, Level, Objective, Outcome, Part};
use crate::limit::show_duration;

/// What the lines for the file say beside the report.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The name of the origin in the file.
    pub origin: &'a str,
    /// What was asked for.
    pub objective: &'a Objective,
    /// When it ended, for people: `2026-12-01 14:20`.
    pub when: &'a str,
}

/// Lines for the file with what was found; empty if nothing was.
#[must_use]
pub fn fragment(facts: &Facts, report: &FindReport) -> String {
    let found: Vec<&Found> = report.outcomes.iter().filter_map(found).collect();
    let rate = found.iter().find(|it| matches!(it.level, Level::Rate(_)));
    let places = found.iter().find(|it| matches!(it.level, Level::Places(_)));
    let mut lines = vec![];
    let measured = format!(
        "{}, {}, {} requests",
        facts.when,
        duration(report.took),
        grouped(report.requests)
    );
    if let Some(it) = rate {
        lines.push((format!("rate = \"{}\"", it.level), range(it, &measured)));
    }
    if let Some(it) = places {
        lines.push((
            format!("max_in_flight = {}", it.level),
            range(it, &measured),
        ));
    } else if let Some(at_edge) = rate.and_then(|it| it.at_edge) {
        let here = rate.map_or(0, |it| it.at_once);
        let places = at_edge.max(here).max(1);
        let remark = format!("the origin had {here} at once here, {at_edge} at the edge");
        lines.push((format!("max_in_flight = {places}"), remark));
    }
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("[origins.{}]\n", key(facts.origin));
    for (setting, remark) in lines {
        let _ = writeln!(text, "{setting:<24} # {remark}");
    }
    if let Some(slow) = slow(facts.objective) {
        let _ = writeln!(
            text,
            "[origins.{}.backoff]\nslow = \"{slow}\"",
            key(facts.origin)
        );
    }
    text
}

/// Where the end of the origin is, and what it was measured from.
fn range(it: &Found, measured: &str) -> String {
    if it.is_upper_bound {
        // Nothing above it was tried.
        return format!("at least: the upper bound held, {measured}");
    }
    match (it.low, it.high) {
        (Level::Places(low), Level::Places(high)) => format!("{low} to {high}, {measured}"),
        (low, high) => format!("{} to {}, {measured}", level(low), level(high)),
    }
}

fn found(outcome: &Outcome) -> Option<&Found> {
    match outcome {
        Outcome::Found(found) => Some(found),
        Outcome::AtLeast(_)
        | Outcome::HeldBack { .. }
        | Outcome::Unknown(_)
        | Outcome::Aborted(..) => None,
    }
}

/// The longest time that the objective gives the head of an answer.
fn slow(objective: &Objective) -> Option<String> {
    let bounds = objective.conditions().iter().filter_map(|it| match it {
        Criterion::Percentile {
            part: Part::Head,
            below,
            ..
        } => Some(*below),
        _ => None,
    });
    bounds.max().map(show_duration)
}

/// A key of TOML: quoted unless it is a bare one.
fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_bare) {
        return name.to_owned();
    }
    toml::Value::from(name).to_string()
}

/// `41,200`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
