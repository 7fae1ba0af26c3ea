//! Lists of networks, written in the configuration or in a file: `{ file = "partners.txt" }`.
//!
//! `kinds` explains kinds of values such as `NETWORK_LIST`.

use std::path::{Path, PathBuf};

use super::plan_keys::{MAX_FILE_SIZE, MAX_WRONG, values_of};
use super::prelude::*;
use crate::{FileKind, Networks, Peers};

/// List of networks, or a table with the name of a file.
pub(super) const NETWORK_LIST: Kind<Networks> = Kind {
    form: Form::OneOf(&[Form::UniqueList(&NETWORK_FORM, 1), Form::Table(FILE)]),
    read: |node| {
        let example = "[\"192.0.2.0/24\"]";
        let (list, file) = read(node, example, "partners.txt", values::NETWORK)?;
        if file.is_none() && list.is_empty() {
            values::require_items(node, example);
        }
        Some(Networks { list, file })
    },
    show: |it| match &it.file {
        Some(file) => show_file(file),
        None => show_texts(&it.list),
    },
};

/// List of peers, or a table with the name of a file. A peer is a network, or `"unix:"`.
pub(super) const PEERS: Kind<Peers> = Kind {
    form: Form::OneOf(&[Form::UniqueList(&PEER_FORM, 0), Form::Table(FILE)]),
    read: |node| {
        let (peers, file) = read(node, "[\"10.0.0.0/8\"]", "proxies.txt", values::PEER)?;
        // `None` stands for `"unix:"`.
        let has_unix = peers.contains(&None);
        let list = peers.into_iter().flatten().collect();
        Some(Peers::new(Networks { list, file }, has_unix))
    },
    show: |it| {
        if let Some(file) = &it.networks.file {
            return show_file(file);
        }
        let networks = it.networks.list.iter().map(ToString::to_string);
        let unix = it.has_unix.then(|| "unix:".to_owned());
        show_texts(&networks.chain(unix).collect::<Vec<_>>())
    },
};

// Fields of the table with the name of a file.
table! {
    const FILE {
        file: Field::of_form(NOT_EMPTY_FORM).required("\"partners.txt\""), NextRequest,
            "A file with one network a line.";
    }
}

/// Reads a list, or the name of a file with the list. Returns the list and the path of the file.
///
/// `parser`: parser of an item. Messages show the examples.
fn read<T: PartialEq>(
    node: Node,
    list_example: &str,
    file_example: &str,
    parser: values::TextParser<T>,
) -> Option<(Vec<T>, Option<PathBuf>)> {
    if node.value.as_table().is_some() {
        let mut fields = Fields::begin(node, format!("the table {}", node.name), FILE)?;
        let found = fields.read_required("file", |node| read_file(node, parser));
        fields.finish();
        return found.map(|(list, file)| (list, Some(file)));
    }
    if node.items().is_none() {
        return node.report_expected(&format!(
            "a list such as {list_example}, or {{ file = \"{file_example}\" }}"
        ));
    }
    let list = values::list(node, list_example, |item| values::parse_as(item, parser))?;
    Some((list, None))
}

/// Shows a list that is in a file.
fn show_file(file: &Path) -> Option<Shown> {
    let file = toml_text(&file.display().to_string());
    show_bare(&format!("{{ file = {file} }}"))
}

/// Reads a file with one network per line, and returns its path.
///
/// Blanks, empty lines and comments are skipped.
fn read_file<T>(node: Node, parser: values::TextParser<T>) -> Option<(Vec<T>, PathBuf)> {
    let what = "the name of a file such as \"partners.txt\"";
    let path = values::named_file(node, FileKind::Networks, what)?;
    let name = values::text(node)?;
    let text = values::content(node, &path, MAX_FILE_SIZE, "")?;
    let (expected, parse) = parser;
    let mut list = Vec::new();
    let mut wrong_count = 0;
    for (line, value) in values_of(&text) {
        match str::from_utf8(value).ok().and_then(parse) {
            Some(network) => list.push(network),
            None if wrong_count < MAX_WRONG => {
                // The message shows the first 60 bytes.
                let found = String::from_utf8_lossy(&value[..value.len().min(60)]);
                let found = toml_string(&found);
                node.report_problem(&format!(
                    "{name}, line {line}: expected {expected}; found {found}"
                ));
                wrong_count += 1;
            }
            None => break,
        }
    }
    if list.is_empty() && wrong_count == 0 {
        node.warn(&format!(
            "{name} has no network, so this list names no client"
        ));
    }
    (wrong_count == 0).then_some((list, path))
}
