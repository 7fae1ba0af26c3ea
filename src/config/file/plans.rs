//! Reads the plans of a zone, and their files of keys.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::{Fields, NO_NAME, Node, is_name, values};
use crate::config::hidden::HIDDEN;
use crate::config::toml_string::toml_string;
use crate::config::{Plan, Plans, read_regular, schema};
use crate::limit::{Algorithm, MAX_WEIGHT, Rate};

/// Most keys of a zone that have plans.
const MOST_KEYS: usize = 1_000_000;
/// Longest key, as in a zone.
const LONGEST: usize = 65_535;
/// Largest file, in bytes.
const LARGEST: u64 = 100 * 1024 * 1024;
/// What some editors put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// How many wrong lines of one file are reported.
const MOST_WRONG: usize = 10;

type ByKey = HashMap<Box<[u8]>, usize, RandomState>;

/// What plans depend on in their zone.
pub(super) struct OfZone<'a> {
    pub(super) name: &'a str,
    pub(super) algorithm: Algorithm,
    /// Whether the zone can count at this rate. Reports a problem if not.
    pub(super) fits: &'a dyn Fn(Node, Rate) -> bool,
    /// Whether messages do not show keys.
    pub(super) hides_keys: bool,
}

/// Reads `[zones.NAME.plans]`. `classes` gets the values that name classes.
pub(super) fn read<'r>(
    node: Node<'r>,
    zone: &OfZone<'_>,
    classes: &mut Vec<Node<'r>>,
) -> Option<Plans> {
    let node = if zone.hides_keys { node.hidden() } else { node };
    let Some(entries) = node.entries() else {
        return node.expected(&format!(
            "a table for each, such as [zones.{}.plans.gold]",
            zone.name
        ));
    };
    let mut keys = Keys {
        hidden: zone.hides_keys,
        ..Keys::default()
    };
    let mut plans = Vec::new();
    for (index, mut entry) in entries.into_iter().enumerate() {
        let is_named = is_name(entry.name);
        if zone.hides_keys && !(is_named && entry.value.is_table()) {
            // It may be a key, and no plan.
            entry.name = node.name;
        }
        if !is_named {
            entry.tell(NO_NAME);
        }
        let title = format!("[zones.{}.plans.{}]", zone.name, entry.name);
        keys.names.push(entry.name);
        let fields = Fields::of(entry, title, schema::PLAN);
        plans.push(fields.and_then(|fields| plan(entry, fields, index, zone, &mut keys, classes)));
    }
    // After all lists: of a key that is in two plans, the line in a file is the harder to find.
    for (node, plan) in std::mem::take(&mut keys.files) {
        keys.read_file(node, plan);
    }
    let plans: Vec<Plan> = plans.into_iter().collect::<Option<_>>()?;
    Some(Plans::new(plans, keys.by_key))
}

fn plan<'r>(
    entry: Node<'r>,
    mut fields: Fields<'r>,
    index: usize,
    zone: &OfZone<'_>,
    keys: &mut Keys<'r>,
    classes: &mut Vec<Node<'r>>,
) -> Option<Plan> {
    let (keys_node, file_node) = (fields.get("keys"), fields.get("file"));
    let is_empty = |node: &Node| node.items().is_some_and(|items| items.is_empty());
    if keys_node.as_ref().is_none_or(is_empty) && file_node.is_none() {
        entry.tell("the plan has no keys; add some such as keys = [\"alice\"], or file = \"gold.txt\" with one key a line");
    }
    let written = keys_node.map_or(Some(Vec::new()), |node| keys.read_list(node, index));
    let file = file_node.map(file);
    keys.files.extend(file_node.map(|node| (node, index)));
    let rate = fields.get("rate").map(|node| {
        let rate = values::rate_or_unlimited(node);
        rate.filter(|rate| (zone.fits)(node, *rate))
    });
    let burst = fields.get("burst").map(|node| burst(node, zone.algorithm));
    let weight = fields.optional("weight", 1, values::whole(1..=MAX_WEIGHT));
    let class = fields.get("class").map(|node| {
        let name = values::class(node)?;
        classes.push(node);
        Some(Arc::from(name))
    });
    fields.finish();
    Some(Plan {
        name: entry.name.into(),
        keys: written?,
        file: optional(file)?,
        rate: optional(rate)?,
        burst: optional(burst)?,
        weight: weight?,
        class: optional(class)?,
    })
}

/// `None` for a wrong value; `Some(None)` if there is none.
#[expect(clippy::option_option, reason = "a wrong value is not an absent one")]
fn optional<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        None => Some(None),
        Some(read) => read.map(Some),
    }
}

