//! Reads a parsed file field by field, so that one wrong field does not hide others.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::on_one_line;
use super::schema::{self, Table};
use super::suggest::nearest;
use super::toml_string::toml_string;
use super::{NamedFile, Problem};

/// What the reports of a file and of the files that it includes share.
#[derive(Default)]
pub(super) struct Shared {
    /// Whether one of the texts has a syntax error, which may hide what others name.
    is_broken: Cell<bool>,
    /// Whether a text has a problem.
    has_problem: Cell<bool>,
    /// Other files that the texts name and that are read with them.
    named: RefCell<Vec<NamedFile>>,
    /// Values from the environment, each with what messages show for it.
    secrets: RefCell<BTreeMap<String, String>>,
}

/// Values from the environment shorter than this are no secrets, and part of many messages.
const SHORTEST_SECRET: usize = 4;

impl Shared {
    /// Notes that a text names a file that is read with it. To be called before it is read.
    pub(super) fn names(&self, file: NamedFile) {
        self.named.borrow_mut().push(file);
    }

    pub(super) fn has_problem(&self) -> bool {
        self.has_problem.get()
    }

    pub(super) fn take_named(&self) -> Vec<NamedFile> {
        self.named.take()
    }

    /// Notes the value of a variable, which no message may show.
    pub(super) fn hide(&self, name: &str, value: String) {
        if value.len() >= SHORTEST_SECRET {
            let shown = format!("${{{name}}}");
            self.secrets.borrow_mut().insert(value, shown);
        }
    }

    /// A message without values from the environment.
    fn without_secrets(&self, mut message: String) -> String {
        for (value, shown) in &*self.secrets.borrow() {
            if message.contains(value) {
                message = message.replace(value, shown);
            }
        }
        message
    }
}

/// Where a text comes from.
#[derive(Clone, Copy)]
pub(super) struct Source<'t> {
    /// The file's path, as messages show it.
    pub(super) file: &'t Path,
    /// Whether another file includes it.
    pub(super) is_included: bool,
    /// The absolute path of its folder, where the names of files in it begin.
    pub(super) folder: &'t Path,
    pub(super) shared: &'t Shared,
}

/// Collects the problems of one text.
pub(super) struct Report<'t> {
    text: &'t str,
    source: Source<'t>,
    /// The byte at which each line begins.
    lines: Vec<usize>,
    /// The lines with syntax errors, in order.
    ///
    /// Other problems on such a line are not reported, because the parser only guesses its
    /// content.
    broken: Vec<usize>,
    /// Pairs of a byte and a message.
    problems: RefCell<Vec<(usize, String)>>,
    /// The same of what is legal and probably a mistake.
    warnings: RefCell<Vec<(usize, String)>>,
    /// The strings with variables of the environment, by their bytes, as they are written.
    ///
    /// `None`: a variable is wrong, which has been reported.
    expanded: RefCell<HashMap<usize, Option<String>>>,
}

impl<'t> Report<'t> {
    /// Starts with the syntax errors, at most one for each line.
    ///
    /// The first error of a line often causes the others.
    pub(super) fn new(text: &'t str, errors: &[toml::de::Error], source: Source<'t>) -> Self {
        let behind = text.match_indices('\n').map(|(at, _)| at + 1);
        let mut report = Self {
            text,
            source,
            lines: std::iter::once(0).chain(behind).collect(),
            broken: Vec::new(),
            problems: RefCell::default(),
            warnings: RefCell::default(),
            expanded: RefCell::default(),
        };
        let mut errors = errors
            .iter()
            .map(|error| (error.span().map_or(0, |span| span.start), error))
            .collect::<Vec<_>>();
        errors.sort_by_key(|(byte, _)| *byte);
        errors.dedup_by_key(|(byte, _)| report.line(*byte));
        for (byte, error) in &errors {
            report.wrong(*byte, syntax(text, error));
        }
        report.broken = errors.iter().map(|(byte, _)| report.line(*byte)).collect();
        if !errors.is_empty() {
            source.shared.is_broken.set(true);
        }
        report
    }

    /// The line of a byte, from 1.
    fn line(&self, byte: usize) -> usize {
        self.lines.partition_point(|start| *start <= byte)
    }

    /// Reports a problem at a byte.
    pub(super) fn wrong(&self, byte: usize, message: String) {
        if self.broken.binary_search(&self.line(byte)).is_err() {
            self.source.shared.has_problem.set(true);
            let message = on_one_line(self.source.shared.without_secrets(message));
            self.problems.borrow_mut().push((byte, message));
        }
    }

