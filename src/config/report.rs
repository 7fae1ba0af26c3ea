//! Collects the problems of the configuration file and its included files.
//!
//! A problem becomes a [`Problem`] with line and column at the end.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeTable;

use super::problem::on_one_line;
use super::{FileKind, NamedFile, Problem};

/// Data that the reports of a file and its included files share.
#[derive(Default)]
pub(super) struct Shared {
    /// One of the texts has a syntax error. It may hide names that other texts use.
    is_broken: Cell<bool>,
    /// One of the texts has a problem.
    has_problem: Cell<bool>,
    /// Other files that the texts name and that are read with them.
    named: RefCell<Vec<NamedFile>>,
    /// Zones whose keys no message shows, whatever the texts say.
    masked: Vec<String>,
    /// Values from the environment, each with its replacement in messages.
    secrets: RefCell<BTreeMap<String, String>>,
    /// Names of `[jwt.NAME]`, each with the claims that variables read.
    claims: RefCell<BTreeMap<String, BTreeSet<String>>>,
}

/// Minimum length of a secret. Shorter values from the environment occur in many messages.
const MIN_SECRET: usize = 4;

impl Shared {
    /// Starts with zones whose keys no message shows, whatever the texts say.
    pub(super) fn masking(masked: Vec<String>) -> Self {
        Self {
            masked,
            ..Self::default()
        }
    }

    /// Returns whether no message shows the keys of the zone of this name.
    pub(super) fn masks(&self, zone: &str) -> bool {
        self.masked.iter().any(|masked| masked == zone)
    }

    /// Records that a text names a file. Must be called before the file is read.
    pub(super) fn names(&self, file: NamedFile) {
        self.named.borrow_mut().push(file);
    }

    /// Records the content of a named file. `is_secret`: its name comes from the environment.
    pub(super) fn has_read(&self, path: &Path, content: &[u8], is_secret: bool) {
        let mut named = self.named.borrow_mut();
        // A file is read soon after it is named, so the search begins with the newest.
        let mut unread = named.iter_mut().rev().filter(|file| file.needs_digest());
        if let Some(file) = unread.find(|file| file.path == path) {
            let mut hasher = DefaultHasher::new();
            content.hash(&mut hasher);
            (file.digest, file.is_secret) = (Some(hasher.finish()), is_secret);
        }
    }

    pub(super) fn has_problem(&self) -> bool {
        self.has_problem.get()
    }

    pub(super) fn take_named(&self) -> Vec<NamedFile> {
        self.named.take()
    }

    /// Records that a `[jwt.NAME]` exists.
    pub(super) fn has_jwt(&self, name: &str) {
        self.claims.borrow_mut().entry(name.to_owned()).or_default();
    }

    /// Records that a variable reads a claim.
    ///
    /// Fails with the names of all `[jwt.NAME]` if none has this name.
    pub(super) fn reads_claim(&self, name: &str, claim: &str) -> Result<(), Vec<String>> {
        let mut claims = self.claims.borrow_mut();
        match claims.get_mut(name) {
            Some(known) => {
                known.insert(claim.to_owned());
                Ok(())
            }
            None => Err(claims.keys().cloned().collect()),
        }
    }

    /// Returns the claims that variables read through this `[jwt.NAME]`.
    pub(super) fn claims_of(&self, name: &str) -> Vec<String> {
        let claims = self.claims.borrow();
        claims.get(name).into_iter().flatten().cloned().collect()
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
            if message.contains(value) {
                message = message.replace(value, shown);
            }
        }
        message
    }
}

/// A parsed text, and its first syntax error.
pub(super) struct Parsed<'t> {
    text: &'t str,
    pub(super) table: Spanned<DeTable<'t>>,
    error: Option<(usize, String)>,
}

impl<'t> Parsed<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        let errors = errors.iter().map(|error| {
            let byte = error.span().map_or(0, |span| span.start);
            (byte, error.message().replace('\n', " "))
        });
        Self {
            text,
            table,
            error: errors.min_by_key(|(byte, _)| *byte),
        }
    }
}

/// Origin of a text.
#[derive(Clone, Copy)]
pub(super) struct Source<'t> {
    /// Path of the file, as messages show it.
    pub(super) file: &'t Path,
    /// Another file includes this one.
    pub(super) is_included: bool,
    /// Absolute path of the file's folder. File names in the text are relative to it.
    pub(super) folder: &'t Path,
    pub(super) shared: &'t Shared,
}

impl<'t> Source<'t> {
    /// Makes the source of a file that no other file includes.
    pub(super) fn of(file: &'t Path, folder: &'t Path, shared: &'t Shared) -> Self {
        Self {
            file,
            is_included: false,
            folder,
            shared,
        }
    }
}

