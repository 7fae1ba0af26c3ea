//! Lists of networks, written in the configuration or in separate files.

use std::path::{Path, PathBuf};

use super::plan_keys::{MAX_FILE_SIZE, MAX_WRONG, values_of};
use super::prelude::*;
use crate::{FileKind, Networks, Peers};

/// List of networks, or a table with the name of a file. The arguments of `kind`: form, read, show.
pub(super) const NETWORK_LIST: Kind<Networks> = kind(
    Form::OneOf(&[Form::UniqueList(&NETWORK_FORM, 1), Form::Table(FILE)]),
    |node| {
        let example = "[\"192.0.2.0/24\"]";
        let (list, file) = read(node, example, "partners.txt", values::NETWORK)?;
        if file.is_none() && list.is_empty() {
            // Reports that the list is empty.
            values::filled(node, example);
        }
        Some(Networks { list, file })
    },
    |it| match &it.file {
        Some(file) => shown_file(file),
        None => texts(&it.list),
    },
);

/// Addresses that connections from clients come from.
pub(super) const PEERS: Kind<Peers> = kind(
    Form::OneOf(&[Form::UniqueList(&PEER_FORM, 0), Form::Table(FILE)]),
    |node| {
        let (peers, file) = read(node, "[\"10.0.0.0/8\"]", "proxies.txt", values::PEER)?;
        let has_unix = peers.contains(&None);
        let list = peers.into_iter().flatten().collect();
        Some(Peers::new(Networks { list, file }, has_unix))
    },
    |it| {
        if let Some(file) = &it.networks.file {
            return shown_file(file);
        }
        let networks = it.networks.list.iter().map(ToString::to_string);
        let unix = it.has_unix.then(|| "unix:".to_owned());
        texts(&networks.chain(unix).collect::<Vec<_>>())
    },
);

table! {
    const FILE {
        file: Field::of(NOT_EMPTY_FORM).required("\"partners.txt\""), NextRequest,
            "A file with one network a line.";
    }
}

/// Reads a list, or the name of a file with the list. Messages show the examples.
fn read<T: PartialEq>(
    node: Node,
    list_example: &str,
    file_example: &str,
    pattern: values::Pattern<T>,
) -> Option<(Vec<T>, Option<PathBuf>)> {
    if node.value.as_table().is_some() {
        let mut fields = Fields::of(node, format!("the table {}", node.name), FILE)?;
        let found = fields.required("file", |node| read_file(node, pattern));
        fields.finish();
        return found.map(|(list, file)| (list, Some(file)));
    }
    if node.items().is_none() {
        return node.expected(&format!(
            "a list such as {list_example}, or {{ file = \"{file_example}\" }}"
        ));
    }
    let list = values::list(node, list_example, |item| values::pattern(item, pattern))?;
    Some((list, None))
}

fn shown_file(file: &Path) -> Option<Shown> {
    let file = toml_text(&file.display().to_string());
    bare(&format!("{{ file = {file} }}"))
}

/// Reads a file with one network per line, and returns its path.
///
/// Blanks, empty lines and comments are skipped.
fn read_file<T>(node: Node, pattern: values::Pattern<T>) -> Option<(Vec<T>, PathBuf)> {
    let what = "the name of a file such as \"partners.txt\"";
    let path = values::named_file(node, FileKind::Networks, what)?;
    let name = values::text(node)?;
    let text = values::content(node, &path, MAX_FILE_SIZE, "")?;
    let (expected, parse) = pattern;
    let mut list = Vec::new();
    let mut wrong = 0;
    for (line, value) in values_of(&text) {
        match str::from_utf8(value).ok().and_then(parse) {
            Some(network) => list.push(network),
            None if wrong < MAX_WRONG => {
                let found = String::from_utf8_lossy(&value[..value.len().min(60)]);
                let found = toml_string(&found);
                node.wrong(&format!(
                    "{name}, line {line}: expected {expected}; found {found}"
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
