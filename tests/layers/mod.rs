//! The modules of `src/` are layers: each uses only itself and lower layers.

mod circles;

use std::fs;
use std::path::{Path, PathBuf};

/// The layers, lowest first.
///
/// The last one is for unit tests alone.
const LAYERS: [&str; 13] = [
    "limit",
    "time",
    "store",
    "config",
    "observe",
    "replay",
    "actors",
    "http",
    "admin",
    "server",
    "tools",
    "cli",
    "simulation",
];
/// The layers of `src/http/`, lowest first.
const HTTP: [&str; 7] = [
    "message",
    "tcp",
    "http2",
    "upstream",
    "downstream",
    "gateway",
    "proxy",
];
/// The module that every unit test may use.
const TESTING: &str = "testing";

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The first component of a file's path below `folder`, without `.rs`.
fn module(file: &Path, folder: &Path) -> String {
    let below = file.strip_prefix(folder).expect("a file of the folder");
    let first = below.iter().next().expect("a name").to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// The modules that a text names after `prefix`.
fn used<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(move |line| {
        line.split(prefix).skip(1).map(|rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            &rest[..end.unwrap_or(rest.len())]
        })
    })
}

/// Fails if a file below `folder` uses a module of a layer above its own.
fn check(folder: &Path, prefix: &str, layers: &[&str]) {
    let mut upward = Vec::new();
    for file in files(folder) {
        let own = module(&file, folder);
        let Some(level) = layers.iter().position(|layer| *layer == own) else {
            continue;
        };
        let text = fs::read_to_string(&file).expect("a text");
        for name in used(&text, prefix) {
            let used = layers.iter().position(|layer| *layer == name);
            if used.is_some_and(|used| used > level) {
                upward.push(format!("{} uses {prefix}{name}", file.display()));
            }
        }
    }
    assert!(upward.is_empty(), "upward imports:\n{}", upward.join("\n"));
}

#[test]
fn no_module_uses_one_above_it() {
    check(&source(), "crate::", &LAYERS);
    check(&source().join("http"), "crate::http::", &HTTP);
}

#[test]
fn every_module_has_a_layer() {
    let listed = |layers: &[&str], module: &str| {
        layers.contains(&module) || ["lib", "main", "mod", TESTING].contains(&module)
    };
    for (folder, layers) in [(source(), &LAYERS[..]), (source().join("http"), &HTTP[..])] {
        for file in files(&folder) {
            let module = module(&file, &folder);
            assert!(listed(layers, &module), "{module} is in no layer");
        }
    }
}

#[test]
fn groups_do_not_hide_imports() {
    for file in files(&source()) {
        let text = fs::read_to_string(&file).expect("a text");
        assert!(
            !text.contains("use crate::{"),
            "{}: one `use crate::` line for each module, so that layers can be checked",
            file.display()
        );
    }
}