/// Collects the problems of one text.
pub(super) struct Report<'t> {
    text: &'t str,
    source: Source<'t>,
    /// The text has a syntax error. Then no other problem is reported.
    ///
    /// After a syntax error the parser only guesses what follows.
    is_broken: bool,
    /// Pairs of a byte offset and a message.
    problems: RefCell<Vec<(usize, String)>>,
    /// Warnings about legal values that are probably mistakes, as pairs like `problems`.
    warnings: RefCell<Vec<(usize, String)>>,
    /// Strings with variables of the environment before expansion, by byte offset.
    ///
    /// `None`: a variable is wrong, which has been reported.
    expanded: RefCell<HashMap<usize, Option<String>>>,
    /// Empty variables in such strings, by the byte offset of the string.
    empty: RefCell<HashMap<usize, String>>,
}

impl<'t> Report<'t> {
    /// Starts with the syntax error, if the text has one.
    pub(super) fn new(parsed: &Parsed<'t>, source: Source<'t>) -> Self {
        let mut report = Self {
            text: parsed.text,
            source,
            is_broken: false,
            problems: RefCell::default(),
            warnings: RefCell::default(),
            expanded: RefCell::default(),
            empty: RefCell::default(),
        };
        if let Some((byte, message)) = &parsed.error {
            report.wrong(*byte, message.clone());
            report.is_broken = true;
            source.shared.is_broken.set(true);
        }
        report
    }

    /// Reports a problem at a byte offset.
    pub(super) fn wrong(&self, byte: usize, message: String) {
        if !self.is_broken {
            self.source.shared.has_problem.set(true);
            let message = on_one_line(&self.source.shared.without_secrets(message));
            self.problems.borrow_mut().push((byte, message));
        }
    }

    /// Reports that something is missing, unless a syntax error of any text may hide it.
    pub(super) fn missing(&self, byte: usize, message: String) {
        if !self.source.shared.is_broken.get() {
            self.wrong(byte, message);
        }
    }

    /// Records that the text names a file. Must be called before the file is read.
    pub(super) fn names(&self, file: PathBuf, kind: FileKind) {
        self.shared().names(NamedFile::about_to_be_read(file, kind));
    }

    pub(super) fn shared(&self) -> &'t Shared {
        self.source.shared
    }

    /// Records that the string at a byte offset has variables of the environment.
    ///
    /// `written`: the string before expansion, or `None` if a variable is wrong.
    pub(super) fn expands(&self, byte: usize, written: Option<String>) {
        self.expanded.borrow_mut().insert(byte, written);
    }

    /// Returns the string at a byte offset before expansion, if it has variables.
    ///
    /// `Some(None)` if a variable is wrong.
    pub(super) fn expanded(&self, byte: usize) -> Option<Option<String>> {
        self.expanded.borrow().get(&byte).cloned()
    }

    /// Records that a variable of the string at a byte offset is empty in the environment.
    pub(super) fn has_empty(&self, byte: usize, variable: String) {
        self.empty.borrow_mut().insert(byte, variable);
    }

    /// Returns an empty variable of the string at a byte offset, if it has one.
    pub(super) fn empty_variable(&self, byte: usize) -> Option<String> {
        self.empty.borrow().get(&byte).cloned()
    }

    /// Returns the absolute path of the folder of the text's file.
    pub(super) fn folder(&self) -> &'t Path {
        self.source.folder
    }

    /// Adds a warning about a legal value that is probably a mistake.
    pub(super) fn warn(&self, byte: usize, message: &str) {
        let message = on_one_line(&self.shared().without_secrets(message.to_owned()));
        self.warnings.borrow_mut().push((byte, message));
    }

    /// Returns a location in the text: `gateway.toml:12:8`.
    pub(super) fn location(&self, byte: usize) -> String {
        let found = Problem::all(self.text, vec![(byte, String::new())]);
        let location =
            |it: &Problem| format!("{}:{}:{}", self.source.file.display(), it.line, it.column);
        found.iter().map(location).collect()
    }

    pub(super) fn take_warnings(&self) -> Vec<Problem> {
        self.located(self.warnings.take())
    }

    pub(super) fn take_problems(&self) -> Vec<Problem> {
        self.located(self.problems.take())
    }

    fn located(&self, found: Vec<(usize, String)>) -> Vec<Problem> {
        let mut problems = Problem::all(self.text, found);
        if self.source.is_included {
            for problem in &mut problems {
                problem.file = Some(self.source.file.to_owned());
            }
        }
        problems
    }
}
