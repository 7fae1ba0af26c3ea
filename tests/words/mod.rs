//! Names that say nothing of what they are.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files_below;

/// Names of types that say nothing of what they are.
const TYPES: [&str; 7] = [
    "Told",
    "Asked",
    "Wanted",
    "Judged",
    "Course",
    "Patience",
    "Condition",
];

/// Beginnings of constants that are bounds: those are `MAX_` and `MIN_`.
const BOUNDS: [&str; 5] = ["MOST", "LONGEST", "LEAST", "FEWEST", "SHORTEST"];

/// All files below a folder with one of these endings, with their texts.
fn texts(folder: &str, endings: &[&str]) -> Vec<(String, String)> {
    let mut files = files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    files.retain(|path| {
        let extension = path.extension();
        extension.is_some_and(|it| endings.iter().any(|ending| it == *ending))
    });
    let text = |path: &PathBuf| fs::read_to_string(path).expect("a text");
    let found: Vec<_> = files
        .iter()
        .map(|path| (path.display().to_string(), text(path)))
        .collect();
    assert!(found.len() > 10, "{folder} has {} files", found.len());
    found
}

#[test]
fn names_say_what_they_are() {
    let mut wrong = Vec::new();
    for (path, text) in texts("src", &["rs"]) {
        for (nth, line) in text.lines().enumerate() {
            let words: Vec<_> = line
                .split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .filter(|word| !word.is_empty() && *word != "pub")
                .collect();
            let after = |keyword: &str| {
                let at = words.iter().position(|word| *word == keyword)?;
                words.get(at + 1).copied()
            };
            let named = ["struct", "enum", "type", "trait"]
                .into_iter()
                .find_map(after);
            let is_type = named.is_some_and(|name| TYPES.contains(&name));
            let is_bound = after("const").is_some_and(|name| {
                let first = name.split('_').next().unwrap_or_default();
                BOUNDS.contains(&first)
            });
            if !line.trim_start().starts_with("//") && (is_type || is_bound) {
                wrong.push(format!("{path}:{}: {line}", nth + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
