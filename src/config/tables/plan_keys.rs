//! Keys of the plans of a zone: reads them from lists and files, and checks that each has one plan.
//!
//! A file has one key a line, and comments that begin with `#`.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::prelude::*;
use crate::MAX_KEY_SIZE;
use crate::node::HIDDEN;

/// Maximum number of keys with plans in a zone.
const MAX_KEYS: usize = 1_000_000;
/// Maximum size of a file with keys or settings, in bytes.
pub(crate) const MAX_FILE_SIZE: u64 = 100 << 20;
/// Bytes that some editors put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Maximum number of reported lines of one file.
pub(super) const MAX_WRONG: usize = 10;

/// Index of the plan of each key, in the order of the file.
type ByKey = HashMap<Box<[u8]>, usize, RandomState>;

/// Keys of all plans of a zone.
#[derive(Default)]
pub(super) struct Keys<'r> {
    /// Plan of each key.
    pub(super) by_key: ByKey,
    /// Names of the plans read so far.
    pub(super) names: Vec<&'r str>,
    /// Values that name files, each with the index of its plan.
    pub(super) files: Vec<(Node<'r>, usize)>,
}

impl Keys<'_> {
    /// Adds a key of a plan. Fails with a message if the key is wrong.
    ///
    /// `node`: the value that has the key, or that names its file. `plan`: index of the plan.
    fn add(&mut self, node: Node, key: &[u8], plan: usize) -> Result<(), String> {
        if key.is_empty() {
            return Err("a key is empty; no request has that key".to_owned());
        }
        if key.len() > MAX_KEY_SIZE {
            let dots = if node.is_hidden { "" } else { "..." };
            let shown = key_in_message(node, key);
            return Err(format!(
                "the key {shown}{dots} has over {MAX_KEY_SIZE} bytes"
            ));
        }
        if let Some(other) = self.by_key.get(key).filter(|other| **other != plan) {
            let (other, this) = (self.names[*other], self.names[plan]);
            return Err(format!(
                "the key {} is in the plans {other} and {this}; remove it from one",
                key_in_message(node, key)
            ));
        }
        if self.by_key.len() >= MAX_KEYS {
            return Err(format!("the plans of a zone have at most {MAX_KEYS} keys"));
        }
        self.by_key.insert(key.into(), plan);
        Ok(())
    }

    /// Reads the keys that are written in the configuration itself.
    pub(super) fn read_list(&mut self, node: Node, plan: usize) -> Option<Vec<String>> {
        values::list(node, "[\"alice\", \"bob\"]", |item| {
            let key = values::text(item)?;
            if key.bytes().any(|byte| byte.is_ascii_control()) {
                item.warn("the key has a control byte: no client sends it");
            }
            if let Err(problem) = self.add(item, key.as_bytes(), plan) {
                // The location identifies the key if the message does not show it.
                if item.is_hidden {
                    item.report_as_is(&problem);
                } else {
                    node.report_problem(&problem);
                }
            }
            Some(key.to_owned())
        })
    }

    /// Reads a file with one key per line. Blanks, empty lines and comments are skipped.
    pub(super) fn read_file(&mut self, node: Node, plan: usize) {
        let Some(name) = node.value.as_str().filter(|name| !name.is_empty()) else {
            return;
        };
        let Some(text) = values::content(node, &node.in_folder(name), MAX_FILE_SIZE, "") else {
            return;
        };
        let mut wrong_count = 0;
        // The first unusual key, with its line and what is unusual about it.
        let mut first_odd = None;
        for (line, key) in values_of(&text) {
            first_odd = first_odd.or_else(|| Some((line, key, oddity(key)?)));
            if let Err(problem) = self.add(node, key, plan) {
                if node.is_hidden {
                    node.report_as_is(&format!("line {line} of the file: {problem}"));
                } else {
                    node.report_problem(&format!("{name}, line {line}: {problem}"));
                }
                wrong_count += 1;
                if wrong_count == MAX_WRONG {
                    return;
                }
            }
        }
        if let Some((line, key, oddity)) = first_odd {
            // The file was read, so its name is not a client's key.
            let name = if node.is_expanded() { "the file" } else { name };
            let key = key_in_message(node, key);
            node.warn(&format!(
                "{name}, line {line}: the key {key} {oddity}. Write one key a line, as requests have it."
            ));
        }
    }
}

/// Returns the beginning of a key for messages. `node`: as in [`Keys::add`].
fn key_in_message(node: Node, key: &[u8]) -> String {
    if node.is_hidden {
        return HIDDEN.to_owned();
    }
    toml_string(&String::from_utf8_lossy(&key[..key.len().min(60)]))
}

/// Returns what is unusual about a key of a file, if anything is.
fn oddity(key: &[u8]) -> Option<&'static str> {
    let is_quote = |byte: Option<&u8>| byte.is_some_and(|byte| b"\"'".contains(byte));
    if key.iter().any(u8::is_ascii_control) {
        Some("has a control byte")
    } else if key.contains(&b',') {
        Some("has a comma")
    } else if is_quote(key.first()) || is_quote(key.last()) {
        Some("is in quotes")
    } else {
        None
    }
}

/// Returns the values in a file of one value per line, with their line numbers.
pub(super) fn values_of(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let lines = text.split(|byte| *byte == b'\n').map(value_in_line);
    (1..).zip(lines).filter(|(_, value)| !value.is_empty())
}

/// Returns the value in a line: the text before a comment, without blanks.
///
/// A comment begins with `#` at the start of a line or after a blank.
fn value_in_line(line: &[u8]) -> &[u8] {
    let is_comment = |index: &usize| {
        line[*index] == b'#' && (*index == 0 || line[*index - 1].is_ascii_whitespace())
    };
    let comment = (0..line.len()).find(is_comment);
    line[..comment.unwrap_or(line.len())].trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_probably_something_else_are_odd() {
        for (key, odd) in [
            ("alice", None),
            ("M\u{fc}ller", None),
            ("alice,gold", Some("has a comma")),
            ("\"bob\"", Some("is in quotes")),
            ("carol\u{1}", Some("has a control byte")),
        ] {
            assert_eq!(oddity(key.as_bytes()), odd, "{key}");
        }
    }

    #[test]
    fn a_line_has_a_key_and_perhaps_a_comment() {
        for (line, key) in [
            ("alice", "alice"),
            ("  alice \r", "alice"),
            ("alice # since May", "alice"),
            ("a#b", "a#b"),
            ("a b", "a b"),
            ("  # alice", ""),
            ("", ""),
        ] {
            assert_eq!(value_in_line(line.as_bytes()), key.as_bytes(), "{line}");
        }
    }
}
