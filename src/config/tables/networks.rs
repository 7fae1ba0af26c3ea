//! Lists of networks, which may stand in files of their own.

use std::path::{Path, PathBuf};

use super::plan_keys::{MAX_WRONG, line_of, lines_of};
use super::prelude::*;
use crate::{FileKind, Networks, Peers};

pub(super) const NETWORK_LIST: Kind<Networks> = kind(
    Form::OneOf(&[Form::List(&NETWORK_FORM, 1), Form::Table(FILE)]),
    read,
    |it| match &it.file {
        Some(file) => shown_file(file),
        None => texts(&it.list),
    },
);

/// Peers of connections from clients.
pub(super) const PEERS: Kind<Peers> = kind(
    Form::OneOf(&[Form::List(&PEER_FORM, 0), Form::Table(FILE)]),
    |node| {
        if node.value.as_table().is_some() {
            let read = |node: Node| of_file(node, PEER, values::peer_of);
            let (patterns, file) = in_table(node, read)?;
            return Some(Peers::new(patterns, Some(file)));
        }
        if node.items().is_none() {
            return node.expected("a list such as [\"10.0.0.0/8\"], or { file = \"proxies.txt\" }");
        }
        let patterns = values::list("[\"10.0.0.0/8\"]", values::peer)(node)?;
        Some(Peers::new(patterns, None))
    },
    |it| match it.file() {
        Some(file) => shown_file(file),
        None => texts(it.patterns()),
    },
);

table! {
    const FILE {
        file: Field::of(NOT_EMPTY_FORM).required("\"partners.txt\""), NextRequest,
            "A file with one network a line.";
    }
}

const EXAMPLE: &str = "[\"192.0.2.0/24\"]";

fn read(node: Node) -> Option<Networks> {
    if node.value.as_table().is_some() {
        let read = |node: Node| of_file(node, NETWORK, values::network_of);
        let (list, file) = in_table(node, read)?;
        let file = Some(file);
        return Some(Networks { list, file });
    }
    if node.items().is_none() {
        return node.expected(&format!(
            "a list such as {EXAMPLE}, or {{ file = \"partners.txt\" }}"
        ));
    }
    let list = values::filled_list(node, EXAMPLE, values::network)?;
    Some(Networks { list, file: None })
}

/// Reads the table with the name of a file.
fn in_table<T>(node: Node, of_file: impl FnOnce(Node) -> Option<T>) -> Option<T> {
    let mut fields = Fields::of(node, format!("the table {}", node.name), FILE)?;
    let found = fields.required("file", of_file);
    fields.finish();
    found
}

fn shown_file(file: &Path) -> Option<Shown> {
    let file = toml_text(&file.display().to_string());
    bare(&format!("{{ file = {file} }}"))
}

/// What a line of a file has.
const NETWORK: &str = "an address or network such as \"10.0.0.0/8\"";
const PEER: &str = "an address or network such as \"10.0.0.0/8\", or \"unix:\" for socket files";

/// Reads a file with one network a line, and returns its path. Blanks, empty lines and comments are left out.
fn of_file<T>(
    node: Node,
    expected: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Option<(Vec<T>, PathBuf)> {
    let what = "the name of a file such as \"partners.txt\"";
    let path = values::named_file(node, FileKind::Networks, what)?;
    let name = values::text(node)?;
    let text = lines_of(node, &path)?;
    let (mut list, mut wrong) = (Vec::new(), 0);
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let line = line_of(line);
        if line.is_empty() {
            continue;
        }
        match str::from_utf8(line).ok().and_then(&read) {
            Some(network) => list.push(network),
            None if wrong < MAX_WRONG => {
                let found = String::from_utf8_lossy(&line[..line.len().min(60)]);
                let found = toml_string(&found);
                node.wrong(&format!(
                    "{name}, line {number}: expected {expected}; found {found}"
                ));
                wrong += 1;
            }
            None => break,
        }
    }
    if list.is_empty() && wrong == 0 {
        node.warn(&format!(
            "{name} has no network, so this list names no client"
        ));
    }
    (wrong == 0).then_some((list, path))
}
