//! The schema, held against every file of the suite.

use std::fs;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};

use regex::Regex;
use serde_json::Value;

use super::*;
use crate::{schema, show};

/// The regular expressions of the schema: compiling one takes longer than a whole file.
static COMPILED: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);

/// Whether a value fits a schema, by the keywords of JSON Schema that [`schema`] uses.
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
        "minItems" => value
            .as_array()
            .is_none_or(|all| Some(all.len() as u64) >= of.as_u64()),
        "minProperties" => value
            .as_object()
            .is_none_or(|all| Some(all.len() as u64) >= of.as_u64()),
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

/// A file as a value, if it is TOML.
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

/// The TOML files of the repository, and the TOML of its pages.
fn texts() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = vec![root.join("gateway.toml"), root.join("README.md")];
    for folder in ["docs/examples", "tests/corpus/gateways", "docs"] {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        paths.extend(entries.map(|entry| entry.unwrap().path()));
    }
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

/// Parts of the messages about what the schema sees by itself.
const SEEN: [&str; 8] = [
    "is not a field of",
    "without blanks",
    "expected a whole number",
    "expected true or false",
    "expected a table",
    "expected a list",
    "expected \"none\"",
    "the list is empty",
];

#[test]
fn wrong_types_unknown_fields_and_wrong_forms_are_refused_by_the_schema_too() {
    let (schema, mut refused) = (schema(), 0);
    for (from, to, message) in all_cases() {
        let text = SMALLEST.replacen(from, to, 1);
        // A route needs no origin if it refuses.
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

/// A file with each table, and as few fields as they can have.
const EVERY_TABLE: &str = r#"
[server]
tls = { cert = "a", key = "b" }
[redis]
[log]
[origins.app]
servers = ["http://127.0.0.1:9000"]
backoff = {}
health = { path = "/" }
room = { sessions = 1, secret = "0123456789abcdef" }
[zones.z]
key = "$host"
rate = "9r/s"
plans.gold.keys = ["a"]
[[routes]]
path = "/"
origin = "app"
[[routes]]
path = "/header"
origin = "app"
cost = { header = "a", max = 2 }
[[routes]]
path = "/response"
origin = "app"
cost = { response_header = "a", max = 2 }
[[routes]]
path = "/refused"
refuse = 403
[[routes]]
path = "/news/"
origin = "app"
collapse = {}
"#;

#[test]
fn the_defaults_of_the_schema_are_those_of_the_settings() {
    let settings = parse(EVERY_TABLE, Path::new("/gateway.toml"), false).unwrap();
    let shown = value(&show(&settings)).unwrap();
    let written = value(EVERY_TABLE).unwrap();
    let mut compared = 0;
    compare(&schema(), &written, &shown, "", &mut compared);
    assert!(compared > 60, "{compared}");
}

/// A duration in nanoseconds: "60s" is "1m".
fn uniform(value: &Value) -> Value {
    let duration = value.as_str().and_then(::limit::parse_duration);
    duration.map_or_else(|| value.clone(), |it| it.as_nanos().to_string().into())
}

/// Compares the defaults of a schema with the fields that are shown and not written.
fn compare(schema: &Value, written: &Value, shown: &Value, path: &str, compared: &mut usize) {
    let nothing = Value::Null;
    let alternatives = schema["anyOf"].as_array();
    let fits = |it: &&Value| {
        let required = it["required"].as_array();
        required.is_some_and(|names| {
            names
                .iter()
                .all(|name| shown.get(name.as_str().unwrap()).is_some())
        })
    };
    let schema = alternatives
        .and_then(|all| all.iter().find(fits))
        .unwrap_or(schema);
    if let (Some(items), Some(list)) = (schema.get("items"), shown.as_array()) {
        for (index, shown) in list.iter().enumerate() {
            let written = written.get(index).unwrap_or(&nothing);
            compare(items, written, shown, &format!("{path}[{index}]"), compared);
        }
    }
    let Some(table) = shown.as_object() else {
        return;
    };
    for (name, shown) in table {
        let path = format!("{path}.{name}");
        let of = schema["properties"]
            .get(name)
            .unwrap_or(&schema["additionalProperties"]);
        let written = written.get(name).unwrap_or(&nothing);
        match of.get("default") {
            Some(default) if written.is_null() => {
                assert_eq!(uniform(default), uniform(shown), "{path}");
                *compared += 1;
            }
            None if written.is_null() && !shown.is_object() => {
                let has_no_single_default = [".server.name", ".server.workers"];
                assert!(
                    has_no_single_default.contains(&&*path),
                    "{path} has no default"
                );
            }
            _ => {}
        }
        compare(of, written, shown, &path, compared);
    }
}
