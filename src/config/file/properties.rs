//! Property tests: any file is either valid, or each of its problems is reported with a location.
//!
//! The crate `testing` has the inputs: `replay` and `replay_text` check each file of a folder in
//! `tests/corpus`, and `bytes` and `text` make variations of these files.

use std::collections::BTreeMap;
use std::fs;

use ::limit::Delay;
use proptest::prelude::*;
use testing::{bytes, config, is_long_run, replay};

use super::*;
use crate::{RouteLimit, is_printable, show};

const PATH: &str = "/etc/drip/gateway.toml";
/// A valid file with many fields.
const EVERYTHING: &str = include_str!("../../../tests/corpus/gateways/everything.toml");

/// Checks that each problem has a location in the text, and a message of one printable line.
fn check_problems(text: &str, problems: &Problems) -> Result<(), TestCaseError> {
    prop_assert!(!problems.problems.is_empty());
    let lines = text.split('\n').collect::<Vec<_>>();
    for problem in &problems.problems {
        let (line, column, message) = (problem.line, problem.column, &problem.message);
        prop_assert!((1..=lines.len()).contains(&line), "{:?}", problem);
        let characters = lines[line - 1].chars().count();
        prop_assert!((1..=characters + 1).contains(&column), "{:?}", problem);
        prop_assert!(!message.is_empty(), "{:?}", problem);
        prop_assert!(message.chars().all(is_printable), "{:?}", problem);
    }
    prop_assert!(problems.problems.is_sorted());
    let shown_lines = problems.to_string().lines().count();
    prop_assert_eq!(shown_lines, problems.problems.len());
    Ok(())
}

/// Checks that lists which are never empty have items, and that indices and numbers are in range.
fn check_settings(settings: &Settings) -> Result<(), TestCaseError> {
    prop_assert!(!settings.server.listen.is_empty());
    prop_assert!(!settings.origins.is_empty() && !settings.routes.is_empty());
    let mut origins = settings.origins.iter();
    prop_assert!(origins.all(|origin| !origin.servers.is_empty()));
    for route in &settings.routes {
        let origin_count = settings.origins.len();
        prop_assert!(route.origin().is_none_or(|origin| origin < origin_count));
        for RouteLimit { zone, limit } in &route.limits {
            prop_assert!(*zone < settings.zones.len());
            prop_assert!(!matches!(limit.delay, Delay::Above(delay) if delay > limit.burst));
        }
    }
    Ok(())
}

/// Checks a file of any bytes: its settings and what `show` writes of them, or its problems.
fn check_file(bytes: &[u8]) -> Result<(), TestCaseError> {
    let Ok(text) = str::from_utf8(bytes) else {
        return Ok(());
    };
    let settings = match parse(text, Path::new(PATH), false) {
        Ok(settings) => settings,
        Err(problems) => return check_problems(text, &problems),
    };
    check_settings(&settings)?;
    let shown = show(&settings);
    let again = parse(&shown, Path::new("/elsewhere/gateway.toml"), false);
    // `show` writes neither the names of files that were read, nor warnings, nor variables.
    let comparable = |settings: Settings| Settings {
        named: Vec::new(),
        warnings: Vec::new(),
        from_environment: BTreeMap::default(),
        ..settings
    };
    let expected = comparable(settings.clone());
    prop_assert_eq!(again.map(comparable), Ok(expected), "{}", shown);
    prop_assert_eq!(show(&settings), shown);
    // A file that is valid without a token is also valid with one.
    prop_assert_eq!(parse(text, Path::new(PATH), true), Ok(settings));
    Ok(())
}

#[test]
fn each_file_of_the_corpus_is_valid_or_its_problems_are_reported() {
    replay("gateways", check_file);
}

/// Strategy for an edit of a file: the kind of edit, two lines, and an unusual value.
///
/// The numbers of the kinds are those in the test of edited files.
fn edit() -> impl Strategy<Value = (u8, prop::sample::Index, prop::sample::Index, &'static str)> {
    let odd = prop::sample::select(vec![
        "99999999999999999999999999",
        "-1",
        "nan",
        "2001-01-01",
        "{ a = { b = [1] } }",
        "\"\\u0000\"",
        "\u{0}",
        "\"é\u{202e}\"",
        "'",
        "\"\"\"",
        "[",
        "{",
        "]",
        "",
    ]);
    let line = any::<prop::sample::Index>;
    (0..6_u8, line(), line(), odd)
}

