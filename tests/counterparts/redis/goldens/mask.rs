//! Masks values that vary between runs: times, measured durations, addresses, the version.

use std::collections::BTreeMap;

/// Fields with fractions that are not masked, because they are settings or counts.
const EXACT: [&str; 5] = [
    "\"rate\":",
    "\"share\":",
    "\"file\":",
    "\"now\":",
    "drip_zone_rate{",
];

/// Beginnings of lines whose values depend on the machine or the moment.
const VARYING: [&str; 3] = ["\"seq\":", "process_", "drip_buffers{"];

/// Masks each line, after replacing the text of each of `names`.
pub fn text(text: &str, names: &[(String, &str)]) -> String {
    let version = (env!("CARGO_PKG_VERSION").to_owned(), "VERSION");
    let mut text = text.to_owned();
    for (from, to) in names.iter().chain([&version]) {
        text = text.replace(from, to);
    }
    let lines = text.lines().map(|line| {
        let begins = |with: &&str| line.trim_start().starts_with(*with);
        if EXACT.iter().any(begins) || line.starts_with('#') {
            line.to_owned()
        } else if VARYING.iter().any(begins) {
            let (name, _) = line.rsplit_once(' ').unwrap_or((line, ""));
            format!("{name} #")
        } else {
            numbers(line)
        }
    });
    lines.map(|line| line + "\n").collect()
}

/// Masks times, and numbers with a fraction or before a unit of time.
fn numbers(line: &str) -> String {
    let (mut masked, mut rest) = (String::new(), line);
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let in_word = rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        masked += &rest[..at];
        rest = &rest[at..];
        let is_part = |c: char| c.is_ascii_digit() || ".:-TZ".contains(c);
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let mut token = rest[..end].trim_end_matches(['.', ':', '-']);
        rest = &rest[token.len()..];
        if in_word {
            masked += token;
            continue;
        }
        // A small number, such as 5e-6.
        if let Some(exponent) = rest.strip_prefix("e-") {
            let digits = exponent.trim_start_matches(|c: char| c.is_ascii_digit());
            (token, rest) = ("0.0", digits);
        }
        let is_time = token.matches(':').count() > 1 || token.matches('-').count() > 1;
        let has_fraction = token.contains('.') && token.parse::<f64>().is_ok();
        let unit = [" ms", " s"]
            .into_iter()
            .find(|unit| rest.starts_with(unit));
        let unit = unit.filter(|unit| !rest[unit.len()..].starts_with(char::is_alphabetic));
        match unit {
            Some(unit) => {
                masked += "# s";
                rest = &rest[unit.len()..];
            }
            None if is_time => masked += "TIME",
            None if has_fraction => masked += "#",
            None => masked += token,
        }
    }
    masked + rest
}

/// Returns JSON with one field per line, in the order in which it was sent.
pub fn json(text: &str) -> String {
    let (mut pretty, mut depth, mut in_text, mut escaped) = (String::new(), 0, false, false);
    let mut chars = text.trim_end().chars().peekable();
    while let Some(c) = chars.next() {
        let line = |depth: usize| format!("\n{}", "  ".repeat(depth));
        match c {
            _ if in_text => {
                in_text = escaped || c != '"';
                escaped = !escaped && c == '\\';
                pretty.push(c);
            }
            '{' | '[' => {
                pretty.push(c);
                if let Some(end) = chars.next_if(|next| "}]".contains(*next)) {
                    pretty.push(end);
                } else {
                    depth += 1;
                    pretty += &line(depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                pretty += &line(depth);
                pretty.push(c);
            }
            ',' => {
                pretty.push(c);
                pretty += &line(depth);
            }
            ':' => pretty += ": ",
            _ => {
                in_text = c == '"';
                pretty.push(c);
            }
        }
    }
    pretty + "\n"
}

/// Sorts metrics, because the recorder does not. The buckets of a histogram become one line.
///
/// Which of its buckets count a request depends on measured durations.
pub fn metrics(text: &str) -> String {
    let mut families = BTreeMap::<&str, Vec<String>>::new();
    let mut edges = BTreeMap::<String, Vec<&str>>::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let name = line
            .trim_start_matches("# HELP ")
            .trim_start_matches("# TYPE ");
        let name = name.split([' ', '{']).next().unwrap_or_default();
        if let Some((series, edge)) = line
            .split_once("le=\"")
            .filter(|_| name.ends_with("_bucket"))
        {
            let edge = edge.split('"').next().unwrap_or_default();
            edges.entry(series.to_owned()).or_default().push(edge);
        } else {
            families.entry(name).or_default().push(line.to_owned());
        }
    }
    let mut lines: Vec<_> = families.into_values().collect();
    for family in &mut lines {
        family.sort();
    }
    let mut lines = lines.concat();
    let mut by_edges = BTreeMap::<Vec<&str>, Vec<String>>::new();
    for (series, edges) in edges {
        by_edges.entry(edges).or_default().push(series);
    }
    for (edges, series) in by_edges {
        lines.push(format!("# buckets: {}", edges.join(" ")));
        lines.extend(series.into_iter().map(|series| series + "le}"));
    }
    lines.join("\n") + "\n"
}

/// Separates columns by two blanks, because their widths depend on masked values.
pub fn columns(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let columns = line.split("  ").map(str::trim);
        let columns: Vec<_> = columns.filter(|column| !column.is_empty()).collect();
        columns.join("  ") + "\n"
    });
    lines.collect()
}

#[test]
fn what_varies_is_masked() {
    for (line, expected) in [
        ("\"p99\": 5e-6,", "\"p99\": #,"),
        ("\"at\": \"2026-11-26T00:40:40.464Z\",", "\"at\": \"TIME\","),
        ("\"share\": 0.25", "\"share\": 0.25"),
        (
            "in the last 3 s, p95 of 12 requests: 250 ms",
            "in the last # s, p95 of 12 requests: # s",
        ),
        ("app  5xx  2.90s  10r/s", "app  5xx  #s  10r/s"),
        ("\"by\": \"127.0.0.1\"", "\"by\": \"127.0.0.1\""),
    ] {
        assert_eq!(text(line, &[]), format!("{expected}\n"));
    }
    let pretty = "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": \"\\\"{,\"\n}\n";
    assert_eq!(json(r#"{"b":[1,{}],"a":"\"{,"}"#), pretty);
}
