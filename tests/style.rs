//! Checks of names and comments in `src`: no word that another one replaces, and plain first lines.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::support::files_below;

/// Words that no identifier has. CONTRIBUTING.md has the words to use.
const REPLACED: [&str; 21] = [
    "told", "tell", "tells", "telling", "untold", "heard", "gone", "lefts", "leaver", "leavers",
    "lapse", "lapses", "lapsed", "judged", "foresee", "foreseen", "outlook", "wanted", "place",
    "places", "fleet",
];

/// Identifiers that may have such a word.
///
/// `in_place`, `placeholder` and decimal places are terms of others. `on_client_gone` is a field
/// that users have written into their files.
const KEPT: &str = "(^|_)(in_place|place_?holders?|decimal_places?|on_client_gone)(_|$)";

/// Beginnings of a doc comment that do not say what the item is.
const PRONOUNS: &str = "It|They|That|This|Those|What|Who|Nor";
const MAX_FIRST_LINE: usize = 100;

fn files() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = files_below(&root.join("src"));
    files.retain(|path| path.extension().is_some_and(|it| it == "rs"));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a text");
        (path, text)
    };
    let files: Vec<_> = files.into_iter().map(read).collect();
    assert!(files.len() > 500, "only {} files", files.len());
    files
}

/// Removes comments, strings and characters.
fn code(text: &str) -> String {
    let other =
        r##"(?s)//[^\n]*|/\*.*?\*/|b?r#+".*?"#+|b?r".*?"|b?"(\\.|[^"\\])*"|'(\\.[^']*|[^'\\])'"##;
    let other = Regex::new(other).expect("an expression");
    other.replace_all(text, " ").into_owned()
}

/// Converts `TwoWords` to `two_words`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    let mut before = '_';
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        let begins_word = chars.peek().is_some_and(|next| next.is_lowercase());
        let ends_word = before.is_lowercase() || before.is_numeric();
        if c.is_uppercase() && (ends_word || before.is_uppercase() && begins_word) {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
        before = c;
    }
    snake
}

/// Returns whether a name has a word that another one replaces.
fn is_replaced(name: &str, kept: &Regex) -> bool {
    let parts = snake_case(name);
    let parts = kept.replace_all(&parts, "_");
    parts.split('_').any(|part| REPLACED.contains(&part))
}

#[test]
fn parts_of_names_are_found_and_terms_of_others_are_not() {
    let kept = Regex::new(KEPT).expect("an expression");
    for name in ["origin_places", "H2Place", "TLSPlaces", "is_told", "GONE"] {
        assert!(is_replaced(name, &kept), "{name}");
    }
    for name in [
        "in_place",
        "replaces",
        "PlaceHolder",
        "on_client_gone",
        "settled",
    ] {
        assert!(!is_replaced(name, &kept), "{name}");
    }
}

/// Bounds begin with `MAX_` and `MIN_`, and names of types are specific.
#[test]
fn bounds_and_types_have_plain_names() {
    let types = "(struct|enum|type|trait) (Asked|Course|Patience|Condition)(?-u:\\b)";
    let bounds = "const (MOST|LONGEST|LEAST|FEWEST|SHORTEST)(_|(?-u:\\b))";
    let wrong = format!("(?m)^ *(pub(\\([a-z]+\\))? )?({types}|{bounds})");
    let wrong = Regex::new(&wrong).expect("an expression");
    for (path, text) in files() {
        let found = wrong.find(&text).map(|found| found.as_str());
        assert_eq!(found, None, "{}", path.display());
    }
}

#[test]
fn no_identifier_has_a_word_that_another_replaces() {
    let kept = Regex::new(KEPT).expect("an expression");
    let mut wrong = Vec::new();
    for (path, text) in files() {
        let code = code(&text);
        let names = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        let mut names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            if is_replaced(name, &kept) {
                wrong.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_module_says_what_it_is() {
    let is_bare = |(_, text): &(PathBuf, String)| !text.starts_with("//!");
    let bare: Vec<_> = files().into_iter().filter(is_bare).collect();
    let bare: Vec<_> = bare.iter().map(|(path, _)| path).collect();
    assert!(bare.is_empty(), "no `//!`: {bare:?}");
}

#[test]
fn first_lines_of_comments_name_their_subject_and_are_short() {
    let pronoun = Regex::new(&format!("^(?:{PRONOUNS})(?-u:\\b)")).expect("an expression");
    let mut wrong = Vec::new();
    for (path, text) in files() {
        let mut before = "";
        for line in text.lines().map(str::trim_start) {
            let kind = ["///", "//!"].into_iter().find(|it| line.starts_with(it));
            let is_first = kind.is_some_and(|kind| !before.starts_with(kind));
            before = line;
            let comment = line.get(3..).unwrap_or_default().trim_start();
            if is_first && (pronoun.is_match(comment) || comment.len() > MAX_FIRST_LINE) {
                wrong.push(format!("{}: {comment}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
