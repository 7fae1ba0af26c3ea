//! Collects the problems of the configuration file and of the files that it includes.
//!
//! While a file is read, a problem has the byte offset of the value that it is about. Once the file
//! is read, it becomes a [`Problem`] with line and column. `node` and `fields` report to this
//! module.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeTable;

use super::problem::on_one_line;
use super::{FileKind, NamedFile, Problem};

/// Data that the reports of a file and its included files share. Each file is called a text.
#[derive(Default)]
pub(super) struct Shared {
    /// Whether one of the texts has a syntax error. It may hide names that other texts use.
    has_syntax_error: Cell<bool>,
    /// Whether one of the texts has a problem.
    pub(super) has_problem: Cell<bool>,
    /// Other files that the texts name and that are read with them.
    pub(super) named: RefCell<Vec<NamedFile>>,
    /// Names of zones whose keys no message shows, whatever the texts say.
    pub(super) masked_zones: Vec<String>,
    /// Values from the environment, each with the text that replaces it in messages.
    secrets: RefCell<BTreeMap<String, String>>,
    /// Names of `[jwt.NAME]`, each with the claims that variables read.
    pub(super) claims: RefCell<BTreeMap<String, BTreeSet<String>>>,
}

/// Minimum length of a value from the environment that messages hide, in bytes.
///
/// A shorter value, such as `on`, may occur in a message by chance.
const MIN_SECRET: usize = 4;

impl Shared {
    /// Records the content of a named file. `is_secret`: whether its name comes from the
    /// environment.
    pub(super) fn record_content(&self, path: &Path, content: &[u8], is_secret: bool) {
        let mut named = self.named.borrow_mut();
        // A file is read soon after it is named, so the search begins with the last one.
        let mut unread = named.iter_mut().rev().filter(|file| file.needs_digest());
        if let Some(file) = unread.find(|file| file.path == path) {
            let mut hasher = DefaultHasher::new();
            content.hash(&mut hasher);
            (file.digest, file.is_secret) = (Some(hasher.finish()), is_secret);
        }
    }

    /// Records the value of a variable, which no message may show.
    pub(super) fn hide(&self, name: &str, value: String) {
        if value.len() >= MIN_SECRET {
            let shown = format!("${{{name}}}");
            self.secrets.borrow_mut().insert(value, shown);
        }
    }

    /// Returns a message without values from the environment.
    fn without_secrets(&self, mut message: String) -> String {
        for (value, shown) in &*self.secrets.borrow() {
            message = message.replace(value, shown);
        }
        message
    }
}

/// Text of a string with variables of the environment, before they are expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unexpanded {
    /// The string as the file writes it.
    Text(String),
    /// A variable in the string is wrong, and the problem has been reported.
    Wrong,
}

/// Collects the problems of one text.
pub(super) struct Report<'t> {
    text: &'t str,
    /// Path of the file, as messages show it.
    file: &'t Path,
    /// Whether another file includes this one.
    pub(super) is_included: bool,
    /// Absolute path of the file's folder. File names in the text are relative to it.
    pub(super) folder: &'t Path,
    pub(super) shared: &'t Shared,
    /// Whether the text has a syntax error. Then no other problem is reported, because the parser
    /// only guesses what follows the error.
    has_syntax_error: bool,
    /// Pairs of a byte offset and a message.
    pub(super) problems: RefCell<Vec<(usize, String)>>,
    /// Warnings about legal values that are probably mistakes, as pairs like `problems`.
    pub(super) warnings: RefCell<Vec<(usize, String)>>,
    /// Strings with variables of the environment, by their byte offset.
    pub(super) unexpanded: RefCell<HashMap<usize, Unexpanded>>,
    /// Variables that are set and empty, by the byte offset of the string that uses them.
    pub(super) empty_variables: RefCell<HashMap<usize, String>>,
}

impl<'t> Report<'t> {
    /// Parses a text. The report starts with the first syntax error, if the text has one.
    ///
    /// `file`: path of the file for messages. `folder`: absolute folder of the file.
    pub(super) fn parse(
        text: &'t str,
        file: &'t Path,
        folder: &'t Path,
        shared: &'t Shared,
    ) -> (Spanned<DeTable<'t>>, Self) {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut report = Self {
            text,
            file,
            is_included: false,
            folder,
            shared,
            has_syntax_error: false,
            problems: RefCell::default(),
            warnings: RefCell::default(),
            unexpanded: RefCell::default(),
            empty_variables: RefCell::default(),
        };
        let offset = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        if let Some(error) = errors.iter().min_by_key(|error| offset(error)) {
            report.add_problem(offset(error), error.message().replace('\n', " "));
            report.has_syntax_error = true;
            shared.has_syntax_error.set(true);
        }
        (table, report)
    }

    /// Reports a problem at a byte offset.
    pub(super) fn add_problem(&self, byte: usize, message: String) {
        if !self.has_syntax_error {
            self.shared.has_problem.set(true);
            let message = on_one_line(&self.shared.without_secrets(message));
            self.problems.borrow_mut().push((byte, message));
        }
    }

    /// Reports that something is missing, unless a syntax error of any text may hide it.
    pub(super) fn add_missing(&self, byte: usize, message: String) {
        if !self.shared.has_syntax_error.get() {
            self.add_problem(byte, message);
        }
    }

    /// Records that the text names a file. Must be called before the file is read.
    pub(super) fn add_named_file(&self, file: PathBuf, kind: FileKind) {
        let file = NamedFile::about_to_be_read(file, kind);
        self.shared.named.borrow_mut().push(file);
    }

    /// Adds a warning about a legal value that is probably a mistake.
    pub(super) fn add_warning(&self, byte: usize, message: &str) {
        let message = on_one_line(&self.shared.without_secrets(message.to_owned()));
        self.warnings.borrow_mut().push((byte, message));
    }

    /// Returns a location in the text: `gateway.toml:12:8`.
    pub(super) fn location(&self, byte: usize) -> String {
        let found = Problem::locate(self.text, vec![(byte, String::new())]);
        let location = |it: &Problem| format!("{}:{}:{}", self.file.display(), it.line, it.column);
        found.iter().map(location).collect()
    }

    /// Empties one of the lists `problems` and `warnings`, and returns its entries with line and
    /// column.
    pub(super) fn take(&self, found: &RefCell<Vec<(usize, String)>>) -> Vec<Problem> {
        let mut problems = Problem::locate(self.text, found.take());
        for problem in problems.iter_mut().filter(|_| self.is_included) {
            problem.file = Some(self.file.to_owned());
        }
        problems
    }
}
