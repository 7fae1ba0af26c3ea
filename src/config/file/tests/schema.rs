//! Tests that compare the JSON Schema with every file of the tests.

use std::fs;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};

use regex::Regex;
use serde_json::Value;

use super::*;
use crate::{schema, show};

/// Cache of the schema's regular expressions: compiling one takes longer than reading a file.
static COMPILED: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);

/// Returns whether a value fits a schema, for the keywords of JSON Schema that [`schema`] uses.
fn fits(value: &Value, schema: &Value) -> bool {
    let matches = |pattern: &Value, text: &str| {
        let pattern = pattern.as_str().expect("a regular expression").to_owned();
        let mut known = COMPILED.lock().unwrap();
        let compile = |pattern: &String| Regex::new(pattern).expect("one of the crate");
        let regex = known.entry(pattern).or_insert_with_key(compile);
        regex.is_match(text)
    };
    // Each is `None` if the value has another type. Then a keyword about the type does not matter.
    let (list, table, text) = (value.as_array(), value.as_object(), value.as_str());
    let whole = |number: &Value| number.as_number()?.as_i128();
    let count = |number: &Value| usize::try_from(number.as_u64().unwrap()).unwrap();
    let fits_keyword = |(keyword, expected): (&String, &Value)| match &**keyword {
        "type" => match expected.as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.is_i64() || value.is_u64(),
            other => panic!("type {other:?}"),
        },
        "enum" => expected.as_array().unwrap().contains(value),
        "anyOf" => expected
            .as_array()
            .unwrap()
            .iter()
            .any(|schema| fits(value, schema)),
        "pattern" => text.is_none_or(|text| matches(expected, text)),
        "minimum" => whole(value).is_none_or(|number| Some(number) >= whole(expected)),
        "maximum" => whole(value).is_none_or(|number| Some(number) <= whole(expected)),
        "items" => list.is_none_or(|items| items.iter().all(|item| fits(item, expected))),
        "uniqueItems" => list.is_none_or(|items| {
            (1..items.len()).all(|index| !items[..index].contains(&items[index]))
        }),
        "minItems" => list.is_none_or(|items| items.len() >= count(expected)),
        "minProperties" => table.is_none_or(|fields| fields.len() >= count(expected)),
        "maxProperties" => table.is_none_or(|fields| fields.len() <= count(expected)),
        "required" => table.is_none_or(|fields| {
            let mut names = expected.as_array().unwrap().iter();
            names.all(|name| fields.contains_key(name.as_str().unwrap()))
        }),
        "propertyNames" => table.is_none_or(|fields| {
            let mut names = fields.keys().map(|name| Value::from(&**name));
            names.all(|name| fits(&name, expected))
        }),
        "properties" => table.is_none_or(|fields| {
            let mut fields = fields.iter();
            fields.all(|(name, field)| {
                expected
                    .get(name)
                    .is_none_or(|expected| fits(field, expected))
            })
        }),
        "additionalProperties" => table.is_none_or(|fields| {
            let is_other = |name: &String| schema["properties"].get(name).is_none();
            let mut others = fields.iter().filter(|(name, _)| is_other(name));
            others.all(|(_, field)| *expected != Value::Bool(false) && fits(field, expected))
        }),
        "$schema" | "title" | "description" | "default" => true,
        other => panic!("the schema has {other}"),
    };
    schema.as_object().unwrap().iter().all(fits_keyword)
}

/// Returns a file as a value, if it is TOML.
fn value(text: &str) -> Option<Value> {
    toml::from_str(text).ok()
}

/// Returns all cases, those with problems and those with warnings.
pub(super) fn all_cases() -> Vec<Case> {
    [problem_cases(), warnings::CASES.to_vec()].concat()
}

/// Returns the TOML files of the repository, and the TOML in its pages. Each has its path.
fn texts() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let mut paths = vec![root.join("gateway.toml"), root.join("README.md")];
    let docs = entries(&root.join("docs"));
    for folder in docs.iter().filter(|path| path.is_dir()) {
        paths.extend(entries(folder));
    }
    paths.extend(docs);
    paths.extend(entries(&root.join("tests/corpus/gateways")));
    let mut texts = Vec::new();
    for path in paths {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let has_extension = |extension| path.extension().is_some_and(|found| found == extension);
        if has_extension("md") {
            let blocks = text.split("```toml\n").skip(1);
            let blocks = blocks.filter_map(|rest| rest.split("```").next());
            texts.extend(blocks.map(|block| (path.clone(), block.to_owned())));
        } else if has_extension("toml") {
            texts.push((path, text));
        }
    }
    texts
}

#[test]
fn every_valid_file_of_the_suite_fits_the_schema() {
    let (schema, mut fitting) = (schema(), 0);
    let mut check = |text: &str, source: &str| {
        assert!(fits(&value(text).unwrap(), &schema), "{source}\n{text}");
        fitting += 1;
    };
    for (path, text) in texts() {
        if let Ok(settings) = parse(&text, &path, true) {
            check(&text, &path.display().to_string());
            check(&show(&settings), &path.display().to_string());
        }
    }
    for (from, to, _) in all_cases() {
        let text = SMALLEST.replacen(from, to, 1);
        if let Ok(settings) = parse(&text, Path::new("gateway.toml"), true) {
            check(&text, "a case");
            check(&show(&settings), "a case, shown");
        }
    }
    check(environment::WITH_SECRETS, "variables");
    assert!(fitting > 50, "{fitting}");
}

/// Parts of messages about mistakes that the schema detects, too.
const SEEN: [&str; 10] = [
    "is not a field of",
    "without blanks",
    "expected a whole number",
    "expected true or false",
    "expected a table",
    "expected a list",
    "expected \"none\"",
    "the list is empty",
    "the table is empty",
    "it has at most 8 classes",
];

/// Further mistakes that the schema detects.
const WRONG: [(&str, &str); 8] = [
    ("burst = 20", "burst = 20, brust = 1"),
    ("\"app\"", "\"app\"\ndry_run = \"yes\""),
    ("\"app\"", "\"app\"\nheaders = \"ratelimit\""),
    ("\"10r/s\"", "\"1r/s\"\nmax_keys = 0"),
    ("\"10r/s\"", "\"1r/s\"\nlease = 20"),
    ("", "redis.host = \"a\"\n"),
    ("", "server.keep_alive = 75\n"),
    ("servers = [", "queue = 0\nservers = ["),
];

#[test]
fn the_schema_refuses_wrong_types_forms_and_unknown_fields() {
    let (schema, mut refused) = (schema(), 0);
    for (from, to) in WRONG {
        let text = SMALLEST.replacen(from, to, 1);
        assert!(!fits(&value(&text).unwrap(), &schema), "{text}");
        refused += 1;
    }
    for (from, to, message) in all_cases() {
        let text = SMALLEST.replacen(from, to, 1);
        // A route with `refuse` needs no origin.
        let message = message.replace("this route has no origin; add one such as", "");
        let is_missing = message.contains(" has no ") && message.contains("; add one such as");
        let is_seen = is_missing || SEEN.iter().any(|part| message.contains(part));
        if let Some(file) = value(&text).filter(|_| is_seen && !message.contains("warning:")) {
            assert!(!fits(&file, &schema), "{message}\n{text}");
            refused += 1;
        }
    }
    assert!(refused > 30, "{refused}");
    let wrong_files = "unknown.toml wrong-types.toml empty.toml comment.toml";
    for (path, text) in texts() {
        if wrong_files.split(' ').any(|name| path.ends_with(name)) {
            assert!(!fits(&value(&text).unwrap(), &schema), "{}", path.display());
        }
    }
}
