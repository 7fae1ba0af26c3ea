//! Reads a table of a parsed file field by field, so that one wrong field hides no other.
//!
//! `node` has single values, `schema` the definitions of tables and fields, and `report` collects
//! the problems. The tables of the file are in `tables`.

use toml::Spanned;
use toml::de::DeTable;

use super::node::{HIDDEN, Node};
use super::report::Report;
use super::schema::{Field, Table};
use super::suggest::nearest;
use super::toml_string::toml_string;

/// Field that only the whole file has. If it stands below a table, TOML counts it to that table.
const INCLUDE: &str = "include";
/// Message about `include` in a table.
const MISPLACED_INCLUDE: &str =
    "this stands at the top of the file; move it above the first table, such as [server]";

/// A table with a fixed set of fields, while it is read.
pub(super) struct Fields<'r> {
    /// Name of the table in messages.
    title: String,
    /// Byte offset of the table in the text.
    offset: usize,
    /// `None` if the file omits the whole table, so that every field has its default.
    table: Option<&'r DeTable<'r>>,
    /// Report of the text that contains the table.
    pub(super) report: &'r Report<'r>,
    /// Whether messages show neither the table's values nor its unknown names.
    is_hidden: bool,
    /// All fields that the table may have.
    known: Table,
    /// Names of the fields that have been read.
    requested: Vec<&'static str>,
    /// Names of the fields that are wrong, or required and missing.
    wrong: Vec<&'static str>,
    /// Fields of other tables that users may write here, each with the message about it.
    hints: Vec<(&'static str, &'static str)>,
}

impl<'r> Fields<'r> {
    /// Begins to read a whole file as a table. `known`: its possible fields.
    pub(super) fn root(
        known: Table,
        file: &'r Spanned<DeTable<'r>>,
        report: &'r Report<'r>,
    ) -> Self {
        let title = if report.is_included {
            "an included file"
        } else {
            "the file"
        };
        Self {
            title: title.to_owned(),
            table: Some(file.get_ref()),
            ..Self::absent(known, report)
        }
    }

    /// Begins to read the table in a node. Reports a problem if the value is not a table.
    ///
    /// `title`: name of the table in messages. `known`: its possible fields.
    pub(super) fn begin(node: Node<'r>, title: String, known: Table) -> Option<Self> {
        let Some(table) = node.value.as_table() else {
            if node.name == INCLUDE && node.value.is_array() {
                return node.refuse_as_is(MISPLACED_INCLUDE);
            }
            return node.report_expected("a table");
        };
        Some(Self {
            title,
            offset: node.offset,
            table: Some(table),
            is_hidden: node.is_hidden,
            ..Self::absent(known, node.report)
        })
    }

    /// Returns the table `[name]` of the file, or an empty table if the file omits it.
    pub(super) fn section(&mut self, name: &'static str, known: Table) -> Self {
        let given = self.get(name);
        let given = given.and_then(|node| Fields::begin(node, format!("[{name}]"), known));
        given.unwrap_or_else(|| Fields::absent(known, self.report))
    }

    /// Returns a table that the file omits: it has none of its fields.
    pub(super) fn absent(known: Table, report: &'r Report<'r>) -> Self {
        let misplaced = [(INCLUDE, MISPLACED_INCLUDE)].into_iter();
        Self {
            title: String::new(),
            offset: 0,
            table: None,
            report,
            is_hidden: false,
            known,
            requested: Vec::new(),
            wrong: Vec::new(),
            hints: misplaced.filter(|_| !report.is_included).collect(),
        }
    }

    /// Returns the inner table of this name, if the file has it.
    pub(super) fn table(&mut self, name: &'static str, known: Table) -> Option<Self> {
        let title = format!("{}.{name}]", self.title.trim_end_matches(']'));
        Fields::begin(self.get(name)?, title, known)
    }

    /// Adds a message for a field that the table does not have, in case the file uses it.
    pub(super) fn add_hint(&mut self, name: &'static str, message: &'static str) {
        debug_assert!(!self.known.has(name), "the schema has {name}");
        self.hints.push((name, message));
    }

