//! Removes sentences before a comparison, so that better wording breaks no build.
//!
//! Names, values and locations are compared.

/// A text with this many blanks is a sentence.
const BLANKS: usize = 3;

/// Returns `text` with `…` in place of the sentences of each line.
pub fn without(text: &str) -> String {
    text.lines().map(|line| without_in(line) + "\n").collect()
}

fn without_in(line: &str) -> String {
    if let Some(rest) = line.strip_prefix("# HELP ") {
        let name = rest.split(' ').next().unwrap_or_default();
        return format!("# HELP {name} …");
    }
    if let Some(location) = location(line) {
        return format!("{location} …");
    }
    let is_json = line.contains("\": \"") || line.trim_start().starts_with('"');
    if is_json {
        return without_in_json(line);
    }
    let is_sentence = line.ends_with('.') && is_long(line);
    if is_sentence {
        "…".to_owned()
    } else {
        line.to_owned()
    }
}

/// Returns `FILE:LINE:COLUMN:`, with or without ` warning:`, from the start of a line.
fn location(line: &str) -> Option<&str> {
    let mut ends = line.match_indices(": ");
    let (end, _) = ends.next()?;
    let mut parts = line[..end].rsplit(':');
    let are_numbers = parts
        .by_ref()
        .take(2)
        .all(|part| part.parse::<u32>().is_ok());
    let is_location = are_numbers && parts.next().is_some_and(|file| !file.contains(' '));
    let warning = line[end..]
        .starts_with(": warning: ")
        .then(|| end + ": warning".len());
    is_location.then(|| &line[..=warning.unwrap_or(end)])
}

/// Removes sentences from the value of a field, or from the element of a list.
fn without_in_json(line: &str) -> String {
    // A name in brackets stands for a long line, and depends on its text.
    let named = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    let whole = named.map_or(line, |(_, rest)| rest);
    let begin = whole
        .find("\": \"")
        .map_or_else(|| whole.find('"'), |at| Some(at + 3));
    let (Some(begin), Some(end)) = (begin, whole.rfind('"')) else {
        return line.to_owned();
    };
    if begin >= end || !is_long(&whole[begin..end]) {
        return line.to_owned();
    }
    format!("{}\"…{}", &whole[..begin], &whole[end..])
}

fn is_long(text: &str) -> bool {
    text.matches(' ').count() >= BLANKS
}

#[test]
fn sentences_are_left_out_and_names_stay() {
    let cases = [
        ("# HELP drip_buffers I/O buffers.", "# HELP drip_buffers …"),
        (
            "a/b.toml:9:10: warning: admin: is reachable",
            "a/b.toml:9:10: warning: …",
        ),
        ("a/b.toml:9:10: duplicate key", "a/b.toml:9:10: …"),
        (
            "    \"title\": \"1 request waits at the gate\",",
            "    \"title\": \"…\",",
        ),
        (
            "[be4c4046] \"description\": \"Files with origins, of \\\"x\\\".\",",
            "\"description\": \"…\",",
        ),
        ("\"cause\": \"waiting\"", "\"cause\": \"waiting\""),
        ("All 1 permits at the origin are taken.", "…"),
        ("zone  rate  in/s  out/s", "zone  rate  in/s  out/s"),
        ("listen = [\"0.0.0.0:8080\"]", "listen = [\"0.0.0.0:8080\"]"),
    ];
    for (line, expected) in cases {
        assert_eq!(without_in(line), expected);
    }
}
