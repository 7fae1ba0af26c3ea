//! Lists of networks, which may stand in files of their own.

use super::plan_keys::{MAX_WRONG, line_of, lines_of};
use super::prelude::*;
use crate::config::{FileKind, Networks};

pub(super) const NETWORK_LIST: Kind<Option<Networks>> = kind(
    Form::OneOf(&[Form::List(&NETWORK_FORM, 1), Form::Table(FILE)]),
    |node| read(node).map(Some),
    |it| {
        let networks = it.as_ref()?;
        match &networks.file {
            Some(file) => {
                let file = toml_text(&file.display().to_string());
                bare(&format!("{{ file = {file} }}"))
            }
            None => texts(&networks.list),
        }
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
        let mut fields = Fields::of(node, format!("the table {}", node.name), FILE)?;
        let networks = fields.required("file", of_file);
        fields.finish();
        return networks;
    }
    if node.items().is_none() {
        return node.expected(&format!(
            "a list such as {EXAMPLE}, or {{ file = \"partners.txt\" }}"
        ));
    }
    values::filled(EXAMPLE, node)?;
    let list = values::list(EXAMPLE, values::network)(node)?;
    Some(Networks { list, file: None })
}

/// Reads a file with one network a line. Blanks, empty lines and comments are left out.
fn of_file(node: Node) -> Option<Networks> {
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
        match str::from_utf8(line).ok().and_then(values::network_of) {
            Some(network) => list.push(network),
            None if wrong < MAX_WRONG => {
                let found = String::from_utf8_lossy(&line[..line.len().min(60)]);
                let found = toml_string(&found);
                node.wrong(&format!(
                    "{name}, line {number}: expected an address or network such as \"10.0.0.0/8\"; found {found}"
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
    (wrong == 0).then_some(Networks {
        list,
        file: Some(path),
    })
}
