//! Parses `/metrics`, and checks the names in expressions against it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::prometheus::expression::{Metric, named};

/// Labels that Prometheus adds to everything it scrapes.
const OF_TARGETS: [&str; 2] = ["job", "instance"];

/// Metrics that Prometheus makes itself.
const OF_PROMETHEUS: [&str; 1] = ["up"];

/// Labels of each series of each metric.
pub struct Exposition(BTreeMap<String, Vec<BTreeMap<String, String>>>);

impl Exposition {
    pub fn read(text: &str) -> Self {
        let mut metrics = BTreeMap::<_, Vec<_>>::new();
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let (name, labels) = series(line).unwrap_or_else(|| panic!("{line}"));
            metrics.entry(name).or_default().push(labels);
        }
        Self(metrics)
    }

    /// Returns the names in `expression` that do not exist: metrics, labels and label values.
    pub fn problems(&self, expression: &str) -> Vec<String> {
        let (names, mut problems) = (named(expression), Vec::new());
        for metric in &names.metrics {
            self.check(metric, &mut problems);
        }
        for label in &names.grouping {
            if !names
                .metrics
                .iter()
                .any(|metric| self.has_label(&metric.name, label))
            {
                problems.push(format!("no metric of the expression has a label {label}"));
            }
        }
        problems
    }

    fn check(&self, metric: &Metric, problems: &mut Vec<String>) {
        let name = &metric.name;
        if !self.is_known(name) {
            problems.push(format!("no metric {name}"));
            return;
        }
        for (label, operator, value) in &metric.matchers {
            if OF_TARGETS.contains(&label.as_str()) {
                continue;
            }
            if !self.has_label(name, label) {
                problems.push(format!("{name} has no label {label}"));
            } else if let Some(series) = self.0.get(name) {
                let values = value.split(if operator.contains('~') { '|' } else { '\0' });
                // An empty value means series without the label.
                let values = values.filter(|value| !value.is_empty() && !value.starts_with('$'));
                for value in values {
                    let has = |series: &BTreeMap<String, String>| {
                        series.get(label).is_some_and(|found| fits(found, value))
                    };
                    if !series.iter().any(has) {
                        problems.push(format!("{name} has no {label}={value:?}"));
                    }
                }
            }
        }
    }

    fn is_known(&self, name: &str) -> bool {
        self.0.contains_key(name) || OF_PROMETHEUS.contains(&name)
    }

    fn has_label(&self, name: &str, label: &str) -> bool {
        let here = self.0.get(name).into_iter().flatten();
        OF_TARGETS.contains(&label) || here.into_iter().any(|series| series.contains_key(label))
    }
}

/// Returns whether `found` is `value`, or another value of the same class.
///
/// Of a class such as `5..`, there may be none yet: another value of the same length fits.
fn fits(found: &str, value: &str) -> bool {
    found == value || value.ends_with("..") && found.len() == value.len()
}

/// Parses the name and labels of a line such as `a{b="c"} 1`.
fn series(line: &str) -> Option<(String, BTreeMap<String, String>)> {
    static LABEL: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"([a-z_]+)="((?:[^"\\]|\\.)*)""#).expect("a pattern"));
    let name = &line[..line.find(['{', ' '])?];
    let labels = LABEL.captures_iter(line).map(|found| {
        let (_, [label, value]) = found.extract();
        let value = value
            .replace("\\\"", "\"")
            .replace("\\n", "\n")
            .replace(r"\\", r"\");
        (label.to_owned(), value)
    });
    Some((name.to_owned(), labels.collect()))
}

#[test]
fn a_renamed_metric_label_or_value_is_a_problem() {
    let exposition =
        Exposition::read("# HELP a b\na{zone=\"z\\\"}\",s=\"x\"} 1\nb 2\nd{code=\"200\"} 1\n");
    let problems = |expression| exposition.problems(expression);
    let found = problems(r#"sum by (zone) (rate(a{zone="$zone", s=~"x", job="j"}[5m])) / b"#);
    assert_eq!(found, [""; 0]);
    assert_eq!(problems("a + c"), ["no metric c"]);
    assert_eq!(problems(r#"a{z="x"}"#), ["a has no label z"]);
    assert_eq!(problems(r#"d{code=~"5.."}"#), [""; 0]);
    assert_eq!(problems(r#"d{code=~"5."}"#), [r#"d has no code="5.""#]);
    assert_eq!(problems(r#"a{s=~"x|y"}"#), [r#"a has no s="y""#]);
    let found = problems("sum by (key) (a)");
    assert_eq!(found, ["no metric of the expression has a label key"]);
}
