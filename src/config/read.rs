//! Reads a parsed file field by field, so that one wrong field does not hide others.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::hidden::HIDDEN;
use super::report::{Report, Shared};
use super::schema::{Field, Table};
use super::suggest::nearest;
use super::toml_string::toml_string;

/// A value, its place in the text, and the name of its field.
#[derive(Clone, Copy)]
pub(super) struct Node<'r> {
    pub(super) name: &'r str,
    pub(super) value: &'r DeValue<'r>,
    at: usize,
    pub(super) report: &'r Report<'r>,
    /// Whether messages do not show the value.
    hidden: bool,
}

impl<'r> Node<'r> {
    pub(super) fn new(
        name: &'r str,
        value: &'r Spanned<DeValue<'r>>,
        report: &'r Report<'r>,
    ) -> Self {
        Self {
            name,
            value: value.get_ref(),
            at: value.span().start,
            report,
            hidden: false,
        }
    }

    /// The same value, which messages do not show, nor what is in it: values and unknown names.
    pub(super) fn hidden(self) -> Self {
        Self {
            hidden: true,
            ..self
        }
    }

    /// Reports a problem with the value.
    ///
    /// Of a value from the environment, or one that is hidden, the message might show a part.
    pub(super) fn wrong(&self, message: &str) {
        let found = self.found();
        if self.hidden {
            self.tell(&format!("the value does not fit here; found {found}"));
        } else if self.is_expanded() {
            self.tell(&format!(
                "the value from the environment does not fit here; found {found}"
            ));
        } else {
            self.tell(message);
        }
    }

    /// Reports a problem in a message that shows nothing of the value but [`Node::found`].
    pub(super) fn tell(&self, message: &str) {
        if self.expanded() == Some(None) {
            return;
        }
        let mut message = format!("{}: {message}", self.title());
        if let Some(name) = self.report.empty_variable(self.at) {
            message.extend(["; ", &name, " is set and empty in the environment"]);
        }
        self.report.wrong(self.at, message);
    }

    /// The string with its variables of the environment, if it has any; `Some(None)` if they are
    /// wrong.
    #[expect(
        clippy::option_option,
        reason = "a wrong variable is not an absent one"
    )]
    fn expanded(&self) -> Option<Option<String>> {
        self.report.expanded(self.at)
    }

    /// Whether the value comes from the environment.
    pub(super) fn is_expanded(&self) -> bool {
        self.expanded().is_some()
    }

    /// Whether messages show nothing of the value but [`Node::found`].
    pub(super) fn is_secret(&self) -> bool {
        self.hidden || self.is_expanded()
    }

    /// The string as it is written, if it has variables of the environment.
    pub(super) fn written(&self) -> Option<String> {
        self.expanded().flatten()
    }

    /// A path made of the value as a message shows it: as the value is written if it comes from
    /// the environment.
    pub(super) fn shown(&self, path: &Path) -> String {
        if self.is_secret() {
            self.found()
        } else {
            path.display().to_string()
        }
    }

    /// Where it is: `gateway.toml:12:8`.
    pub(super) fn place(&self) -> String {
        self.report.place(self.at)
    }

    /// Whether both are in the same file.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        std::ptr::eq(self.report, other.report)
    }

    /// The absolute path of a file that this text names.
    pub(super) fn in_folder(&self, name: &str) -> PathBuf {
        self.report.folder().join(name)
    }

    /// Notes that the value is legal, and probably a mistake.
    pub(super) fn warn(&self, message: &str) {
        let message = format!("{}: {message}", self.title());
        self.report.warn(self.at, &message);
    }

    /// Reports that the value names something that does not exist.
    pub(super) fn missing(&self, message: &str) {
        if self.is_secret() {
            return self.wrong(message);
        }
        self.report
            .missing(self.at, format!("{}: {message}", self.title()));
    }

    /// Its name as a message shows it.
    fn title(&self) -> &'r str {
        if self.name.is_empty() {
            "\"\""
        } else {
            self.name
        }
    }

    /// Reports what was expected and what was found; always returns `None`.
    pub(super) fn expected<T>(&self, what: &str) -> Option<T> {
        self.tell(&format!("expected {what}; found {}", self.found()));
        None
    }

    /// The value as a message shows it.
    pub(super) fn found(&self) -> String {
        const LONGEST: usize = 60;
        if let Some(written) = self.written().filter(|_| !self.hidden) {
            return toml_string(&written);
        }
        match self.value {
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
            _ if self.hidden => format!("a value {HIDDEN}"),
            DeValue::String(text) if text.chars().count() > LONGEST => {
                let begin = text.chars().take(LONGEST).collect::<String>();
                format!("{}...", toml_string(&begin))
            }
            DeValue::String(text) => toml_string(text),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(yes) => yes.to_string(),
            DeValue::Datetime(date) => date.to_string(),
        }
    }

    /// A field of a table, if the value is a table that has it.
    pub(super) fn field(&self, name: &'static str) -> Option<Self> {
        let value = self.value.as_table()?.get(name)?;
        Some(self.part(name, value))
    }

    /// A value in this one.
    fn part(&self, name: &'r str, value: &'r Spanned<DeValue<'r>>) -> Self {
        Self {
            hidden: self.hidden,
            ..Self::new(name, value, self.report)
        }
    }

    /// The items of a list, each under the list's name.
    pub(super) fn items(&self) -> Option<Vec<Self>> {
        let item = |value| self.part(self.name, value);
        self.value
            .as_array()
            .map(|list| list.iter().map(item).collect())
    }

    /// The entries of a table whose field names the user chooses, in the order of the text.
    pub(super) fn entries(&self) -> Option<Vec<Self>> {
        let mut entries = self.value.as_table()?.iter().collect::<Vec<_>>();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&'r Spanned<_>, _)| {
            let key: &'r std::borrow::Cow<'_, str> = key.get_ref();
            self.part(key, value)
        };
        Some(entries.into_iter().map(entry).collect())
    }
}

