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
    let has = |pattern: &Value, text: &str| {
        let pattern = pattern.as_str().expect("a regular expression").to_owned();
        let mut known = COMPILED.lock().unwrap();
        let compile = |pattern: &String| Regex::new(pattern).expect("one of the crate");
        known
            .entry(pattern)
            .or_insert_with_key(compile)
            .is_match(text)
    };
    let whole = |it: &Value| it.as_number()?.as_i128();
    let is_right = |(keyword, of): (&String, &Value)| match &**keyword {
        "type" => match of.as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.is_i64() || value.is_u64(),
            other => panic!("type {other:?}"),
        },
        "enum" => of.as_array().is_some_and(|all| all.contains(value)),
        "anyOf" => of
            .as_array()
            .is_some_and(|all| all.iter().any(|it| fits(value, it))),
        "pattern" => value.as_str().is_none_or(|text| has(of, text)),
        "minimum" => whole(value).is_none_or(|it| Some(it) >= whole(of)),
        "maximum" => whole(value).is_none_or(|it| Some(it) <= whole(of)),
        "items" => { value.as_array() }.is_none_or(|all| all.iter().all(|it| fits(it, of))),
        "uniqueItems" => { value.as_array() }
            .is_none_or(|all| (1..all.len()).all(|nth| !all[..nth].contains(&all[nth]))),
        "minItems" => value
            .as_array()
            .is_none_or(|all| Some(all.len() as u64) >= of.as_u64()),
        "minProperties" => value
            .as_object()
            .is_none_or(|all| Some(all.len() as u64) >= of.as_u64()),
        "maxProperties" => {
            { value.as_object() }.is_none_or(|all| Some(all.len() as u64) <= of.as_u64())
        }
        "required" => value.as_object().is_none_or(|all| {
            let mut names = of.as_array().into_iter().flatten();
            names.all(|name| all.contains_key(name.as_str().unwrap_or_default()))
        }),
        "propertyNames" => { value.as_object() }
            .is_none_or(|all| all.keys().all(|name| fits(&Value::from(&**name), of))),
        "properties" => value.as_object().is_none_or(|all| {
            all.iter()
                .all(|(name, it)| of.get(name).is_none_or(|of| fits(it, of)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|all| {
            let mut others = all
                .iter()
                .filter(|(name, _)| schema["properties"].get(name).is_none());
            others.all(|(_, it)| *of != Value::Bool(false) && fits(it, of))
        }),
        "$schema" | "title" | "description" | "default" => true,
        other => panic!("the schema has {other}"),
    };
    schema
        .as_object()
        .is_some_and(|keywords| keywords.iter().all(is_right))
}

/// Returns a file as a value, if it is TOML.
fn value(text: &str) -> Option<Value> {
    toml::from_str(text).ok()
}

pub(super) fn all_cases() -> Vec<Case> {
    let cases = [
        CASES,
        server::CASES,
        origins::CASES,
        gate::CASES,
        in_flight::CASES,
        plans::CASES,
        room::CASES,
        routes::CASES,
        collapse::CASES,
        warnings::CASES,
    ];
    cases.concat()
}

/// Returns the TOML files of the repository, and the TOML in its pages.
fn texts() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = vec![root.join("gateway.toml"), root.join("README.md")];
    let entries = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
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
        let is_a = |extension| path.extension().is_some_and(|it| it == extension);
        if is_a("md") {
            let blocks = text.split("```toml\n").skip(1);
            let blocks = blocks.filter_map(|rest| rest.split("```").next());
            texts.extend(blocks.map(|block| (path.clone(), block.to_owned())));
        } else if is_a("toml") {
            texts.push((path, text));
        }
    }
    texts
}

#[test]
fn every_valid_file_of_the_suite_fits_the_schema() {
    let (schema, mut fitting) = (schema(), 0);
    let mut is_fitting = |text: &str, of: &str| {
        assert!(fits(&value(text).unwrap(), &schema), "{of}\n{text}");
        fitting += 1;
    };
    for (path, text) in texts() {
        if let Ok(settings) = parse(&text, &path, true) {
            is_fitting(&text, &path.display().to_string());
            is_fitting(&show(&settings), &path.display().to_string());
        }
    }
    for (from, to, _) in all_cases() {
        let text = SMALLEST.replacen(from, to, 1);
        if let Ok(settings) = parse(&text, Path::new("gateway.toml"), true) {
            is_fitting(&text, "a case");
            is_fitting(&show(&settings), "a case, shown");
        }
    }
    is_fitting(environment::WITH_SECRETS, "variables");
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
    for (path, text) in texts() {
        let bad = [
            "unknown.toml",
            "wrong-types.toml",
            "empty.toml",
            "comment.toml",
        ];
        if bad.iter().any(|name| path.ends_with(name)) {
            assert!(!fits(&value(&text).unwrap(), &schema), "{}", path.display());
        }
    }
}