/// Strategy for the text between the quotes of a value.
fn value() -> impl Strategy<Value = String> {
    let folder = prop::sample::select(vec![
        "rates",
        "durations",
        "sizes",
        "templates",
        "paths",
        "hosts",
        "bytes",
    ]);
    folder.prop_flat_map(testing::text).prop_map(|text| {
        text.chars().fold(String::new(), |quoted, c| match c {
            '"' | '\\' => quoted + "\\" + &c.to_string(),
            c if c.is_control() => quoted + &format!("\\u{:04x}", u32::from(c)),
            c => quoted + &c.to_string(),
        })
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_file_is_valid_and_shown_or_its_problems_are_reported(bytes in bytes("gateways")) {
        check_file(&bytes)?;
    }

    /// Any text replaces any value of a valid file.
    #[test]
    fn any_value_is_valid_or_its_problem_is_reported(which: prop::sample::Index, value in value()) {
        let quotes = EVERYTHING.match_indices('"').map(|(at, _)| at).collect::<Vec<_>>();
        let first = which.index(quotes.len() - 1);
        let (before, after) = (&EVERYTHING[..=quotes[first]], &EVERYTHING[quotes[first + 1]..]);
        check_file(format!("{before}{value}{after}").as_bytes())?;
    }

    /// Lines of a valid file are removed, doubled, moved, cut or changed.
    #[test]
    fn any_edited_file_is_valid_or_its_problems_are_reported(edits in prop::collection::vec(edit(), 1..6), crlf: bool, bom: bool) {
        let mut lines: Vec<String> = EVERYTHING.lines().map(str::to_owned).collect();
        for (kind, line, other, odd) in edits {
            let (line, other) = (line.index(lines.len()), other.index(lines.len()));
            match kind {
                // Removes, doubles or moves a line.
                0 => drop(lines.remove(line)),
                1 => lines.insert(other, lines[line].clone()),
                2 => lines.swap(line, other),
                // Cuts a line.
                3 => lines[line] = lines[line].chars().take(other).collect(),
                // Replaces brackets and quotes, or a value.
                4 => lines[line] = lines[line].replace(['[', ']', '"'], odd),
                _ => {
                    let name = lines[line].split('=').next().unwrap_or_default().to_owned();
                    lines[line] = format!("{name}= {odd}");
                }
            }
            if lines.is_empty() {
                lines.push(String::new());
            }
        }
        let text = lines.join(if crlf { "\r\n" } else { "\n" });
        let mark = if bom { "\u{feff}" } else { "" };
        check_file(format!("{mark}{text}\n").as_bytes())?;
    }

    #[test]
    fn a_file_of_any_bytes_is_read_or_its_first_invalid_byte_is_reported(bytes in bytes("gateways")) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.toml");
        fs::write(&path, &bytes).unwrap();
        match read(&path) {
            Ok(text) => prop_assert_eq!(text.as_bytes(), bytes),
            Err(LoadError::Wrong(problems)) => check_problems(&String::from_utf8_lossy(&bytes), &problems)?,
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }
}

/// Files that are not a configuration, such as a log, are rejected in time proportional to size.
///
/// The time limit is that of the whole test run.
#[test]
fn a_large_file_is_rejected_in_time_with_messages_in_proportion() {
    // Quadratic time would exceed the limit at a tenth of these sizes.
    let count = if is_long_run() { 20_000 } else { 4_000 };
    let lines = |line: fn(usize) -> String| (0..count).map(line).collect::<String>();
    let routes = |line: fn(usize) -> String| (0..count / 20).map(line).collect::<String>();
    for text in [
        lines(|line| format!("field_{line} = {line}\n")),
        lines(|line| format!("192.0.2.1 - - [{line}] \"GET / HTTP/1.1\" 200 66\n")),
        "\u{0}".repeat(3 * count),
        format!(
            "{}\n{}",
            routes(|zone| format!("[zones.zone_number_{zone}]\n")),
            routes(|_| "[[routes]]\nlimits = [{ zone = \"x\" }]\n".to_owned())
        ),
        format!("a = {}", "[".repeat(3 * count)),
        format!("{} = 1", vec!["a"; count].join(".")),
        // Missing ends.
        lines(|line| format!("field_{line} = [{line}\n")),
        lines(|line| format!("field_{line} = \"{line}\n")),
        format!("a = {}{}", "{".repeat(3 * count), "]".repeat(3 * count)),
        format!("a = [{}", "\"b\", ".repeat(5 * count)),
        format!(
            "a = {{ {}\n{}",
            "b = 1, ".repeat(3 * count),
            "c = 1\n".repeat(count)
        ),
        "a = \"\"\"\n".repeat(count + 1),
    ] {
        let problems = parse(&text, Path::new(PATH), false).unwrap_err();
        let sizes = problems
            .problems
            .iter()
            .map(|problem| problem.message.len());
        let (message_bytes, size) = (sizes.sum::<usize>(), text.len());
        assert!(
            message_bytes < 400 * size,
            "{message_bytes} bytes for {size}"
        );
    }
}