/// The field that belongs to the whole file, which a table above it takes.
const INCLUDE: &str = "include";
const MISPLACED_INCLUDE: &str =
    "this stands at the top of the file; move it above the first table, such as [server]";

/// The title of a file that another one includes.
const INCLUDED_FILE: &str = "an included file";

/// A table with a fixed set of fields.
pub(super) struct Fields<'r> {
    /// The table's name in messages.
    title: String,
    at: usize,
    /// `None` if the file leaves out the whole table, so that every field has its default.
    table: Option<&'r DeTable<'r>>,
    report: &'r Report<'r>,
    /// Whether messages do not show its values and unknown names.
    hidden: bool,
    /// All fields that it may have.
    all: Table,
    /// The fields that have been asked for.
    asked: Vec<&'static str>,
    /// The fields that are wrong, or missing.
    wrong: Vec<&'static str>,
    /// Fields of other tables that are looked for here, and why this one lacks them.
    lacking: Vec<(&'static str, &'static str)>,
}

impl<'r> Fields<'r> {
    /// The whole file.
    pub(super) fn root(all: Table, file: &'r Spanned<DeTable<'r>>, report: &'r Report<'r>) -> Self {
        Self {
            title: "the file".to_owned(),
            table: Some(file.get_ref()),
            ..Self::absent(all, report)
        }
    }

    /// A whole file that another one includes.
    pub(super) fn included(
        all: Table,
        file: &'r Spanned<DeTable<'r>>,
        report: &'r Report<'r>,
    ) -> Self {
        Self {
            title: INCLUDED_FILE.to_owned(),
            ..Self::root(all, file, report)
        }
    }

    /// The table in a node. Reports a problem if the value is not a table.
    pub(super) fn of(node: Node<'r>, title: String, all: Table) -> Option<Self> {
        let table = node.value.as_table();
        if table.is_none() && node.name == INCLUDE && node.value.is_array() {
            node.tell(MISPLACED_INCLUDE);
            return None;
        }
        if table.is_none() {
            return node.expected("a table");
        }
        Some(Self {
            title,
            at: node.at,
            table,
            hidden: node.hidden,
            ..Self::absent(all, node.report)
        })
    }

    /// The table of this name, or one without fields.
    pub(super) fn section(&mut self, name: &'static str, all: Table) -> Self {
        let title = format!("[{name}]");
        let given = self.get(name);
        let given = given.and_then(|node| Fields::of(node, title, all));
        given.unwrap_or_else(|| Fields::absent(all, self.report))
    }

    /// A table that the file leaves out.
    pub(super) fn absent(all: Table, report: &'r Report<'r>) -> Self {
        Self {
            title: String::new(),
            at: 0,
            table: None,
            report,
            hidden: false,
            all,
            asked: Vec::new(),
            wrong: Vec::new(),
            lacking: Vec::new(),
        }
    }

    /// The table of this name in this one, if the file has it.
    pub(super) fn table(&mut self, name: &'static str, all: Table) -> Option<Self> {
        let title = format!("{}.{name}]", self.title.trim_end_matches(']'));
        self.get(name).and_then(|node| Fields::of(node, title, all))
    }

    /// Says why there is no such field, if the table has it nevertheless.
    pub(super) fn lacks(&mut self, name: &'static str, why: &'static str) {
        debug_assert!(!self.all.has(name), "the schema has {name}");
        self.lacking.push((name, why));
    }