    /// Reports that something is missing, unless a text has a syntax error that may hide it.
    pub(super) fn missing(&self, byte: usize, message: String) {
        if !self.source.shared.is_broken.get() {
            self.wrong(byte, message);
        }
    }

    /// Notes that the text names a file that is read with it. To be called before it is read.
    pub(super) fn names(&self, file: PathBuf) {
        self.shared().names(NamedFile::about_to_be_read(file));
    }

    pub(super) fn shared(&self) -> &'t Shared {
        self.source.shared
    }

    /// Notes that the string at a byte has variables of the environment. `written` is the string
    /// with them, or `None` if they are wrong.
    pub(super) fn expands(&self, byte: usize, written: Option<String>) {
        self.expanded.borrow_mut().insert(byte, written);
    }

    /// A place in the text: `gateway.toml:12:8`.
    fn place(&self, byte: usize) -> String {
        let found = Problem::all(self.text, vec![(byte, String::new())]);
        let place =
            |it: &Problem| format!("{}:{}:{}", self.source.file.display(), it.line, it.column);
        found.iter().map(place).collect()
    }

    pub(super) fn take_warnings(&self) -> Vec<Problem> {
        self.placed(self.warnings.take())
    }

    pub(super) fn take_problems(&self) -> Vec<Problem> {
        self.placed(self.problems.take())
    }

    fn placed(&self, found: Vec<(usize, String)>) -> Vec<Problem> {
        let mut problems = Problem::all(self.text, found);
        if self.source.is_included {
            for problem in &mut problems {
                problem.file = Some(self.source.file.to_owned());
            }
        }
        problems
    }
}

/// The message of a syntax error.
///
/// For a duplicate key, the parser's message does not name the key. The text at its place does.
fn syntax(text: &str, error: &toml::de::Error) -> String {
    let written = error.span().and_then(|span| text.get(span));
    match (error.message(), written) {
        ("duplicate key", Some(key)) if key.starts_with(['"', '\'']) => {
            format!("duplicate key {key}; remove one")
        }
        ("duplicate key", Some(key)) => format!("duplicate key {}; remove one", toml_string(key)),
        (message, _) => message.replace('\n', " "),
    }
}

/// A value, its place in the text, and the name of its field.
#[derive(Clone, Copy)]
pub(super) struct Node<'r> {
    pub(super) name: &'r str,
    pub(super) value: &'r DeValue<'r>,
    at: usize,
    pub(super) report: &'r Report<'r>,
}

impl<'r> Node<'r> {
    fn new(name: &'r str, value: &'r Spanned<DeValue<'r>>, report: &'r Report<'r>) -> Self {
        Self {
            name,
            value: value.get_ref(),
            at: value.span().start,
            report,
        }
    }

    /// Reports a problem with the value.
    ///
    /// Of a value from the environment, the message might show a part.
    pub(super) fn wrong(&self, message: &str) {
        if self.is_expanded() {
            self.tell(&format!(
                "the value from the environment does not fit here; found {}",
                self.found()
            ));
        } else {
            self.tell(message);
        }
    }

    /// Reports a problem in a message that shows nothing of the value but [`Node::found`].
    pub(super) fn tell(&self, message: &str) {
        if self.expanded() != Some(None) {
            self.report
                .wrong(self.at, format!("{}: {message}", self.title()));
        }
    }

