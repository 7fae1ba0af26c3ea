//! Names of origins, zones, plans and classes.

use super::values;
use crate::fields::Fields;
use crate::node::Node;
use crate::schema::Table;
use crate::suggest::nearest;

/// Reads the entries of a table of named items, such as `[origins]`.
///
/// The result has `None` for a wrong item. So a route that uses a wrong item is not reported, too.
pub(crate) fn named<'r, T>(
    table: &str,
    known: Table,
    entries: &[Node<'r>],
    mut read: impl FnMut(Fields<'r>, String) -> Option<T>,
) -> Vec<Option<T>> {
    let items = entries.iter().map(|entry| {
        let name = entry.name.to_owned();
        check_name(*entry);
        read(
            Fields::of(*entry, format!("[{table}.{name}]"), known)?,
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

/// Returns a list of names for a message, shortened because a file may have thousands.
pub(crate) fn list(names: &[&str]) -> String {
    const MAX_NAMES: usize = 20;
    let shown = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns the index of the name in `node`. Reports a problem if no such name exists.
pub(crate) fn index(node: Node, table: &str, names: &[&str]) -> Option<usize> {
    let name = values::text(node)?;
    let index = names.iter().position(|known| *known == name);
    if index.is_none() {
        let hint = match (nearest(name, names), names) {
            (_, []) => format!("the file has none; add [{table}.{name}]"),
            (Some(near), [_, _, ..]) => {
                format!("did you mean \"{near}\"? The file has {}", list(names))
            }
            _ => meant(name, names, "the file has"),
        };
        node.missing(&format!("there is no [{table}.{name}]; {hint}"));
    }
    index
}

/// Returns the hint for an unknown name: the nearest name, or all names after `there_are`.
pub(crate) fn meant(name: &str, names: &[&str], there_are: &str) -> String {
    match nearest(name, names) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("{there_are} {}", list(names)),
    }
}
