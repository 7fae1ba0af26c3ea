use std::fmt::Write;
use std::num::NonZeroUsize;
use std::time::Duration;

use config::Origin;
use limit::find::{Criterion, FindReport, Found, Level, Objective, Outcome, Part};
use limit::{Rate, show_duration};

use super::line::{duration, level};
use crate::status::headline::words::whole;

/// What the lines for the file say beside the report.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The name of the origin in the file.
    pub origin: &'a str,
    /// What the file has of it already.
    pub file: InFile,
    /// What was asked for.
    pub objective: &'a Objective,
    /// When it ended, for people: `2026-12-01 14:20`.
    pub when: &'a str,
}

/// Settings of the origin that are in the file, and are replaced by what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFile {
    /// The rate of its gate.
    pub rate: Option<Rate>,
    /// The places of its gate.
    pub max_in_flight: Option<NonZeroUsize>,
    /// `None`: it has no table `backoff`. Else its `slow`.
    pub backoff: Option<Option<Duration>>,
}

impl InFile {
    /// Those of this origin.
    #[must_use]
    pub fn of(origin: &Origin) -> Self {
        Self {
            rate: origin.rate,
            max_in_flight: origin.max_in_flight,
            backoff: origin.backoff.as_ref().map(|it| it.slow),
        }
    }

    /// Whether what was found is a reason to change the file: an upper bound that held says nothing against a higher value.
    fn is_changed_by(&self, found: &Found) -> bool {
        let is_lower = match found.level {
            Level::Rate(rate) => (self.rate).is_some_and(|it| rate.per_second() < it.per_second()),
            Level::Places(places) => {
                (self.max_in_flight).is_some_and(|it| (places as usize) < it.get())
            }
        };
        !(found.is_upper_bound && is_lower)
    }
}

/// A setting that was found, and where it belongs.
struct Line {
    /// The table, after the name of the origin.
    table: &'static str,
    name: &'static str,
    /// As the file has it.
    value: String,
    /// The value in the file, if it is there.
    before: Option<String>,
    why: String,
}

/// Lines for the file with what was found; empty if nothing was.
///
/// A comment before each setting says where it belongs, and what it replaces: a key that is there
/// twice is an error of the file.
#[must_use]
pub fn fragment(facts: &Facts, report: &FindReport) -> String {
    let Some(Outcome::Found(found)) = &report.outcome else {
        return String::new();
    };
    if !facts.file.is_changed_by(found) {
        return String::new();
    }
    let measured = format!(
        "{}, {}, {} requests",
        facts.when,
        duration(report.took),
        whole(report.requests)
    );
    let range = range(found, &measured);
    let (rate_line, places) = match found.level {
        Level::Rate(rate) => {
            let line = Line {
                table: "",
                name: "rate",
                value: format!("\"{rate}\""),
                before: facts.file.rate.map(|it| format!("\"{it}\"")),
                why: range,
            };
            (Some(line), places_of_rate(found))
        }
        Level::Places(places) => (None, Some((places.to_string(), range))),
    };
    let places_line = places.map(|(value, why)| Line {
        table: "",
        name: "max_in_flight",
        value,
        before: facts.file.max_in_flight.map(|it| it.to_string()),
        why,
    });
    let mut text = String::new();
    let lines = rate_line.into_iter().chain(places_line);
    for line in lines.chain(slow_line(facts)) {
        put(&mut text, facts, &line);
    }
    text
}

fn put(text: &mut String, facts: &Facts, line: &Line) {
    let (table, name, value) = (
        format!("[origins.{}{}]", key(facts.origin), line.table),
        line.name,
        &line.value,
    );
    // Writing to a string does not fail.
    let _ = match &line.before {
        Some(before) => writeln!(
            text,
            "# In {table} of the configuration file, replace {name} = {before}:"
        ),
        None if !line.table.is_empty() && facts.file.backoff.is_none() => {
            writeln!(
                text,
                "# At the end of the configuration file, add:\n{table}"
            )
        }
        None => writeln!(text, "# In {table} of the configuration file, add {name}:"),
    };
    let _ = writeln!(text, "{:<24} # {}", format!("{name} = {value}"), line.why);
}

/// The most requests at once at a rate that held, if more of them broke it.
///
/// As many as broke it are no limit that keeps the objective.
fn places_of_rate(it: &Found) -> Option<(String, String)> {
    let at_edge = it.at_edge?;
    let held = it.at_once.max(1);
    let why = format!("the origin had {held} at once at this rate, {at_edge} where it broke");
    (held < at_edge).then(|| (held.to_string(), why))
}

/// The back-off that lowers the places when answers take longer than the objective allows.
fn slow_line(facts: &Facts) -> Option<Line> {
    let slow = slow(facts.objective)?;
    let before = facts.file.backoff.flatten();
    (before != Some(slow)).then(|| Line {
        table: ".backoff",
        name: "slow",
        value: format!("\"{}\"", show_duration(slow)),
        before: before.map(|it| format!("\"{}\"", show_duration(it))),
        why: "back-off: fewer at once while more than 10 % of answers take longer than the \
              objective allows"
            .to_owned(),
    })
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

/// The longest time that the objective gives the head of an answer.
fn slow(objective: &Objective) -> Option<Duration> {
    let bounds = objective.conditions().iter().filter_map(|it| match it {
        Criterion::Percentile {
            part: Part::Head,
            below,
            ..
        } => Some(*below),
        _ => None,
    });
    bounds.max()
}

/// A key of TOML: quoted unless it is a bare one.
fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_bare) {
        return name.to_owned();
    }
    toml::Value::from(name).to_string()
}
