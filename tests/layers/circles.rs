//! Checks that no files of a crate import each other in a circle.
//!
//! A module and the files in its folder count as one: imports among them are no circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{files, source};

/// Path of a file as a module: `["limit", "bucket"]`.
type Module = Vec<String>;

/// Returns the code of a file without its tests.
fn code(text: &str) -> &str {
    let tests = text.find("#[cfg(test)]\nmod tests {");
    &text[..tests.unwrap_or(text.len())]
}

/// Returns the paths of all `use` items but those of unit tests, with groups expanded.
fn paths(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut lines = code(text).lines().map(str::trim);
    let mut is_for_tests = false;
    while let Some(line) = lines.next() {
        if let Some((visibility, tree)) = line.split_once("use ")
            && (visibility.is_empty() || visibility.starts_with("pub"))
        {
            let mut tree = tree.to_owned();
            while !tree.ends_with(';') {
                tree.push_str(lines.next().expect("the rest of a `use` item"));
            }
            if !is_for_tests {
                expand(tree.trim_end_matches(';'), "", &mut paths);
            }
        }
        is_for_tests = line == "#[cfg(test)]";
    }
    paths
}

fn expand(tree: &str, prefix: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((head, group)) = tree.split_once('{') else {
        let path = tree.split_whitespace().next().unwrap_or_default();
        return paths.push(format!("{prefix}{path}"));
    };
    let group = group.trim_end().trim_end_matches('}');
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !group[start..at].trim().is_empty() {
                    expand(&group[start..at], &format!("{prefix}{head}"), paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Returns the file to which a path in `from` leads, if it is one of `all`.
fn target(path: &str, from: &Module, all: &BTreeMap<Module, String>) -> Option<Module> {
    let mut parts = path.split("::").peekable();
    let mut found = from.clone();
    match parts.peek().copied() {
        Some("crate") => {
            found.clear();
            parts.next();
        }
        Some("self") => _ = parts.next(),
        Some("super") => {
            while parts.next_if_eq(&"super").is_some() {
                found.pop();
            }
        }
        _ => {}
    }
    found.extend(parts.map(str::to_owned));
    while !found.is_empty() && !all.contains_key(&found) {
        found.pop();
    }
    Some(found).filter(|found| !found.is_empty())
}

fn modules(name: &str) -> BTreeMap<Module, String> {
    let root = source(name);
    let mut modules = BTreeMap::new();
    for file in files(&root) {
        let below = file.strip_prefix(&root).expect("a file of the crate");
        let parts = below.with_extension("");
        let parts = parts.iter().map(|part| part.to_string_lossy().into_owned());
        let module: Module = parts
            .filter(|part| part != "mod" && part != "lib")
            .collect();
        let is_test = |part: &String| {
            part.starts_with("test")
                || ["properties", "crash", "simulation"].contains(&part.as_str())
        };
        if !module.iter().any(is_test) {
            modules.insert(module, fs::read_to_string(&file).expect("a text"));
        }
    }
    modules
}

/// Returns a path from `from` back to `to`, by depth-first search.
fn way<'m>(
    from: &'m Module,
    to: &Module,
    uses: &'m BTreeMap<Module, BTreeSet<Module>>,
    seen: &mut BTreeSet<&'m Module>,
) -> Option<Vec<String>> {
    for next in uses.get(from).into_iter().flatten() {
        if next == to {
            return Some(vec![from.join("::"), to.join("::")]);
        }
        if seen.insert(next)
            && let Some(mut rest) = way(next, to, uses, seen)
        {
            rest.insert(0, from.join("::"));
            return Some(rest);
        }
    }
    None
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    for (name, least) in [
        ("limit", 50),
        ("config", 100),
        ("gateway", 300),
        ("tools", 50),
    ] {
        let all = modules(name);
        let mut uses: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (from, text) in &all {
            let targets = paths(text)
                .iter()
                .filter_map(|path| target(path, from, &all))
                .filter(|to| !from.starts_with(to) && !to.starts_with(from))
                .collect();
            uses.insert(from.clone(), targets);
        }
        let edges: usize = uses.values().map(BTreeSet::len).sum();
        assert!(edges > least, "only {edges} imports were found in {name}");
        let circles: Vec<String> = uses
            .keys()
            .filter_map(|module| way(module, module, &uses, &mut BTreeSet::new()))
            .map(|way| way.join(" uses "))
            .collect();
        assert!(circles.is_empty(), "circles:\n{}", circles.join("\n"));
    }
}

#[test]
fn imports_after_one_for_unit_tests_are_found() {
    let text = "\
#[cfg(test)]
use super::tested;
use super::here::{self, Here};

pub(super) use crate::{
    one::One,
    two::{Three, Four},
};

fn user() {}

#[cfg(test)]
mod tests {
    use super::user;
}
";
    let found = paths(text);
    let expected = [
        "super::here::self",
        "super::here::Here",
        "crate::one::One",
        "crate::two::Three",
        "crate::two::Four",
    ];
    assert_eq!(found, expected);
}
