//! A value of a parsed file, with its place.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeValue;

use super::report::Report;
use super::toml_string::toml_string;

/// What messages say of a key of a client, and of what may be one.
pub(super) const HIDDEN: &str = "hidden by mask_keys";

/// A value, its place in the text, and the name of its field.
#[derive(Clone, Copy)]
pub(super) struct Node<'r> {
    pub(super) name: &'r str,
    pub(super) value: &'r DeValue<'r>,
    pub(super) at: usize,
    pub(super) report: &'r Report<'r>,
    /// Whether messages do not show the value.
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

    /// The same as [`Node::wrong`] for a reader that ends there: it has no value.
    pub(super) fn refused<T>(&self, message: &str) -> Option<T> {
        self.wrong(message);
        None
    }

    /// The same as [`Node::tell`] for a reader that ends there: it has no value.
    pub(super) fn told<T>(&self, message: &str) -> Option<T> {
        self.tell(message);
        None
    }

    /// Reports what was expected and what was found; always returns `None`.
    pub(super) fn expected<T>(&self, what: &str) -> Option<T> {
        self.told(&format!("expected {what}; found {}", self.found()))
    }

    /// The value as a message shows it.
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

    /// The items, or a report that this was expected.
    pub(super) fn items_or(&self, what: &str) -> Option<Vec<Self>> {
        self.items().or_else(|| self.expected(what))
    }

    /// The entries, or a report that this was expected.
    pub(super) fn entries_or(&self, what: &str) -> Option<Vec<Self>> {
        self.entries().or_else(|| self.expected(what))
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