/// The path of a file of keys.
fn file(node: Node) -> Option<PathBuf> {
    let name = values::text(node)?;
    if name.is_empty() {
        return node.expected("the name of a file such as \"gold.txt\"");
    }
    let path = node.in_folder(name);
    node.report.names(path.clone());
    Some(path)
}

fn burst(node: Node, algorithm: Algorithm) -> Option<u32> {
    if algorithm.has_windows() {
        node.tell(&format!(
            "the zone counts by {algorithm}, which allows the requests of its rate in each period and no burst; remove burst"
        ));
        return None;
    }
    let least = u32::from(!algorithm.queues());
    values::whole(least..=u32::MAX)(node)
}

/// The keys of all plans of a zone.
#[derive(Default)]
struct Keys<'r> {
    by_key: ByKey,
    /// Whether messages do not show them.
    hidden: bool,
    /// The names of the plans so far.
    names: Vec<&'r str>,
    /// The values that name files, each with its plan.
    files: Vec<(Node<'r>, usize)>,
}

impl Keys<'_> {
    /// Adds a key of a plan. Returns what is wrong with it.
    fn add(&mut self, key: &[u8], plan: usize) -> Result<(), String> {
        let shown = || {
            if self.hidden {
                return HIDDEN.to_owned();
            }
            toml_string(&String::from_utf8_lossy(&key[..key.len().min(60)]))
        };
        if key.is_empty() {
            return Err("a key is empty; no request has that key".to_owned());
        }
        if key.len() > LONGEST {
            let dots = if self.hidden { "" } else { "..." };
            let shown = shown();
            return Err(format!("the key {shown}{dots} has over {LONGEST} bytes"));
        }
        if let Some(other) = self.by_key.get(key).filter(|other| **other != plan) {
            let (other, this) = (self.names[*other], self.names[plan]);
            return Err(format!(
                "the key {} is in the plans {other} and {this}; remove it from one",
                shown()
            ));
        }
        if self.by_key.len() >= MOST_KEYS {
            return Err(format!("the plans of a zone have at most {MOST_KEYS} keys"));
        }
        self.by_key.insert(key.into(), plan);
        Ok(())
    }

    fn read_list(&mut self, node: Node, plan: usize) -> Option<Vec<String>> {
        let hidden = self.hidden;
        let read = values::list("[\"alice\", \"bob\"]", |item| {
            let key = values::text(item)?;
            if let Err(wrong) = self.add(key.as_bytes(), plan) {
                // The place tells which key it is if the message does not.
                if hidden {
                    item.tell(&wrong);
                } else {
                    node.wrong(&wrong);
                }
            }
            Some(key.to_owned())
        });
        read(node)
    }

    /// Reads a file with one key a line. Blanks around keys, empty lines and comments are left out.
    fn read_file(&mut self, node: Node, plan: usize) {
        let Some(name) = node.value.as_str().filter(|name| !name.is_empty()) else {
            return;
        };
        let path = node.in_folder(name);
        let text = match content(&path) {
            Ok(text) => text,
            Err(error) => {
                return node.tell(&format!("{} cannot be read: {error}", node.shown(&path)));
            }
        };
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
        let mut wrong = 0;
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let key = key_of(line);
            if key.is_empty() {
                continue;
            }
            if let Err(problem) = self.add(key, plan) {
                if self.hidden {
                    node.tell(&format!("line {number} of the file: {problem}"));
                } else {
                    node.wrong(&format!("{name}, line {number}: {problem}"));
                }
                wrong += 1;
                if wrong == MOST_WRONG {
                    return;
                }
            }
        }
    }
}

/// The content of a file.
pub(super) fn content(path: &Path) -> io::Result<Vec<u8>> {
    read_regular(path, LARGEST)
}

/// The key in a line: what stands before a comment, without blanks.
///
/// A comment begins with `#` at the beginning of a line or behind a blank.
fn key_of(line: &[u8]) -> &[u8] {
    let starts =
        |at: &usize| line[*at] == b'#' && (*at == 0 || line[*at - 1].is_ascii_whitespace());
    let comment = (0..line.len()).find(starts);
    line[..comment.unwrap_or(line.len())].trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_key_and_perhaps_a_comment() {
        for (line, key) in [
            ("alice", "alice"),
            ("  alice \r", "alice"),
            ("alice # since May", "alice"),
            ("alice\t#", "alice"),
            ("a#b", "a#b"),
            ("a b", "a b"),
            ("# alice", ""),
            ("  # alice", ""),
            ("", ""),
        ] {
            assert_eq!(key_of(line.as_bytes()), key.as_bytes(), "{line}");
        }
    }
}
