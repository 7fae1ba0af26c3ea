//! Property tests of reading any file.

use std::collections::BTreeMap;
use std::fs;

use ::limit::Delay;
use proptest::prelude::*;
use testing::{bytes, config, is_long_run, replay};

use super::*;
use crate::{is_printable, show};

const PATH: &str = "/etc/drip/gateway.toml";

/// Checks that each problem has a location in the text, and a message of one printable line.
fn are_valid_messages(text: &str, problems: &Problems) -> Result<(), TestCaseError> {
    prop_assert!(!problems.problems.is_empty());
    let lines = text.split('\n').collect::<Vec<_>>();
    for problem in &problems.problems {
        let Problem {
            line,
            column,
            message,
            ..
        } = problem;
        prop_assert!((1..=lines.len()).contains(line), "{:?}", problem);
        let letters = lines[line - 1].chars().count();
        prop_assert!((1..=letters + 1).contains(column), "{:?}", problem);
        prop_assert!(
            !message.is_empty() && message.chars().all(is_printable),
            "{:?}",
            problem
        );
    }
    prop_assert!(problems.problems.is_sorted());
    prop_assert_eq!(
        problems.to_string().lines().count(),
        problems.problems.len()
    );
    Ok(())
}

fn are_whole(settings: &Settings) -> Result<(), TestCaseError> {
    prop_assert!(!settings.server.listen.is_empty());
    prop_assert!(!settings.origins.is_empty() && !settings.routes.is_empty());
    prop_assert!(
        settings
            .origins
            .iter()
            .all(|origin| !origin.servers.is_empty())
    );
    for route in &settings.routes {
        prop_assert!(
            route
                .origin()
                .is_none_or(|origin| origin < settings.origins.len())
        );
        for limit in &route.limits {
            prop_assert!(limit.zone < settings.zones.len());
            prop_assert!(
                !matches!(limit.limit.delay, Delay::Above(delay) if delay > limit.limit.burst)
            );
        }
    }
    Ok(())
}

fn holds(bytes: &[u8]) -> Result<(), TestCaseError> {
    let Ok(text) = str::from_utf8(bytes) else {
        return Ok(());
    };
    let settings = match parse(text, Path::new(PATH), false) {
        Ok(settings) => settings,
        Err(problems) => return are_valid_messages(text, &problems),
    };
    are_whole(&settings)?;
    let shown = show(&settings);
    let again = parse(&shown, Path::new("/elsewhere/gateway.toml"), false);
    let known = |settings: Settings| Settings {
        named: Vec::new(),
        warnings: Vec::new(),
        from_environment: BTreeMap::default(),
        ..settings
    };
    prop_assert_eq!(again.map(known), Ok(known(settings.clone())), "{}", shown);
    prop_assert_eq!(show(&settings), shown);
    // A file that is valid without a token is also valid with one.
    prop_assert_eq!(parse(text, Path::new(PATH), true), Ok(settings));
    Ok(())
}

#[test]
fn the_corpus_holds() {
    replay("gateways", holds);
}

/// Strategy for an edit: its kind, two lines, and an unusual value.
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
    (
        0..6_u8,
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        odd,
    )
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
        holds(&bytes)?;
    }

    /// Any text replaces any value of a valid file.
    #[test]
    fn any_value_is_valid_or_its_problem_is_reported(which: prop::sample::Index, value in value()) {
        let whole = include_str!("../../../tests/corpus/gateways/everything.toml");
        let quotes = whole.match_indices('"').map(|(at, _)| at).collect::<Vec<_>>();
        let from = which.index(quotes.len() - 1);
        let text = format!("{}{value}{}", &whole[..=quotes[from]], &whole[quotes[from + 1]..]);
        holds(text.as_bytes())?;
    }

    /// Lines of a valid file are removed, doubled, moved, cut or changed.
    #[test]
    fn any_edited_file_is_valid_or_its_problems_are_reported(edits in prop::collection::vec(edit(), 1..6), crlf: bool, bom: bool) {
        let whole = include_str!("../../../tests/corpus/gateways/everything.toml");
        let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
        for (what, at, other, odd) in edits {
            let (at, other) = (at.index(lines.len()), other.index(lines.len()));
            match what {
                0 => drop(lines.remove(at)),
                1 => lines.insert(other, lines[at].clone()),
                2 => lines.swap(at, other),
                3 => {
                    let cut = lines[at].char_indices().nth(other).map_or(lines[at].len(), |it| it.0);
                    lines[at].truncate(cut);
                }
                4 => lines[at] = lines[at].replace(['[', ']', '"'], odd),
                _ => {
                    let name = lines[at].split('=').next().unwrap_or_default().to_owned();
                    lines[at] = format!("{name}= {odd}");
                }
            }
            if lines.is_empty() {
                lines.push(String::new());
            }
        }
        let text = lines.join(if crlf { "\r\n" } else { "\n" });
        holds(format!("{}{text}\n", if bom { "\u{feff}" } else { "" }).as_bytes())?;
    }

    #[test]
    fn a_file_of_any_bytes_is_read_or_its_first_invalid_byte_is_reported(bytes in bytes("gateways")) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.toml");
        fs::write(&path, &bytes).unwrap();
        match read(&path) {
            Ok(text) => prop_assert_eq!(text.as_bytes(), bytes),
            Err(LoadError::Wrong(problems)) => are_valid_messages(&String::from_utf8_lossy(&bytes), &problems)?,
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }
}

/// Large files that are no configuration are rejected quickly.
#[test]
fn a_large_file_takes_no_longer_than_its_size() {
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
        let message_bytes = problems
            .problems
            .iter()
            .map(|problem| problem.message.len())
            .sum::<usize>();
        assert!(
            message_bytes < 400 * text.len(),
            "{message_bytes} bytes for {}",
            text.len()
        );
    }
}
