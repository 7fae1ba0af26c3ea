//! Lines of standard error: their levels, and which incidents they begin and end.

use std::time::Instant;

use serde_json::Value;

use super::rule::{Line, Severity, has};

/// Returns the level of a line: the word after its time.
fn level(line: &str) -> &str {
    line.split_whitespace().nth(1).unwrap_or_default()
}

/// Returns whether a line is above INFO.
pub fn is_loud(line: &str) -> bool {
    ["WARN", "ERROR"].contains(&level(line))
}

impl Line {
    /// Returns whether this line matches.
    pub fn is(&self, line: &str) -> bool {
        let is_level = self.levels.contains(&level(line));
        is_level && self.parts.iter().all(|part| has(line, part))
    }
}

/// Returns the value of a text field.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()
}

/// Returns whether this line reports the begin of an incident of this cause.
pub fn begins(line: &str, cause: &str) -> bool {
    line.contains(" began: ") && field(line, "cause") == Some(cause)
}

/// Returns what is wrong with the lines that report begins.
///
/// A bad headline needs an error and others a warning, each with the remedy. `headlines`: all that
/// were seen.
pub fn began(lines: &[String], headlines: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    for line in lines.iter().filter(|line| line.contains(" began: ")) {
        let of_cause = |it: &&Value| it["cause"].as_str() == field(line, "cause");
        let seen: Vec<_> = headlines.iter().filter(of_cause).collect();
        let is_level = |it: &&Value| match Severity::of(it) {
            Severity::Bad => level(line) == "ERROR",
            Severity::Warn => level(line) == "WARN",
            _ => false,
        };
        // A headline may have passed between two reads.
        if !seen.is_empty() && !seen.iter().any(is_level) {
            wrong.push(format!("the level does not fit its severity: {line}"));
        }
        let has_remedy = |it: &&Value| {
            let remedy = it["remedy"].as_str().unwrap_or_default();
            // Quotes are escaped in a line, and numbers change.
            let first: String = remedy.chars().take(30).collect();
            line.contains(first.split('"').next().unwrap_or_default())
        };
        if !seen.is_empty() && !seen.iter().any(has_remedy) {
            wrong.push(format!("it has no remedy: {line}"));
        }
    }
    wrong
}

/// Returns the lines before `until` that report the end of this cause and subject.
pub fn ended<'a>(
    lines: &'a [(Instant, String)],
    headline: &Value,
    until: Instant,
) -> Vec<&'a String> {
    let is_of_it = |line: &String| {
        field(line, "cause") == headline["cause"].as_str()
            && field(line, "about") == headline["about"].as_str()
    };
    let lines = lines.iter().filter(|(at, _)| *at < until);
    lines
        .map(|(_, line)| line)
        .filter(|line| line.contains(" ended: ") && is_of_it(line))
        .collect()
}