    /// The string with its variables of the environment, if it has any; `Some(None)` if they are
    /// wrong.
    #[expect(
        clippy::option_option,
        reason = "a wrong variable is not an absent one"
    )]
    fn expanded(&self) -> Option<Option<String>> {
        self.report.expanded.borrow().get(&self.at).cloned()
    }

    /// Whether the value comes from the environment.
    pub(super) fn is_expanded(&self) -> bool {
        self.expanded().is_some()
    }

    /// The string as it is written, if it has variables of the environment.
    pub(super) fn written(&self) -> Option<String> {
        self.expanded().flatten()
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
        self.report.source.folder.join(name)
    }

    /// Notes that the value is legal, and probably a mistake.
    pub(super) fn warn(&self, message: &str) {
        let message = format!("{}: {message}", self.title());
        let message = on_one_line(self.report.shared().without_secrets(message));
        self.report.warnings.borrow_mut().push((self.at, message));
    }

    /// Reports that the value names something that does not exist.
    pub(super) fn missing(&self, message: &str) {
        if self.is_expanded() {
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
        if let Some(written) = self.written() {
            return toml_string(&written);
        }
        match self.value {
            DeValue::String(text) if text.chars().count() > LONGEST => {
                let begin = text.chars().take(LONGEST).collect::<String>();
                format!("{}...", toml_string(&begin))
            }
            DeValue::String(text) => toml_string(text),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(yes) => yes.to_string(),
            DeValue::Datetime(date) => date.to_string(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }

    /// A field of a table, if the value is a table that has it.
    pub(super) fn field(&self, name: &'static str) -> Option<Self> {
        let value = self.value.as_table()?.get(name)?;
        Some(Self::new(name, value, self.report))
    }

    /// The items of a list, each under the list's name.
    pub(super) fn items(&self) -> Option<Vec<Self>> {
        let item = |value| Self::new(self.name, value, self.report);
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
            Self::new(key, value, self.report)
        };
        Some(entries.into_iter().map(entry).collect())
    }
}

/// A table with a fixed set of fields.
pub(super) struct Fields<'r> {
    /// The table's name in messages.
    title: String,
    at: usize,
    /// `None` if the file leaves out the whole table, so that every field has its default.
    table: Option<&'r DeTable<'r>>,
    report: &'r Report<'r>,
    /// All fields that it may have.
    all: &'static Table,
    /// The fields that have been asked for.
    asked: Vec<&'static str>,
}

impl<'r> Fields<'r> {
    /// The whole file.
    pub(super) fn root(file: &'r Spanned<DeTable<'r>>, report: &'r Report<'r>) -> Self {
        Self {
            title: "the file".to_owned(),
            at: 0,
            table: Some(file.get_ref()),
            report,
            all: &schema::FILE,
            asked: Vec::new(),
        }
    }

    /// A whole file that another one includes.
    pub(super) fn included(file: &'r Spanned<DeTable<'r>>, report: &'r Report<'r>) -> Self {
        Self {
            title: "an included file".to_owned(),
            all: &schema::INCLUDED,
            ..Self::root(file, report)
        }
    }

    /// The table in a node. Reports a problem if the value is not a table.
    pub(super) fn of(node: Node<'r>, title: String, all: &'static Table) -> Option<Self> {
        let table = node.value.as_table();
        if table.is_none() {
            return node.expected("a table");
        }
        Some(Self {
            title,
            at: node.at,
            table,
            report: node.report,
            all,
            asked: Vec::new(),
        })
    }

    /// The table of this name, or one without fields.
    pub(super) fn section(&mut self, name: &'static str, all: &'static Table) -> Self {
        let title = format!("[{name}]");
        let given = self.get(name);
        let given = given.and_then(|node| Fields::of(node, title, all));
        given.unwrap_or(Self {
            title: String::new(),
            at: 0,
            table: None,
            report: self.report,
            all,
            asked: Vec::new(),
        })
    }

    /// Whether the file has no field in this table.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_none_or(DeTable::is_empty)
    }

    /// The value of a field, if the file has it.
    pub(super) fn get(&mut self, name: &'static str) -> Option<Node<'r>> {
        debug_assert!(self.all.has(name), "the schema has no {name}");
        self.asked.push(name);
        let value = self.table?.get(name)?;
        Some(Node::new(name, value, self.report))
    }

    /// The table itself, as a value.
    pub(super) fn value(&self, name: &'static str) -> Option<Node<'r>> {
        Some(Node::new(name, self.table?.get(name)?, self.report))
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

    /// The value of a required field; `example` shows in a message how to write it.
    pub(super) fn required<T>(
        &mut self,
        name: &'static str,
        example: &str,
        read: impl FnOnce(Node<'r>) -> Option<T>,
    ) -> Option<T> {
        let node = self.get(name);
        if node.is_none() {
            let title = &self.title;
            let message = format!("{title} has no {name}; add one such as {name} = {example}");
            self.report.missing(self.at, message);
        }
        node.and_then(read)
    }

    /// Reports unknown fields. All known ones must have been asked for.
    pub(super) fn finish(self) {
        let known = self.all.names();
        let unread = known.iter().find(|name| !self.asked.contains(name));
        debug_assert_eq!(unread, None, "the schema has a field that is not read");
        for key in self.table.into_iter().flat_map(DeTable::keys) {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            if !known.contains(&name) {
                let (title, fields) = (&self.title, known.join(", "));
                let near = nearest(name, &known);
                let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
                let name = toml_string(name);
                let message =
                    format!("{name} is not a field of {title}, whose fields are {fields}{near}");
                self.report.wrong(at, message);
            }
        }
    }
}