    /// What the reports of all texts share.
    pub(super) fn shared(&self) -> &'r Shared {
        self.report.shared()
    }

    /// Whether the file has no field in this table.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_none_or(DeTable::is_empty)
    }

    /// The value of a field, if the file has it.
    pub(super) fn get(&mut self, name: &'static str) -> Option<Node<'r>> {
        debug_assert!(self.all.has(name), "the schema has no {name}");
        self.asked.push(name);
        self.value(name)
    }

    /// The table itself, as a value.
    pub(super) fn value(&self, name: &'static str) -> Option<Node<'r>> {
        let node = Node::new(name, self.table?.get(name)?, self.report);
        Some(if self.hidden { node.hidden() } else { node })
    }

    /// The value of a field that has been read, if the file has it and it is right.
    pub(super) fn right(&self, name: &'static str) -> Option<Node<'r>> {
        self.value(name).filter(|_| !self.is_wrong(name))
    }

    /// Whether a field that has been read is wrong, or required and missing.
    pub(super) fn is_wrong(&self, name: &'static str) -> bool {
        debug_assert!(self.asked.contains(&name), "{name} is not read yet");
        self.wrong.contains(&name)
    }

    /// The value of a field of this table as `read` has it; `None` if it is wrong or not there.
    ///
    /// Reports a required field that is missing: the field then has an example.
    pub(super) fn read_given<T>(
        &mut self,
        name: &'static str,
        example: Option<&str>,
        read: impl FnOnce(Node<'r>) -> Option<T>,
    ) -> Option<T> {
        let value = match (self.get(name), example) {
            (None, None) => return None,
            (None, Some(example)) => self.lacks_required(name, example),
            (Some(node), _) => read(node),
        };
        if value.is_none() {
            self.wrong.push(name);
        }
        value
    }

    /// Whether a field that has been read is wrong.
    pub(super) fn has_wrong(&self) -> bool {
        !self.wrong.is_empty()
    }

    /// The default of a field, as JSON.
    pub(super) fn default_of(&self, name: &str) -> Option<&'static str> {
        self.field(name).and_then(|field| field.default)
    }

    fn field(&self, name: &str) -> Option<&'static Field> {
        self.all.fields.iter().find(|field| field.name == name)
    }

    /// The report of the text that the table is in.
    pub(super) fn report(&self) -> &'r Report<'r> {
        self.report
    }

    /// The value of an optional field. Returns the default for a wrong value too.
    pub(super) fn or<T>(
        &mut self,
        name: &'static str,
        default: T,
        read: impl FnOnce(Node<'r>) -> Option<T>,
    ) -> T {
        self.get(name).and_then(read).unwrap_or(default)
    }

    /// The value of an optional field, but `None` if it is wrong.
    ///
    /// For fields that are compared with others.
    pub(super) fn optional<T>(
        &mut self,
        name: &'static str,
        default: T,
        read: impl FnOnce(Node<'r>) -> Option<T>,
    ) -> Option<T> {
        self.get(name).map_or(Some(default), read)
    }

    /// The value of a required field.
    pub(super) fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Node<'r>) -> Option<T>,
    ) -> Option<T> {
        let example = self.field(name).and_then(|field| field.example);
        self.read_given(name, example, read)
    }

    fn lacks_required<T>(&self, name: &str, example: &str) -> Option<T> {
        let title = &self.title;
        let message = format!("{title} has no {name}; add one such as {name} = {example}");
        self.report.missing(self.at, message);
        None
    }

    /// Reports unknown fields. All known ones must have been asked for.
    pub(super) fn finish(self) {
        let known = self.all.names();
        let unread = known.iter().find(|name| !self.asked.contains(name));
        debug_assert_eq!(unread, None, "the schema has a field that is not read");
        for key in self.table.into_iter().flat_map(DeTable::keys) {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            if known.contains(&name) {
                continue;
            }
            if name == INCLUDE && self.title != INCLUDED_FILE {
                let message = format!("{INCLUDE}: {MISPLACED_INCLUDE}");
                self.report.wrong(at, message);
            } else if let Some((name, why)) = self.lacking.iter().find(|it| it.0 == name) {
                self.report.wrong(at, format!("{name}: {why}"));
            } else {
                let (title, fields) = (&self.title, known.join(", "));
                let near = nearest(name, &known);
                let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
                let name = if self.hidden {
                    format!("a name {HIDDEN}")
                } else {
                    toml_string(name)
                };
                let message =
                    format!("{name} is not a field of {title}, whose fields are {fields}{near}");
                self.report.wrong(at, message);
            }
        }
    }
}
