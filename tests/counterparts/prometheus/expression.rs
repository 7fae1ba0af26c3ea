//! Parses `PromQL` far enough to find the metrics and labels in an expression.

use regex::{Captures, Regex};

/// Metrics and labels in an expression.
#[derive(Debug, Default)]
pub struct Named {
    pub metrics: Vec<Metric>,
    /// Labels in `by`, `on` and similar clauses.
    pub grouping: Vec<String>,
}

#[derive(Debug)]
pub struct Metric {
    pub name: String,
    /// Label, operator and value.
    pub matchers: Vec<(String, String, String)>,
}

const NAME: &str = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const OPERATORS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];

/// Returns the names in `expression`. Its variables are Grafana's, or already replaced.
pub fn named(expression: &str) -> Named {
    let mut named = Named::default();
    // Removes all matches of a pattern from the text.
    let take = |text: &str, pattern: &str, note: &mut dyn FnMut(&Captures)| {
        let pattern = Regex::new(pattern).expect("a pattern");
        let taken = pattern.replace_all(text, |found: &Captures| {
            note(found);
            " "
        });
        taken.into_owned()
    };
    let by = r"(?-u:\b)(?:by|without|on|ignoring|group_left|group_right)[ \n]*\(([^)]*)\)";
    let text = take(expression, by, &mut |found| {
        let labels = found[1].split(',').map(str::trim);
        let labels = labels.filter(|label| !label.is_empty());
        named.grouping.extend(labels.map(str::to_owned));
    });
    let matcher = Regex::new(&format!("({NAME}) *(=~|!~|!=|=) *\"([^\"]*)\"")).expect("a pattern");
    let text = take(&text, &format!(r"({NAME})\{{([^}}]*)\}}"), &mut |found| {
        let matchers = matcher.captures_iter(&found[2]);
        let matchers = matchers.map(|it| it.extract().1.map(str::to_owned).into());
        named.metrics.push(Metric {
            name: found[1].to_owned(),
            matchers: matchers.collect(),
        });
    });
    let numbers = r"\[[^\]]*\]|(?-u:\b)[0-9][a-zA-Z0-9.]*";
    let text = take(&text, numbers, &mut |_| ());
    take(&text, &format!(r"({NAME})[ \n]*(\()?"), &mut |found| {
        let is_call = found.get(2).is_some();
        if !is_call && !OPERATORS.contains(&&found[1]) {
            named.metrics.push(Metric {
                name: found[1].to_owned(),
                matchers: Vec::new(),
            });
        }
    });
    named
}
