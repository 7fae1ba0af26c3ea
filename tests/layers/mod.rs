//! Checks that the modules of `src/gateway` are layers that use only themselves and lower layers.
//!
//! Between crates, Cargo ensures this.

mod circles;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files_below;

/// The layers, lowest first: modules of `src/gateway`, or submodules.
///
/// The last one is for unit tests only.
#[rustfmt::skip]
const LAYERS: [&str; 22] = [
    "base64_bytes", "overrides", "time", "observe", "store", "replay", "zone", "room",
    "http::message", "http::tcp", "http::http2", "origin::error", "gate", "collapse", "origin",
    "http::downstream", "http::gateway", "http::exchange", "status", "admin", "server",
    "simulation",
];

/// Returns the folder of a crate.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = files_below(folder);
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files
}

/// Returns the layer of a module path, if it has one.
///
/// The reports of nouns are part of the status, and their API is part of the admin port.
fn layer(path: &[&str]) -> Option<usize> {
    let path = match path {
        [_, "report", ..] => &["status"],
        [_, "api", ..] => &["admin"],
        _ => path,
    };
    let of = |length| {
        let path = path.get(..length)?.join("::");
        LAYERS.iter().position(|layer| *layer == path)
    };
    of(2).or_else(|| of(1))
}

/// Returns the layer of a file; `None` if it has none.
///
/// The crate's root and `http/mod.rs` only list modules. Some files serve unit tests of any layer.
fn layer_of(file: &Path) -> Option<usize> {
    let below = file
        .strip_prefix(source("gateway"))
        .expect("a file of the source");
    let path = below.with_extension("").to_string_lossy().into_owned();
    if ["lib", "http/mod", "test_settings"].contains(&&*path) {
        return None;
    }
    let path: Vec<&str> = path.split('/').collect();
    let layer = layer(&path);
    assert!(layer.is_some(), "{path:?} is in no layer");
    layer
}

/// Returns the module paths that a text names, as far as they decide a layer.
fn used(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| {
        line.split("crate::").skip(1).map(|rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            let path = &rest[..end.unwrap_or(rest.len())];
            path.split("::").take(2).collect()
        })
    })
}

#[test]
fn no_module_uses_one_above_it() {
    let mut upward = Vec::new();
    for file in files(&source("gateway")) {
        let Some(own) = layer_of(&file) else {
            continue;
        };
        let text = fs::read_to_string(&file).expect("a text");
        for path in used(&text) {
            if layer(&path).is_some_and(|used| used > own) {
                upward.push(format!("{} uses {}", file.display(), path.join("::")));
            }
        }
    }
    assert!(upward.is_empty(), "upward imports:\n{}", upward.join("\n"));
}

#[test]
fn groups_do_not_hide_imports() {
    for file in files(&source("gateway")) {
        let text = fs::read_to_string(&file).expect("a text");
        assert!(
            !text.contains("use crate::{"),
            "{}: one `use crate::` line for each module, so that layers can be checked",
            file.display()
        );
    }
}
