//! The keys of plans, and their files.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use foldhash::fast::RandomState;

use super::prelude::*;
use crate::config::hidden::HIDDEN;
use crate::config::read_regular;

/// Most keys of a zone that have plans.
const MAX_KEYS: usize = 1_000_000;
/// Longest key, as in a zone.
const MAX_KEY_SIZE: usize = 65_535;
/// Largest file, in bytes.
const LARGEST: u64 = 100 * 1024 * 1024;
/// What some editors put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// How many wrong lines of one file are reported.
pub(super) const MAX_WRONG: usize = 10;

type ByKey = HashMap<Box<[u8]>, usize, RandomState>;

/// The keys of all plans of a zone.
#[derive(Default)]
pub(super) struct Keys<'r> {
    pub(super) by_key: ByKey,
    /// Whether messages do not show them.
    pub(super) hidden: bool,
    /// The names of the plans so far.
    pub(super) names: Vec<&'r str>,
    /// The values that name files, each with its plan.
    pub(super) files: Vec<(Node<'r>, usize)>,
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
        if key.len() > MAX_KEY_SIZE {
            let dots = if self.hidden { "" } else { "..." };
            let shown = shown();
            return Err(format!(
                "the key {shown}{dots} has over {MAX_KEY_SIZE} bytes"
            ));
        }
        if let Some(other) = self.by_key.get(key).filter(|other| **other != plan) {
            let (other, this) = (self.names[*other], self.names[plan]);
            return Err(format!(
                "the key {} is in the plans {other} and {this}; remove it from one",
                shown()
            ));
        }
        if self.by_key.len() >= MAX_KEYS {
            return Err(format!("the plans of a zone have at most {MAX_KEYS} keys"));
        }
        self.by_key.insert(key.into(), plan);
        Ok(())
    }

    pub(super) fn read_list(&mut self, node: Node, plan: usize) -> Option<Vec<String>> {
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
    pub(super) fn read_file(&mut self, node: Node, plan: usize) {
        let Some(name) = node.value.as_str().filter(|name| !name.is_empty()) else {
            return;
        };
        let Some(text) = lines_of(node, &node.in_folder(name)) else {
            return;
        };
        let mut wrong = 0;
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let key = line_of(line);
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
                if wrong == MAX_WRONG {
                    return;
                }
            }
        }
    }
}

/// The lines of a file that the value names; `None` if it cannot be read, which is reported.
pub(super) fn lines_of(node: Node, path: &Path) -> Option<Vec<u8>> {
    match content(path) {
        Ok(mut text) => {
            if text.starts_with(BYTE_ORDER_MARK) {
                text.drain(..BYTE_ORDER_MARK.len());
            }
            Some(text)
        }
        Err(error) => {
            node.tell(&format!("{} cannot be read: {error}", node.shown(path)));
            None
        }
    }
}

/// The content of a file.
pub(in crate::config) fn content(path: &Path) -> io::Result<Vec<u8>> {
    read_regular(path, LARGEST)
}

/// The value in a line: what stands before a comment, without blanks.
///
/// A comment begins with `#` at the beginning of a line or behind a blank.
pub(super) fn line_of(line: &[u8]) -> &[u8] {
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
            assert_eq!(line_of(line.as_bytes()), key.as_bytes(), "{line}");
        }
    }
}
