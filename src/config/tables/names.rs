//! Names that users choose, such as those of origins and zones: their form, and references to them.

use super::values;
use crate::fields::Fields;
use crate::node::Node;
use crate::schema::Table;
use crate::suggest::nearest;

/// Reads the entries of a table of named items, such as `[origins]`, each with `read`.
///
/// `known`: possible fields of an item. The result has `None` for a wrong item, so that its index
/// stays valid and a route that uses the item is not reported as well.
pub(crate) fn read_named<'r, T>(
    table: &str,
    known: Table,
    entries: &[Node<'r>],
    mut read: impl FnMut(Fields<'r>, String) -> Option<T>,
) -> Vec<Option<T>> {
    let items = entries.iter().map(|entry| {
        let name = entry.name.to_owned();
        check_name(*entry);
        read(
            Fields::begin(*entry, format!("[{table}.{name}]"), known)?,
            name,
        )
    });
    items.collect()
}

/// Returns whether a text can be the name of an origin, a zone or a plan.
pub(crate) fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    !text.is_empty() && text.chars().all(is_part)
}

/// Message about a text that [`is_name`] refuses.
pub(crate) const NO_NAME: &str = "a name is made of letters, digits, _, - and .";

/// Reports a problem if the name of this entry is not valid.
pub(crate) fn check_name(entry: Node) {
    if !is_name(entry.name) {
        entry.report_as_is(NO_NAME);
    }
}

/// Joins names for a message. Of many names, it gives the first ones and the number of the others.
pub(crate) fn join_names(names: &[&str]) -> String {
    const MAX_NAMES: usize = 20;
    let shown = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Reads a reference to a named item, and returns its index in `names`.
///
/// Reports a problem if there is no such name. `table`: name of the table with the items.
pub(crate) fn read_index(node: Node, table: &str, names: &[&str]) -> Option<usize> {
    let name = values::text(node)?;
    let index = names.iter().position(|known| *known == name);
    if index.is_none() {
        let all = join_names(names);
        let hint = match (nearest(name, names), names) {
            (_, []) => format!("the file has none; add [{table}.{name}]"),
            (Some(near), [_, _, ..]) => format!("did you mean \"{near}\"? The file has {all}"),
            _ => suggest_name(name, names, "the file has"),
        };
        node.report_missing(&format!("there is no [{table}.{name}]; {hint}"));
    }
    index
}

/// Returns the hint for an unknown name: the nearest name, or all names after `there_are`.
pub(crate) fn suggest_name(name: &str, names: &[&str], there_are: &str) -> String {
    match nearest(name, names) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("{there_are} {}", join_names(names)),
    }
}
