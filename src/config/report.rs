//! Collects the problems of a text and of those that it includes.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeTable;

use super::hidden::{HIDDEN, may_be_key};
use super::problem::on_one_line;
use super::toml_string::toml_string;
use super::unclosed::{Closed, close};
use super::{FileKind, NamedFile, Problem};

/// What the reports of a file and of the files that it includes share.
#[derive(Default)]
pub(super) struct Shared {
    /// Whether one of the texts has a syntax error, which may hide what others name.
    is_broken: Cell<bool>,
    /// Whether a text has a problem.
    has_problem: Cell<bool>,
    /// Other files that the texts name and that are read with them.
    named: RefCell<Vec<NamedFile>>,
    /// The zones whose keys no message shows, whatever the texts say.
    masked: Vec<String>,
    /// Values from the environment, each with what messages show for it.
    secrets: RefCell<BTreeMap<String, String>>,
    /// The names of `[jwt.NAME]`, each with the claims that variables read.
    claims: RefCell<BTreeMap<String, BTreeSet<String>>>,
}

/// Values from the environment shorter than this are no secrets, and part of many messages.
const MIN_SECRET: usize = 4;

impl Shared {
    /// `masked`: zones whose keys no message shows, whatever the texts say.
    pub(super) fn masking(masked: Vec<String>) -> Self {
        Self {
            masked,
            ..Self::default()
        }
    }

    /// Whether no message shows the keys of the zone of this name, whatever the texts say.
    pub(super) fn masks(&self, zone: &str) -> bool {
        self.masked.iter().any(|masked| masked == zone)
    }

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

    /// Notes that there is a `[jwt.NAME]`.
    pub(super) fn has_jwt(&self, name: &str) {
        self.claims.borrow_mut().entry(name.to_owned()).or_default();
    }

    /// Notes that a variable reads a claim. Fails with the names of all `[jwt.NAME]` if there is
    /// none of this name.
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

    /// The claims that variables read of tokens by this `[jwt.NAME]`.
    pub(super) fn claims_of(&self, name: &str) -> Vec<String> {
        let claims = self.claims.borrow();
        claims.get(name).into_iter().flatten().cloned().collect()
    }

