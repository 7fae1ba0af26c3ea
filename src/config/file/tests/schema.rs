//! The schema, held against every file of the suite.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use super::*;
use crate::{schema, show};

/// Compiling the schema takes longer than all files.
static VALIDATOR: LazyLock<Validator> = LazyLock::new(Validator::new);

struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Validator {
    fn new() -> Self {
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        let name = "gateway.schema.json";
        compiler.add_resource(name, schema()).unwrap();
        let index = compiler.compile(name, &mut schemas).unwrap();
        Self { schemas, index }
    }

    /// Why the schema refuses a file, if it does.
    fn refusal(&self, file: &Value) -> Option<String> {
        let valid = self.schemas.validate(file, self.index);
        valid.err().map(|error| error.to_string())
    }
}

/// A file as a value, if it is TOML.
fn value(text: &str) -> Option<Value> {
    toml::from_str(text).ok()
}

fn all_cases() -> Vec<Case> {
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
    let validator = &*VALIDATOR;
    let mut fitting = 0;
    let mut fits = |text: &str, of: &str| {
        let refusal = validator.refusal(&value(text).unwrap());
        assert_eq!(refusal, None, "{of}\n{text}");
        fitting += 1;
    };
    for (path, text) in texts() {
        if let Ok(settings) = parse(&text, &path, true) {
            fits(&text, &path.display().to_string());
            fits(&show(&settings), &path.display().to_string());
        }
    }
    for (from, to, _) in all_cases() {
        let text = SMALLEST.replacen(from, to, 1);
        if let Ok(settings) = parse(&text, Path::new("gateway.toml"), true) {
            fits(&text, "a case");
            fits(&show(&settings), "a case, shown");
        }
    }
    fits(environment::WITH_SECRETS, "variables");
    assert!(fitting > 50, "{fitting}");
}

/// What the schema cannot see: what a value means together with other values or with the world,
/// variables in keys, and bounds of what is written in a text.
const UNSEEN: &[&str] = &[
    "browsers leave out the default port",
    "a port from 1 to 65535",
    // Other values.
    "there is no [",
    "there is no origin",
    "there is no route",
    "no origin has a class",
    "[origins.app.classes] has no",
    "the origin has no classes",
    "is above",
    "cannot both be listened on",
    "each file in cert needs its key",
    "is listed twice",
    "each of them is a backup",
    "without a variable all requests",
    "is written $remote_addr here",
    "no address here has TLS",
    "no server of this origin has",
    "a certificate needs its key",
    "a key needs its certificate",
    "this Redis has no TLS",
    "which is not there",
    "limits this route already",
    "limits nothing",
    "would never pass",
    "would never be used",
    "the zone counts by",
    "that counts by",
    "remembers the time",
    "is kept in Redis",
    "kept exactly in Redis",
    "a window in Redis is a whole number",
    "so nothing waits for its time",
    "is in the plans",
    "does not begin with it",
    "must begin with ^",
    "is there already, for neither case",
    "pages has none for 502 to 504",
    "drip writes this field itself",
    "the Host that the origin gets",
    "this field has another meaning",
    "and none that is . or ..",
    "is not a regular expression of drip",
    "when it is compiled",
    "the automaton of this regular expression",
    // The world.
    "is reachable from other hosts",
    "cannot be read",
    ", line ",
    // Variables of a key.
    "is not a variable here",
    "a $ begins a variable",
    // Bounds.
    "the fastest rate",
    "from a byte a second to 1MB",
    "at most 107 bytes",
    "expected at most 1h",
    "such as \"app.internal\"; found \"a b\"",
    "ask nobody whether a place is free",
    "this is not the URL of a Redis",
    "a cluster has only one database",
    "cannot count at this rate in this store",
    "class: the value does not fit here",
    "is there twice; remove one",
    "at most 32 gateways; found",
    "no entry of listen in [server] has the name",
    "gRPC needs HTTP/2, and ",
    // A room.
    "it has no secret to sign tickets with",
    "lets in at most 1000 visitors a second",
    "a secret has at least 16 bytes",
    "the same secret is there twice",
    "from 1 to 4 secrets; found 5",
    "without a variable all visitors",
    "would not be limited",
    // A cost that is learned.
    "nobody knows without its places",
    // Answers that are shared.
    "means all sites; remove it",
    "browsers show no response with credentials",
    "without a variable all requests of the route",
    "a list has at most 16 names",
    "and methods of this route has no GET",
    "nothing would be shared",
    "the whole Cookie differs",
    "requests with credentials are never shared",
];

#[test]
fn wrong_types_unknown_fields_and_wrong_forms_are_refused_by_the_schema_too() {
    let validator = &*VALIDATOR;
    let (mut refused, mut unseen) = (0, 0);
    let mut missed = Vec::new();
    for (from, to, message) in all_cases() {
        let text = SMALLEST.replacen(from, to, 1);
        let Some(file) =
            value(&text).filter(|_| parse(&text, Path::new("gateway.toml"), true).is_err())
        else {
            continue;
        };
        if validator.refusal(&file).is_some() {
            refused += 1;
        } else {
            let is_unseen = |line: &str| UNSEEN.iter().any(|part| line.contains(part));
            missed.extend(message.lines().filter(|line| !is_unseen(line)));
            unseen += 1;
        }
    }
    assert_eq!(missed, [""; 0]);
    assert!(refused > unseen && refused > 80, "{refused} {unseen}");
    for (path, text) in texts() {
        let is_bad = [
            "unknown.toml",
            "wrong-types.toml",
            "empty.toml",
            "comment.toml",
        ];
        if is_bad.iter().any(|name| path.ends_with(name)) {
            assert!(
                validator.refusal(&value(&text).unwrap()).is_some(),
                "{}",
                path.display()
            );
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
