//! A parser for as much of `PromQL` as needed to find the metrics and labels in an expression.

/// The metrics and labels that an expression names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Named {
    pub metrics: Vec<Metric>,
    /// Labels in `by`, `on` and their like.
    pub grouping: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Metric {
    pub name: String,
    /// Label, operator and value.
    pub matchers: Vec<(String, String, String)>,
}

const GROUPING: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];
const OPERATORS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];

/// The names in `expression`. Its variables are Grafana's, or already replaced.
pub fn named(expression: &str) -> Named {
    let mut named = Named::default();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        if first == '[' {
            rest = &rest[rest.find(']').expect("the end of a range")..];
        } else if first.is_ascii_digit() {
            // A number, or a duration.
            rest =
                rest.trim_start_matches(|next: char| next.is_ascii_alphanumeric() || next == '.');
        } else if is_of_name(first) {
            let name;
            (name, rest) = take_name(rest);
            let after = rest.trim_start();
            if GROUPING.contains(&name) {
                let list = after.strip_prefix('(').expect("labels");
                let (list, end) = list.split_once(')').expect("the end of the labels");
                let labels = list
                    .split(',')
                    .map(str::trim)
                    .filter(|label| !label.is_empty());
                named.grouping.extend(labels.map(str::to_owned));
                rest = end;
            } else if let Some(inner) = after.strip_prefix('{') {
                let matchers;
                (matchers, rest) = take_matchers(inner);
                named.metrics.push(Metric {
                    name: name.to_owned(),
                    matchers,
                });
            } else if !is_call(after) && !OPERATORS.contains(&name) {
                let name = name.to_owned();
                named.metrics.push(Metric {
                    name,
                    matchers: Vec::new(),
                });
            }
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    named
}

/// Whether a name before this is that of a function or an aggregation.
fn is_call(after: &str) -> bool {
    after.starts_with('(') || ["by", "without"].contains(&take_name(after).0)
}

fn is_of_name(next: char) -> bool {
    next.is_ascii_alphanumeric() || next == '_' || next == ':'
}

fn take_name(text: &str) -> (&str, &str) {
    text.split_at(text.find(|next| !is_of_name(next)).unwrap_or(text.len()))
}

/// From after the opening brace to after the closing one.
fn take_matchers(mut text: &str) -> (Vec<(String, String, String)>, &str) {
    let mut matchers = Vec::new();
    loop {
        text = text.trim_start_matches([' ', ',', '\n']);
        if let Some(rest) = text.strip_prefix('}') {
            return (matchers, rest);
        }
        let (label, rest) = take_name(text);
        let (operator, rest) = rest.split_once('"').expect("a value");
        let (value, rest) = rest.split_once('"').expect("the end of the value");
        assert!(!label.is_empty() && !value.contains('\\'), "{text}");
        matchers.push((
            label.to_owned(),
            operator.trim().to_owned(),
            value.to_owned(),
        ));
        text = rest;
    }
}

#[test]
fn names_are_found_in_an_expression() {
    let found = named(
        r#"histogram_quantile(0.99, sum by (le, zone) (rate(a_bucket{zone="z", s=~"x|y"}[$__rate_interval])))
           > bool 1e3 and on (job) b offset 5m"#,
    );
    let matcher = |label: &str, operator: &str, value: &str| {
        (label.to_owned(), operator.to_owned(), value.to_owned())
    };
    let metrics = vec![
        Metric {
            name: "a_bucket".to_owned(),
            matchers: vec![matcher("zone", "=", "z"), matcher("s", "=~", "x|y")],
        },
        Metric {
            name: "b".to_owned(),
            matchers: Vec::new(),
        },
    ];
    let grouping = ["le", "zone", "job"].map(str::to_owned).to_vec();
    assert_eq!(found, Named { metrics, grouping });
}
