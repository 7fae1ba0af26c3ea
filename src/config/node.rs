//! A value of a parsed file, with its location.
//!
//! Tables of values are in `fields`, the collected problems in `report`.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeValue;

use super::report::Report;
use super::toml_string::{toml_string, toml_value};

/// Text that messages show instead of a client's key, or of a value that may be one.
pub(super) const HIDDEN: &str = "hidden by mask_keys";

/// A value, its location in the text, and the name of its field.
#[derive(Clone, Copy)]
pub(super) struct Node<'r> {
    pub(super) name: &'r str,
    pub(super) value: &'r DeValue<'r>,
    /// Byte offset of the value in the text.
    pub(super) offset: usize,
    pub(super) report: &'r Report<'r>,
    /// Messages do not show the value.
    pub(super) hidden: bool,
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
            offset: value.span().start,
            report,
            hidden: false,
        }
    }

    /// Returns the same value, hidden in messages together with its inner values and unknown names.
    pub(super) fn hidden(self) -> Self {
        Self {
            hidden: true,
            ..self
        }
    }

    /// Reports a problem with the value.
    ///
    /// The message is replaced for a hidden value or one from the environment, because it might
    /// show a part of it.
    pub(super) fn wrong(&self, message: &str) {
        if self.is_secret() {
            let found = self.found();
            self.report_as_is(&format!("the value does not fit here; found {found}"));
        } else {
            self.report_as_is(message);
        }
    }

    /// Reports a problem. The message must show nothing of the value except [`Node::found`].
    pub(super) fn report_as_is(&self, message: &str) {
        if self.expanded() == Some(None) {
            return;
        }
        let mut message = format!("{}: {message}", self.title());
        if let Some(name) = self.report.empty.borrow().get(&self.offset) {
            message.extend(["; ", name, " is set and empty in the environment"]);
        }
        self.report.wrong(self.offset, message);
    }

    /// Returns the string before expansion, if it has variables of the environment.
    ///
    /// `Some(None)` if a variable is wrong.
    fn expanded(&self) -> Option<Option<String>> {
        self.report.expanded.borrow().get(&self.offset).cloned()
    }

    /// Returns whether the value comes from the environment.
    pub(super) fn is_expanded(&self) -> bool {
        self.expanded().is_some()
    }

    /// Returns whether messages show nothing of the value except [`Node::found`].
    pub(super) fn is_secret(&self) -> bool {
        self.hidden || self.is_expanded()
    }

    /// Returns the string before expansion, if it has variables of the environment.
    pub(super) fn written(&self) -> Option<String> {
        self.expanded().flatten()
    }

    /// Returns a path for a message. A path from the environment is shown as the file writes it.
    pub(super) fn shown(&self, path: &Path) -> String {
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

    /// Returns the absolute path of a file with this name.
    pub(super) fn in_folder(&self, name: &str) -> PathBuf {
        self.report.folder.join(name)
    }

    /// Adds a warning: the value is legal, but probably a mistake.
    pub(super) fn warn(&self, message: &str) {
        let message = format!("{}: {message}", self.title());
        self.report.warn(self.offset, &message);
    }

    /// Adds a warning about a field of this table, if the file has the field.
    pub(super) fn warn_field(&self, name: &'static str, message: &str) {
        if let Some(field) = self.field(name) {
            field.warn(message);
        }
    }

    /// Reports that the value names something that does not exist.
    pub(super) fn missing(&self, message: &str) {
        if self.is_secret() {
            return self.wrong(message);
        }
        self.report
            .missing(self.offset, format!("{}: {message}", self.title()));
    }

    /// Returns the name of the field for messages.
    fn title(&self) -> &'r str {
        match self.name {
            "" => "\"\"",
            name => name,
        }
    }

    /// Reports a problem as [`Node::wrong`] does, and returns `None`.
    pub(super) fn refused<T>(&self, message: &str) -> Option<T> {
        self.wrong(message);
        None
    }

    /// Reports a problem as [`Node::report_as_is`] does, and returns `None`.
    pub(super) fn refused_as_is<T>(&self, message: &str) -> Option<T> {
        self.report_as_is(message);
        None
    }

    /// Reports the expected and the actual value, and returns `None`.
    pub(super) fn expected<T>(&self, what: &str) -> Option<T> {
        self.refused_as_is(&format!("expected {what}; found {}", self.found()))
    }

    /// Returns the value as messages show it.
    pub(super) fn found(&self) -> String {
        const MAX_CHARACTERS: usize = 60;
        if let Some(written) = self.written().filter(|_| !self.hidden) {
            return toml_string(&written);
        }
        match self.value {
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
            _ if self.hidden => format!("a value {HIDDEN}"),
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
        Some(self.part(name, value))
    }

    /// Returns an inner value, hidden if this value is.
    fn part(&self, name: &'r str, value: &'r Spanned<DeValue<'r>>) -> Self {
        Self {
            hidden: self.hidden,
            ..Self::new(name, value, self.report)
        }
    }

    /// Returns the items of a list, each under the name of the list.
    pub(super) fn items(&self) -> Option<Vec<Self>> {
        let list = self.value.as_array()?.iter();
        Some(list.map(|value| self.part(self.name, value)).collect())
    }

    /// Returns the items of a list. Otherwise reports the expected value.
    pub(super) fn items_or(&self, what: &str) -> Option<Vec<Self>> {
        self.items().or_else(|| self.expected(what))
    }

    /// Returns the entries of a table. Otherwise reports the expected value.
    pub(super) fn entries_or(&self, what: &str) -> Option<Vec<Self>> {
        self.entries().or_else(|| self.expected(what))
    }

    /// Returns the entries of a table with names that the user chooses, in the order of the text.
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
