//! Rule of an incident: what must be reported, and what must not.
//!
//! A rule is data. Its patterns are regular expressions that ignore case; most are words with `|`
//! between them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;

use crate::support::drip;

/// Severity of a headline, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    None,
    Fine,
    Warn,
    Bad,
}

impl Severity {
    /// Returns the severity of a headline.
    pub fn of(headline: &Value) -> Self {
        match headline["severity"].as_str() {
            Some("none") => Self::None,
            Some("fine") => Self::Fine,
            Some("warn") => Self::Warn,
            Some("bad") => Self::Bad,
            other => panic!("no severity: {other:?} in {headline:#}"),
        }
    }
}

/// The rule of an incident.
#[derive(Debug)]
pub struct Rule {
    /// Seconds from the begin of the incident until one headline satisfies the whole rule.
    pub within: u64,
    /// Lowest severity of that headline.
    pub severity: Severity,
    /// Highest severity of any headline during the incident.
    pub worst: Severity,
    /// Cause of the headline, in the field that programs read.
    pub cause: Option<&'static str>,
    /// Zone or origin that the headline names, if any.
    pub about: Option<&'static str>,
    /// Patterns that must each be in the title, the evidence or the remedy.
    pub says: &'static [&'static str],
    /// Patterns that must each be in the remedy.
    pub helps: &'static [&'static str],
    /// Patterns that must each be in the title, or in that of another finding.
    pub titles: &'static [&'static str],
    /// Patterns that must be in no headline until all is calm again.
    ///
    /// Title, evidence, remedy and other findings are checked.
    pub never: &'static [&'static str],
    /// Patterns that must be in no remedy during the incident.
    pub never_helps: &'static [&'static str],
    /// A line of standard error that must appear.
    pub log: Option<Line>,
    /// Series of `/metrics` that must all hold in one scrape.
    pub metrics: &'static [Series],
    /// Expected result of `drip check` on the file.
    pub check: Option<Check>,
    /// Seconds after the end of the incident until the severity is fine or none.
    pub calm: u64,
}

/// A rule with the default times: a warning within ten seconds, and calm within five.
pub const RULE: Rule = Rule {
    within: 10,
    severity: Severity::Warn,
    worst: Severity::Bad,
    cause: None,
    about: None,
    says: &[],
    helps: &[],
    titles: &[],
    never: &[],
    never_helps: &[],
    log: None,
    metrics: &[],
    check: None,
    calm: 5,
};

/// A line of standard error: one of these levels, with all these parts.
#[derive(Debug)]
pub struct Line {
    pub levels: &'static [&'static str],
    pub parts: &'static [&'static str],
}

/// The sum of the series of a name that have these labels.
#[derive(Debug)]
pub struct Series {
    pub name: &'static str,
    pub labels: &'static [(&'static str, &'static str)],
    pub is: Is,
}

/// A condition of a series.
#[derive(Clone, Copy, Debug)]
pub enum Is {
    Exactly(f64),
    AtLeast(f64),
    /// The value is higher than at the begin of the incident.
    Higher,
}

impl Is {
    /// Returns whether `now` meets the condition. `before`: value at the begin of the incident.
    pub fn holds(self, before: Option<f64>, now: Option<f64>) -> bool {
        match self {
            Self::Exactly(value) => now.is_some_and(|now| (now - value).abs() < 0.5),
            Self::AtLeast(least) => now.is_some_and(|now| now >= least),
            Self::Higher => now.unwrap_or(0.0) > before.unwrap_or(0.0),
        }
    }
}

/// Expected result of `drip check`: exit status, and a line of standard error with these parts.
#[derive(Debug)]
pub struct Check {
    pub status: i32,
    pub parts: &'static [&'static str],
}

impl Check {
    /// Fails if `drip check` has another result for this file.
    pub fn hold_of(&self, file: &Path) {
        let mut command = drip();
        let output = command.args(["check", "-c"]).arg(file).output();
        let output = output.expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(self.status), "{text}");
        let is_line = |line: &str| self.parts.iter().all(|part| has(line, part));
        let is_there = self.parts.is_empty() || text.lines().any(is_line);
        assert!(is_there, "no line has {:?}: {text}", self.parts);
    }
}