    /// Notes the value of a variable, which no message may show.
    pub(super) fn hide(&self, name: &str, value: String) {
        if value.len() >= MIN_SECRET {
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

/// A text as a table, and what its syntax is wrong in.
pub(super) struct Parsed<'t> {
    /// The text that the table was made of.
    text: &'t str,
    pub(super) table: Spanned<DeTable<'t>>,
    errors: Vec<toml::de::Error>,
    /// Ends that are missing, and were put in before the table was made.
    forgotten: &'t [(usize, String)],
}

impl<'t> Parsed<'t> {
    /// Parses a text. `closed` keeps the text with its forgotten ends, if any are missing.
    pub(super) fn of(text: &'t str, closed: &'t OnceCell<Closed>) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        let found = if errors.is_empty() { None } else { close(text) };
        let Some(found) = found else {
            return Self {
                text,
                table,
                errors,
                forgotten: &[],
            };
        };
        let Closed { text, forgotten } = closed.get_or_init(|| found);
        let (table, errors) = DeTable::parse_recoverable(text);
        Self {
            text,
            table,
            errors,
            forgotten,
        }
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
    /// The variables that are empty in such strings, by the strings' bytes.
    empty: RefCell<HashMap<usize, String>>,
}

impl<'t> Report<'t> {
    /// Starts with the syntax errors, at most one for each line.
    ///
    /// The first error of a line often causes the others.
    pub(super) fn new(parsed: &Parsed<'t>, source: Source<'t>) -> Self {
        let text = parsed.text;
        let behind = text.match_indices('\n').map(|(at, _)| at + 1);
        let mut report = Self {
            text,
            source,
            lines: std::iter::once(0).chain(behind).collect(),
            broken: Vec::new(),
            problems: RefCell::default(),
            warnings: RefCell::default(),
            expanded: RefCell::default(),
            empty: RefCell::default(),
        };
        let told = |error: &toml::de::Error| {
            let is_hidden = |written: &str| {
                let name = written.trim_matches(['"', '\'']);
                let masks = |zone: &str| source.shared.masks(zone);
                may_be_key(parsed.table.get_ref(), name, masks)
            };
            SyntaxError {
                byte: error.span().map_or(0, |span| span.start),
                message: syntax(text, error, is_hidden),
                is_duplicate: error.message() == DUPLICATE,
            }
        };
        let mut errors: Vec<_> = parsed.errors.iter().map(told).collect();
        errors.sort_by_key(|it| it.byte);
        // A forgotten end is the cause of all else in its line.
        let forgotten = parsed.forgotten.iter().map(|(byte, message)| SyntaxError {
            byte: *byte,
            message: message.clone(),
            is_duplicate: false,
        });
        errors.splice(..0, forgotten);
        errors.sort_by_key(|it| report.line(it.byte));
        // Without its name, the fields of a table are those of the table before.
        let unnamed = parsed.errors.iter().filter_map(|error| {
            let line = report.line(error.span()?.start);
            (error.message() != DUPLICATE && report.names_table(line)).then_some(line)
        });
        let unnamed = unnamed.min();
        errors.dedup_by_key(|it| report.line(it.byte));
        for it in &errors {
            let follows = unnamed.is_some_and(|line| line < report.line(it.byte));
            if !(it.is_duplicate && follows) {
                report.wrong(it.byte, it.message.clone());
            }
        }
        report.broken = errors.iter().map(|it| report.line(it.byte)).collect();
        if !errors.is_empty() {
            source.shared.is_broken.set(true);
        }
        report
    }

    /// The line of a byte, from 1.
    fn line(&self, byte: usize) -> usize {
        self.lines.partition_point(|start| *start <= byte)
    }

    /// Whether a line begins as one that names a table does.
    fn names_table(&self, line: usize) -> bool {
        let start = line.checked_sub(1).and_then(|nth| self.lines.get(nth));
        let text = start.and_then(|start| self.text.get(*start..));
        text.is_some_and(|it| it.trim_start_matches([' ', '\t']).starts_with('['))
    }

    /// Reports a problem at a byte.
    pub(super) fn wrong(&self, byte: usize, message: String) {
        if self.broken.binary_search(&self.line(byte)).is_err() {
            self.source.shared.has_problem.set(true);
            let message = on_one_line(&self.source.shared.without_secrets(message));
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
    pub(super) fn names(&self, file: PathBuf, kind: FileKind) {
        self.shared().names(NamedFile::about_to_be_read(file, kind));
    }

    pub(super) fn shared(&self) -> &'t Shared {
        self.source.shared
    }

    /// Notes that the string at a byte has variables of the environment. `written` is the string
    /// with them, or `None` if they are wrong.
    pub(super) fn expands(&self, byte: usize, written: Option<String>) {
        self.expanded.borrow_mut().insert(byte, written);
    }

    /// The string at a byte as it is written, if it has variables of the environment;
    /// `Some(None)` if they are wrong.
    #[expect(
        clippy::option_option,
        reason = "a wrong variable is not an absent one"
    )]
    pub(super) fn expanded(&self, byte: usize) -> Option<Option<String>> {
        self.expanded.borrow().get(&byte).cloned()
    }

    /// Notes that this variable of the string at a byte is empty in the environment.
    pub(super) fn has_empty(&self, byte: usize, variable: String) {
        self.empty.borrow_mut().insert(byte, variable);
    }

    /// A variable of the string at a byte that is empty in the environment.
    pub(super) fn empty_variable(&self, byte: usize) -> Option<String> {
        self.empty.borrow().get(&byte).cloned()
    }

    /// The absolute path of the folder of the text's file.
    pub(super) fn folder(&self) -> &'t Path {
        self.source.folder
    }

    /// Warns of what is legal at a byte and probably a mistake.
    pub(super) fn warn(&self, byte: usize, message: &str) {
        let message = on_one_line(&self.shared().without_secrets(message.to_owned()));
        self.warnings.borrow_mut().push((byte, message));
    }

    /// A place in the text: `gateway.toml:12:8`.
    pub(super) fn place(&self, byte: usize) -> String {
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

/// A syntax error of a text.
struct SyntaxError {
    byte: usize,
    message: String,
    /// Whether it is about a key that was there before.
    is_duplicate: bool,
}

/// The parser's message for a key that was there before.
const DUPLICATE: &str = "duplicate key";

/// The message of a syntax error.
///
/// For a duplicate key, the parser's message does not name the key. The text at its place does,
/// unless it is a text that `is_hidden`.
fn syntax(text: &str, error: &toml::de::Error, is_hidden: impl Fn(&str) -> bool) -> String {
    let written = error.span().and_then(|span| text.get(span));
    match (error.message(), written) {
        (DUPLICATE, Some(key)) if is_hidden(key) => {
            format!("duplicate key {HIDDEN}; remove one")
        }
        (DUPLICATE, Some(key)) if key.starts_with(['"', '\'']) => {
            format!("duplicate key {key}; remove one")
        }
        (DUPLICATE, Some(key)) => format!("duplicate key {}; remove one", toml_string(key)),
        (message, _) => message.replace('\n', " "),
    }
}
