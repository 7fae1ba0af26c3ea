//! Lines for the configuration file, made from the result of an experiment of `drip find`.
//!
//! An experiment finds the highest *level* of an origin, its rate or its number of permits, at
//! which the *objective*, such as p95<400ms, is kept. It ends at an *upper bound* that the user
//! gives.

use std::fmt::Write;
use std::num::NonZeroUsize;
use std::time::Duration;

use config::Origin;
use limit::find::{Criterion, FindReport, Found, Level, Objective, Outcome, Part};
use limit::{Rate, show_duration};

use super::line::{duration, level};
use crate::status::headline::words::whole;

/// Facts that the lines need and the report does not contain.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Name of the origin in the file.
    pub origin: &'a str,
    /// Current settings of the origin in the file.
    pub file: ConfiguredLimits,
    /// Requested objective.
    pub objective: &'a Objective,
    /// End of the experiment, for people: `2026-12-01 14:20`.
    pub when: &'a str,
}

/// Settings of the origin in the file that the result replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConfiguredLimits {
    /// Rate of the gate.
    pub rate: Option<Rate>,
    /// Maximum number of requests in flight at the gate.
    pub max_in_flight: Option<NonZeroUsize>,
    /// `slow` of the table `backoff`; `None`: the origin has no such table.
    pub backoff: Option<Option<Duration>>,
}

impl ConfiguredLimits {
    /// Reads the settings of an origin.
    pub fn of(origin: &Origin) -> Self {
        Self {
            rate: origin.rate,
            max_in_flight: origin.max_in_flight,
            backoff: origin.backoff.as_ref().map(|it| it.slow),
        }
    }

    /// Returns whether the result is a reason to change the file.
    ///
    /// It is none if the file has a higher value than an upper bound that held.
    fn is_changed_by(&self, found: &Found) -> bool {
        let is_lower = match found.level {
            Level::Rate(rate) => (self.rate).is_some_and(|it| rate.per_second() < it.per_second()),
            Level::Permits(permits) => {
                (self.max_in_flight).is_some_and(|it| (permits as usize) < it.get())
            }
        };
        !(found.is_upper_bound && is_lower)
    }
}

/// Builds lines for the file from the result; empty if the result needs no change.
///
/// A comment before each setting says where the setting belongs, and which setting it replaces: a
/// duplicate key is an error of the file.
pub fn fragment(facts: &Facts, report: &FindReport) -> String {
    let Some(Outcome::Found(found)) = &report.outcome else {
        return String::new();
    };
    if !facts.file.is_changed_by(found) {
        return String::new();
    }
    let (took, requests) = (duration(report.took), whole(report.requests));
    let measured = format!("{}, {took}, {requests} requests", facts.when);
    let range = describe_range(found, &measured);
    let mut lines = Lines::default();
    let file = &facts.file;
    let permits_in_file = file.max_in_flight.map(|it| it.to_string());
    let table = format!("[origins.{}]", toml_key(facts.origin));
    match found.level {
        Level::Rate(rate) => {
            let before = file.rate.map(|it| format!("\"{it}\""));
            lines.add(&table, ("rate", &format!("\"{rate}\"")), before, &range);
            // Requests in flight while the objective was kept, and (`edge`) when it broke. A limit
            // equal to the latter would let it break again.
            let held = found.at_once.max(1);
            if let Some(edge) = found.at_edge.filter(|edge| held < *edge) {
                let why =
                    format!("the origin had {held} at once at this rate, {edge} where it broke");
                let permits = ("max_in_flight", &*held.to_string());
                lines.add(&table, permits, permits_in_file, &why);
            }
        }
        Level::Permits(permits) => {
            let permits = ("max_in_flight", &*permits.to_string());
            lines.add(&table, permits, permits_in_file, &range);
        }
    }
    // Back-off lowers the permits when responses take longer than the objective allows.
    let in_file = file.backoff.flatten();
    let slow = max_head_duration(facts.objective);
    if let Some(slow) = slow.filter(|slow| in_file != Some(*slow)) {
        let quoted = |duration| format!("\"{}\"", show_duration(duration));
        let table = format!("[origins.{}.backoff]", toml_key(facts.origin));
        let why = "back-off: fewer at once while more than 10 % of answers take longer than the objective allows";
        if file.backoff.is_none() {
            lines.begin(&table);
            lines.put("slow", &quoted(slow), why);
        } else {
            lines.add(&table, ("slow", &quoted(slow)), in_file.map(quoted), why);
        }
    }
    lines.0
}

/// Text of lines of a configuration file.
#[derive(Default)]
struct Lines(String);

impl Lines {
    /// Adds a setting of an existing table. `before`: the setting that it replaces.
    fn add(&mut self, table: &str, (name, value): (&str, &str), before: Option<String>, why: &str) {
        let what = before.map_or(format!("add {name}"), |before| {
            format!("replace {name} = {before}")
        });
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# In {table} of the configuration file, {what}:");
        self.put(name, value, why);
    }

    /// Begins a new table.
    fn begin(&mut self, table: &str) {
        let _ = writeln!(
            self.0,
            "# At the end of the configuration file, add:\n{table}"
        );
    }

    /// Writes a comment and a setting.
    fn put(&mut self, name: &str, value: &str, why: &str) {
        let _ = writeln!(self.0, "{:<24} # {why}", format!("{name} = {value}"));
    }
}

/// Describes the found limit of the origin, and how it was measured.
fn describe_range(found: &Found, measured: &str) -> String {
    if found.is_upper_bound {
        // No level above it was tried.
        return format!("at least: the upper bound held, {measured}");
    }
    match (found.low, found.high) {
        (Level::Permits(low), Level::Permits(high)) => format!("{low} to {high}, {measured}"),
        (low, high) => format!("{} to {}, {measured}", level(low), level(high)),
    }
}

/// Longest duration that the objective allows until the head of a response.
fn max_head_duration(objective: &Objective) -> Option<Duration> {
    let conditions = objective.conditions().iter();
    let bounds = conditions.filter_map(|condition| match condition {
        Criterion::Percentile {
            part: Part::Head,
            below,
            ..
        } => Some(*below),
        _ => None,
    });
    bounds.max()
}

/// Formats a TOML key: quoted unless it is a bare one.
fn toml_key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_bare) {
        return name.to_owned();
    }
    toml::Value::from(name).to_string()
}
