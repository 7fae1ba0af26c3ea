//! A value of a parsed file with its location, and the messages about it.
//!
//! A method that begins with `report` or `refuse` adds a problem of the value to its report. Tables
//! of values are in `fields`, the collected problems in `report`.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeValue;

use super::report::{Report, Unexpanded};
use super::toml_string::{toml_string, toml_value};

/// Text that messages show instead of a client's key, or of a value that may be one.
pub(super) const HIDDEN: &str = "hidden by mask_keys";

/// A value, its location in the text, and the name of its field.
#[derive(Clone, Copy)]
pub(super) struct Node<'r> {
    /// Name of the field. An item of a list has the name of the list.
    pub(super) name: &'r str,
    pub(super) value: &'r DeValue<'r>,
    /// Byte offset of the value in the text.
    pub(super) offset: usize,
    /// Report of the file that has the value.
    pub(super) report: &'r Report<'r>,
    /// Whether messages never show the value, because it may be a client's key.
    pub(super) is_hidden: bool,
}

impl<'r> Node<'r> {
    /// Makes the node of a value that messages may show.
    pub(super) fn new(
        name: &'r str,
        value: &'r Spanned<DeValue<'r>>,
        report: &'r Report<'r>,
    ) -> Self {
        Self {
            name,
            value: value.get_ref(),
            offset: value.span().start,
            report,
            is_hidden: false,
        }
    }

    /// Returns the same value, hidden in messages if it was hidden before or if `is_hidden`.
    ///
    /// Its inner values and its unknown names are hidden with it.
    pub(super) fn hidden_if(self, is_hidden: bool) -> Self {
        let is_hidden = self.is_hidden || is_hidden;
        Self { is_hidden, ..self }
    }

    /// Reports a problem with the value.
    ///
    /// A general message replaces `message` if the value is hidden or comes from the environment,
    /// because `message` might show a part of the value.
    pub(super) fn report_problem(&self, message: &str) {
        if self.is_secret() {
            let found = self.found();
            self.report_as_is(&format!("the value does not fit here; found {found}"));
        } else {
            self.report_as_is(message);
        }
    }

    /// Reports a problem with exactly this message. It may show the value as [`Node::found`] does.
    ///
    /// Reports nothing if a variable in the value is wrong, because that has been reported.
    pub(super) fn report_as_is(&self, message: &str) {
        if self.report.unexpanded.borrow().get(&self.offset) == Some(&Unexpanded::Wrong) {
            return;
        }
        let mut message = format!("{}: {message}", self.title());
        if let Some(name) = self.report.empty_variables.borrow().get(&self.offset) {
            message.extend(["; ", name, " is set and empty in the environment"]);
        }
        self.report.add_problem(self.offset, message);
    }

    /// Returns whether the value comes from the environment.
    pub(super) fn is_expanded(&self) -> bool {
        self.report.unexpanded.borrow().contains_key(&self.offset)
    }

    /// Returns whether messages may show the value only as [`Node::found`] does.
    pub(super) fn is_secret(&self) -> bool {
        self.is_hidden || self.is_expanded()
    }

    /// Returns the string as the file writes it, if it has variables of the environment.
    pub(super) fn unexpanded(&self) -> Option<String> {
        match self.report.unexpanded.borrow().get(&self.offset)? {
            Unexpanded::Text(text) => Some(text.clone()),
            Unexpanded::Wrong => None,
        }
    }

    /// Returns a path for a message. A path from the environment is shown as the file writes it.
    pub(super) fn show_path(&self, path: &Path) -> String {
        if self.is_secret() {
            self.found()
        } else {
            path.display().to_string()
        }
    }

    /// Returns the location of the value: `gateway.toml:12:8`.
    pub(super) fn location(&self) -> String {
        self.report.location(self.offset)
    }

    /// Returns the absolute path of a file that the value names.
    ///
    /// A relative name starts at the folder of the file that has the value.
    pub(super) fn in_folder(&self, name: &str) -> PathBuf {
        self.report.folder.join(name)
    }