/// Returns whether `text` matches the pattern, ignoring case.
pub fn has(text: &str, pattern: &str) -> bool {
    static COMPILED: Mutex<Option<HashMap<String, Regex>>> = Mutex::new(None);
    let mut compiled = COMPILED.lock().expect("no panic");
    let compiled = compiled.get_or_insert_default();
    if !compiled.contains_key(pattern) {
        let regex = RegexBuilder::new(pattern)
            .case_insensitive(true)
            .unicode(false)
            .build();
        let regex = regex.unwrap_or_else(|error| panic!("{pattern}: {error}"));
        compiled.insert(pattern.to_owned(), regex);
    }
    compiled[pattern].is_match(text.as_bytes())
}

fn part<'a>(headline: &'a Value, name: &str) -> &'a str {
    let text = headline[name].as_str();
    text.unwrap_or_else(|| panic!("no {name} in {headline:#}"))
}

/// Returns title, evidence and remedy.
pub fn text(headline: &Value) -> String {
    ["title", "evidence", "remedy"]
        .map(|name| part(headline, name))
        .join(" ")
}

/// Returns the titles of the other findings.
fn others(headline: &Value) -> String {
    let titles = headline["also"].as_array().into_iter().flatten();
    let titles: Vec<_> = titles.filter_map(Value::as_str).collect();
    titles.join(" ")
}

/// Returns the complete text of a headline: title, evidence, remedy, and other findings.
pub fn whole(headline: &Value) -> String {
    format!("{} {}", text(headline), others(headline))
}

impl Rule {
    /// Returns the parts of the rule that a headline lacks. `more`: further required patterns.
    pub fn lacks(&self, headline: &Value, more: &[String]) -> Vec<String> {
        let (text, remedy) = (text(headline), part(headline, "remedy"));
        let titles = format!("{} {}", part(headline, "title"), others(headline));
        let severity = Severity::of(headline);
        let mut lacks = Vec::new();
        if !(self.severity..=self.worst).contains(&severity) {
            lacks.push(format!("severity is {severity:?}"));
        }
        if self.cause.is_some() && headline["cause"].as_str() != self.cause {
            lacks.push(format!("the cause is not {:?}", self.cause));
        }
        if self.about.is_some() && headline["about"].as_str() != self.about {
            lacks.push(format!("it is not about {:?}", self.about));
        }
        let more = more.iter().map(String::as_str);
        let field_groups = [
            ("text", text.as_str(), self.says),
            ("remedy", remedy, self.helps),
            ("titles", titles.as_str(), self.titles),
        ];
        let patterns = field_groups
            .into_iter()
            .flat_map(|(name, text, all)| all.iter().map(move |pattern| (name, text, *pattern)));
        let more = more.map(|pattern| ("text", text.as_str(), pattern));
        let absent = patterns
            .chain(more)
            .filter(|(_, text, pattern)| !has(text, pattern));
        lacks.extend(absent.map(|(name, _, pattern)| format!("the {name} has no {pattern:?}")));
        lacks
    }

    /// Returns the forbidden parts of a headline. `lasts`: the incident is not over.
    pub fn forbidden(&self, headline: &Value, lasts: bool) -> Vec<String> {
        let (whole, remedy) = (whole(headline), part(headline, "remedy"));
        let severity = Severity::of(headline);
        let mut found = Vec::new();
        if lasts && severity > self.worst {
            found.push(format!("severity is {severity:?}"));
        }
        let never = self.never.iter().filter(|it| has(&whole, it));
        found.extend(never.map(|it| format!("it says {it:?}")));
        let never = self.never_helps.iter();
        let never = never.filter(|it| lasts && has(remedy, it));
        found.extend(never.map(|it| format!("the remedy says {it:?}")));
        found
    }
}
