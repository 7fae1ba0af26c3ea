//! Parses nginx's directives and blocks into a tree, with includes resolved.

use std::path::{Path, PathBuf};

use super::Files;
use super::glob;
use super::lexer::{Lexer, Token};
use super::notes::{Notes, SourceLocation};

/// A directive: `name args;` or `name args { block }`.
pub(super) struct Directive<'n> {
    pub(super) name: String,
    pub(super) args: Vec<String>,
    pub(super) block: Option<Vec<Directive<'n>>>,
    pub(super) at: SourceLocation<'n>,
}

impl<'n> Directive<'n> {
    fn new(name: String, at: SourceLocation<'n>) -> Self {
        Self {
            name,
            args: Vec::new(),
            block: None,
            at,
        }
    }

    /// Returns the directives in its block; empty without a block.
    pub(super) fn inside(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }

    /// Returns an argument by index, from 0; empty if it does not exist.
    pub(super) fn arg(&self, index: usize) -> &str {
        self.args.get(index).map_or("", String::as_str)
    }
}

/// Maximum depth of nested blocks. Deeper blocks are left out.
const DEEPEST: usize = 50;
/// Maximum depth of nested includes. Deeper includes are left out.
const MAX_NESTED: usize = 10;
const MAX_FILES: usize = 2000;
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Maximum number of words and marks in all files. Each takes up to 200 bytes of memory.
const MAX_TOKENS: usize = 1_000_000;

/// Reads files into a tree.
pub(super) struct Reader<'f> {
    files: &'f dyn Files,
    folder: PathBuf,
    read: usize,
    bytes: usize,
    tokens: usize,
    /// The chain of files being read: each includes the next.
    open: Vec<PathBuf>,
    notes: &'f Notes,
    /// Whether a file contains Lua code, whose quotes and braces do not follow nginx's rules.
    pub(super) has_lua: bool,
}

impl<'f> Reader<'f> {
    pub(super) fn new(files: &'f dyn Files, main: &Path, notes: &'f Notes) -> Self {
        Self {
            files,
            folder: main.parent().unwrap_or(Path::new("")).to_owned(),
            read: 0,
            bytes: 0,
            tokens: 0,
            open: Vec::new(),
            notes,
            has_lua: false,
        }
    }

    /// Reads the text of a file.
    pub(super) fn parse(&mut self, path: &Path, text: &[u8]) -> Vec<Directive<'f>> {
        let start = self.notes.start_of(path);
        self.read += 1;
        self.bytes += text.len();
        self.open.push(path.to_owned());
        let mut lexer = Lexer::new(text);
        let mut inside = Vec::new();
        while self.block(&mut lexer, start, 0, &mut inside) {
            start.at_line(lexer.line()).note("a } that closes nothing");
        }
        self.open.pop();
        inside
    }

    /// Reads the content of a block. Returns whether a `}` ends it rather than the end of the file.
    fn block(
        &mut self,
        lexer: &mut Lexer,
        start: SourceLocation<'f>,
        depth: usize,
        inside: &mut Vec<Directive<'f>>,
    ) -> bool {
        let mut open: Option<Directive> = None;
        while let Some((token, line)) = lexer.next() {
            let at = start.at_line(line);
            self.tokens += 1;
            if self.tokens > MAX_TOKENS {
                if self.tokens == MAX_TOKENS + 1 {
                    let message =
                        "too many words: the rest and its limits are not read. Import it in parts";
                    at.lose(message);
                }
                break;
            }
            if let Some(complaint) = lexer.complaint {
                at.note(complaint);
            }
            match token {
                Token::Word(word) => match &mut open {
                    Some(open) => open.args.push(word),
                    None => open = Some(Directive::new(word, at)),
                },
                Token::Semicolon => match open.take() {
                    None => at.note("a ; without a directive before it"),
                    Some(simple) => self.put(inside, simple),
                },
                Token::Close => {
                    inside.extend(unended(open));
                    return true;
                }
                Token::Open => {
                    let mut head = open.take().unwrap_or_else(|| {
                        at.note("a { without a directive before it");
                        Directive::new(String::new(), at)
                    });
                    if head.name.ends_with("_by_lua_block") {
                        self.has_lua = true;
                        let message = format!(
                            "{} is not read, and so nothing is translated; put the code into a file, as with access_by_lua_file",
                            head.name
                        );
                        at.note(message);
                    }
                    if self.has_lua {
                        return false;
                    }
                    let mut within = Vec::new();
                    let is_closed = if depth < DEEPEST {
                        self.block(lexer, start, depth + 1, &mut within)
                    } else {
                        at.note("blocks are nested too deeply; this one is left out");
                        skip(lexer)
                    };
                    if !is_closed && !self.has_lua {
                        let message = format!("the block of {} is never closed", head.name);
                        head.at.note(message);
                    }
                    if depth < DEEPEST {
                        head.block = Some(within);
                        inside.push(head);
                    }
                }
            }
        }
        inside.extend(unended(open));
        false
    }

    fn put(&mut self, inside: &mut Vec<Directive<'f>>, simple: Directive<'f>) {
        match (&*simple.name, &simple.args[..]) {
            ("include", [pattern]) => inside.extend(self.include(pattern, simple.at)),
            _ => inside.push(simple),
        }
    }

    fn include(&mut self, pattern: &str, at: SourceLocation<'f>) -> Vec<Directive<'f>> {
        let path = self.folder.join(pattern);
        let paths = if glob::is_pattern(pattern) {
            glob::expand(&path, self.files)
        } else {
            vec![path]
        };
        // nginx accepts an include without files. But if the file was copied from another machine,
        // the included files may be missing.
        if paths.is_empty() {
            let what = format!("{pattern} matches no file; nothing is included");
            at.note(what);
        }
        let mut inside = Vec::new();
        for path in paths {
            let text = if self.open.contains(&path) {
                Err("it includes itself".to_owned())
            } else if self.open.len() > MAX_NESTED {
                Err("includes are nested too deeply".to_owned())
            } else if self.read >= MAX_FILES || self.bytes >= MAX_BYTES {
                Err("too much is included".to_owned())
            } else {
                self.files.read(&path).map_err(|error| error.to_string())
            };
            match text {
                Ok(text) => inside.extend(self.parse(&path, &text)),
                Err(why) => {
                    let what = format!("{} is not included: {why}", path.display());
                    at.note(what);
                }
            }
        }
        inside
    }
}

/// Returns the directive that is still open, and notes the missing `;`.
fn unended(open: Option<Directive>) -> Option<Directive> {
    let unended = open?;
    let message = format!("{} has no ; at its end", unended.name);
    unended.at.note(message);
    Some(unended)
}

/// Skips the rest of a block. Returns whether the block is closed.
fn skip(lexer: &mut Lexer) -> bool {
    let mut depth = 1usize;
    while let Some((token, _)) = lexer.next() {
        match token {
            Token::Open => depth += 1,
            Token::Close if depth == 1 => return true,
            Token::Close => depth -= 1,
            Token::Word(_) | Token::Semicolon => {}
        }
    }
    false
}