    /// Adds a warning: the value is legal, but probably a mistake.
    pub(super) fn warn(&self, message: &str) {
        let message = format!("{}: {message}", self.title());
        self.report.add_warning(self.offset, &message);
    }

    /// Adds a warning about a field of this table, if the file has the field.
    pub(super) fn warn_field(&self, name: &'static str, message: &str) {
        if let Some(field) = self.field(name) {
            field.warn(message);
        }
    }

    /// Reports that the value names something that does not exist.
    pub(super) fn report_missing(&self, message: &str) {
        if self.is_secret() {
            return self.report_problem(message);
        }
        self.report
            .add_missing(self.offset, format!("{}: {message}", self.title()));
    }

    /// Returns the name of the field for messages.
    fn title(&self) -> &'r str {
        match self.name {
            "" => "\"\"",
            name => name,
        }
    }

    /// Reports a problem as [`Node::report_problem`] does, and returns `None`.
    pub(super) fn refuse<T>(&self, message: &str) -> Option<T> {
        self.report_problem(message);
        None
    }

    /// Reports a problem as [`Node::report_as_is`] does, and returns `None`.
    pub(super) fn refuse_as_is<T>(&self, message: &str) -> Option<T> {
        self.report_as_is(message);
        None
    }

    /// Reports the expected and the actual value, and returns `None`.
    pub(super) fn report_expected<T>(&self, what: &str) -> Option<T> {
        self.refuse_as_is(&format!("expected {what}; found {}", self.found()))
    }

    /// Returns the value as messages show it: without secrets, and on one short line.
    pub(super) fn found(&self) -> String {
        const MAX_CHARACTERS: usize = 60;
        if let Some(written) = self.unexpanded().filter(|_| !self.is_hidden) {
            return toml_string(&written);
        }
        match self.value {
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
            _ if self.is_hidden => format!("a value {HIDDEN}"),
            DeValue::String(text) if text.chars().count() > MAX_CHARACTERS => {
                let begin = text.chars().take(MAX_CHARACTERS).collect::<String>();
                format!("{}...", toml_string(&begin))
            }
            value => toml_value(value),
        }
    }

    /// Returns a field of the value, if the value is a table with this field.
    pub(super) fn field(&self, name: &'static str) -> Option<Self> {
        let value = self.value.as_table()?.get(name)?;
        Some(self.inner_node(name, value))
    }

    /// Returns the node of an inner value, hidden if this value is.
    fn inner_node(&self, name: &'r str, value: &'r Spanned<DeValue<'r>>) -> Self {
        Self {
            is_hidden: self.is_hidden,
            ..Self::new(name, value, self.report)
        }
    }

    /// Returns the items of a list, each under the name of the list.
    pub(super) fn items(&self) -> Option<Vec<Self>> {
        let list = self.value.as_array()?.iter();
        Some(
            list.map(|value| self.inner_node(self.name, value))
                .collect(),
        )
    }

    /// Returns the items of a list. If the value is not a list, reports `what` as expected.
    pub(super) fn items_or(&self, what: &str) -> Option<Vec<Self>> {
        self.items().or_else(|| self.report_expected(what))
    }

    /// Returns the entries of a table. If the value is not a table, reports `what` as expected.
    pub(super) fn entries_or(&self, what: &str) -> Option<Vec<Self>> {
        self.entries().or_else(|| self.report_expected(what))
    }

    /// Returns the entries of a table with names that the user chooses, in the order of the text.
    pub(super) fn entries(&self) -> Option<Vec<Self>> {
        let mut entries = self.value.as_table()?.iter().collect::<Vec<_>>();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&'r Spanned<_>, _)| {
            let key: &'r std::borrow::Cow<'_, str> = key.get_ref();
            self.inner_node(key, value)
        };
        Some(entries.into_iter().map(entry).collect())
    }
}