    /// Returns whether the file omits this table, or has no field in it.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_none_or(DeTable::is_empty)
    }

    /// Returns the value of a field, if the file has it, and marks the field as read.
    pub(super) fn get(&mut self, name: &'static str) -> Option<Node<'r>> {
        debug_assert!(self.known.has(name), "the schema has no {name}");
        self.requested.push(name);
        self.peek(name)
    }

    /// Returns the value of a field, and does not mark it as read.
    pub(super) fn peek(&self, name: &'static str) -> Option<Node<'r>> {
        let node = Node::new(name, self.table?.get(name)?, self.report);
        Some(node.hidden_if(self.is_hidden))
    }

    /// Returns the value of a field that has been read, if it is present and not wrong.
    pub(super) fn valid_value(&self, name: &'static str) -> Option<Node<'r>> {
        self.peek(name).filter(|_| !self.is_wrong(name))
    }

    /// Returns whether a field that has been read is wrong, or required and missing.
    pub(super) fn is_wrong(&self, name: &'static str) -> bool {
        debug_assert!(self.requested.contains(&name), "{name} is not read yet");
        self.wrong.contains(&name)
    }

    /// Reads a field that may be missing with `read`; `None` if it is wrong or missing.
    pub(super) fn read_optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Node<'r>) -> Option<T>,
    ) -> Option<T> {
        self.read_field(name, None, read)
    }

    /// Reads a field with `read`; `None` if it is wrong or missing.
    ///
    /// A field with an example is required: reports a problem with the example if it is missing.
    pub(super) fn read_field<T>(
        &mut self,
        name: &'static str,
        example: Option<&str>,
        read: impl FnOnce(Node<'r>) -> Option<T>,
    ) -> Option<T> {
        let value = match (self.get(name), example) {
            (None, None) => return None,
            (None, Some(example)) => {
                let title = &self.title;
                let message = format!("{title} has no {name}; add one such as {name} = {example}");
                self.report.add_missing(self.offset, message);
                None
            }
            (Some(node), _) => read(node),
        };
        if value.is_none() {
            self.wrong.push(name);
        }
        value
    }

    /// If `is_problem`, reports a problem with a field that has been read.
    ///
    /// Reports nothing if the field is missing, or is wrong for another reason.
    pub(super) fn refuse_if(&mut self, is_problem: bool, name: &'static str, message: &str) {
        if let Some(node) = self.valid_value(name).filter(|_| is_problem) {
            node.report_problem(message);
            self.wrong.push(name);
        }
    }

    /// Returns the definition of a field.
    pub(super) fn field(&self, name: &str) -> Option<&'static Field> {
        self.known.field(name)
    }

    /// Reads a required field with `read`. Its definition has the example for messages.
    pub(super) fn read_required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Node<'r>) -> Option<T>,
    ) -> Option<T> {
        let example = self.field(name).and_then(|field| field.example);
        self.read_field(name, example, read)
    }

    /// Ends the reading: reports unknown fields. Returns whether no field that was read is wrong.
    ///
    /// All known fields must have been read before.
    pub(super) fn finish(self) -> bool {
        let known = self.known.names();
        let unread = known.iter().find(|name| !self.requested.contains(name));
        debug_assert_eq!(unread, None, "the schema has a field that is not read");
        for key in self.table.into_iter().flat_map(DeTable::keys) {
            let (name, offset) = (key.get_ref().as_ref(), key.span().start);
            if known.contains(&name) {
                continue;
            }
            if let Some((_, hint)) = self.hints.iter().find(|(known, _)| *known == name) {
                self.report.add_problem(offset, format!("{name}: {hint}"));
            } else {
                let (title, fields) = (&self.title, known.join(", "));
                let near = nearest(name, &known);
                let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
                let name = if self.is_hidden {
                    format!("a name {HIDDEN}")
                } else {
                    toml_string(name)
                };
                let message =
                    format!("{name} is not a field of {title}, whose fields are {fields}{near}");
                self.report.add_problem(offset, message);
            }
        }
        self.wrong.is_empty()
    }
}
