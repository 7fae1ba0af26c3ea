//! Parses nginx's directives and blocks into a tree, with includes resolved.
//!
//! A directive is `name args;` or `name args { block }`. Errors become notes, and reading goes on.

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
    /// Location of the name.
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

    /// Returns the directives in the block; empty without a block.
    pub(super) fn inside(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }

    /// Returns an argument by index, from 0; empty if it does not exist.
    pub(super) fn arg(&self, index: usize) -> &str {
        self.args.get(index).map_or("", String::as_str)
    }
}

/// Maximum depth of nested blocks. A file with deeper blocks is not translated.
const MAX_DEPTH: usize = 50;

/// Maximum depth of nested includes. Deeper includes are left out.
const MAX_NESTED_INCLUDES: usize = 10;

/// Maximum number of files. Further includes are left out.
const MAX_FILES: usize = 2000;

/// Maximum number of bytes of all files. Further includes are left out.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Maximum number of words and marks in all files. Each takes up to 200 bytes of memory.
const MAX_TOKENS: usize = 1_000_000;

/// Reads files into a tree.
pub(super) struct Reader<'f> {
    files: &'f dyn Files,
    /// Folder of the main file. Names in `include` are relative to it.
    folder: PathBuf,
    /// Number of files read so far.
    file_count: usize,
    /// Number of bytes in these files.
    byte_count: usize,
    /// Number of tokens read so far.
    token_count: usize,
    /// The chain of files being read: each includes the next.
    open_files: Vec<PathBuf>,
    notes: &'f Notes,
    /// Whether the blocks of a file are unknown from some place on. Then nothing may be translated.
    ///
    /// A file whose end is left out, because of a maximum, is translated as far as it was read.
    pub(super) is_incomplete: bool,
}

impl<'f> Reader<'f> {
    pub(super) fn new(files: &'f dyn Files, main: &Path, notes: &'f Notes) -> Self {
        Self {
            files,
            folder: main.parent().unwrap_or(Path::new("")).to_owned(),
            file_count: 0,
            byte_count: 0,
            token_count: 0,
            open_files: Vec::new(),
            notes,
            is_incomplete: false,
        }
    }

    /// Parses the text of a file, and of the files that it includes.
    pub(super) fn parse(&mut self, path: &Path, text: &[u8]) -> Vec<Directive<'f>> {
        let start = self.notes.start_of(path);
        self.file_count += 1;
        self.byte_count += text.len();
        self.open_files.push(path.to_owned());
        let mut lexer = Lexer::new(text);
        let mut directives = Vec::new();
        while self.read_block(&mut lexer, start, 0, &mut directives) {
            start.at_line(lexer.line).note("a } that closes nothing");
        }
        self.open_files.pop();
        directives
    }

    /// Reads the content of a block. Returns whether a `}` ends it rather than the end of the file.
    ///
    /// `start`: start of the file. `depth`: number of blocks around this one.
    fn read_block(
        &mut self,
        lexer: &mut Lexer,
        start: SourceLocation<'f>,
        depth: usize,
        directives: &mut Vec<Directive<'f>>,
    ) -> bool {
        // The directive whose words are being read.
        let mut current: Option<Directive> = None;
        while let Some((token, line)) = lexer.next() {
            let at = start.at_line(line);
            self.token_count += 1;
            if self.token_count > MAX_TOKENS {
                // The first token above the maximum is noted.
                if self.token_count == MAX_TOKENS + 1 {
                    let message =
                        "too many words: the rest and its limits are not read. Import it in parts";
                    // Not only noted: limits that are not read are lost.
                    at.lose(message);
                }
                break;
            }
            if let Some(complaint) = lexer.complaint {
                at.note(complaint);
            }
            match token {
                Token::Word(word) => match &mut current {
                    Some(directive) => directive.args.push(word),
                    None => current = Some(Directive::new(word, at)),
                },
                Token::Semicolon => match current.take() {
                    None => at.note("a ; without a directive before it"),
                    Some(directive) => match (&*directive.name, &directive.args[..]) {
                        ("include", [pattern]) => {
                            directives.extend(self.read_include(pattern, directive.at));
                        }
                        _ => directives.push(directive),
                    },
                },
                Token::Close => {
                    directives.extend(current.inspect(note_missing_end));
                    return true;
                }
                Token::Open => {
                    let mut directive = current.take().unwrap_or_else(|| {
                        at.note("a { without a directive before it");
                        Directive::new(String::new(), at)
                    });
                    // The quotes and braces of Lua do not follow nginx's rules.
                    if directive.name.ends_with("_by_lua_block") {
                        self.is_incomplete = true;
                        let message = format!(
                            "{} is not read, and so nothing is translated; put the code into a file, as with access_by_lua_file",
                            directive.name
                        );
                        at.note(message);
                    } else if depth == MAX_DEPTH {
                        self.is_incomplete = true;
                        at.note("blocks are nested too deeply, and so nothing is translated");
                    }
                    if self.is_incomplete {
                        return false;
                    }
                    let mut block = Vec::new();
                    let is_closed = self.read_block(lexer, start, depth + 1, &mut block);
                    if !is_closed && !self.is_incomplete {
                        let message = format!("the block of {} is never closed", directive.name);
                        directive.at.note(message);
                    }
                    directive.block = Some(block);
                    directives.push(directive);
                }
            }
        }
        directives.extend(current.inspect(note_missing_end));
        false
    }

    /// Reads the files that an `include` names.
    fn read_include(&mut self, pattern: &str, at: SourceLocation<'f>) -> Vec<Directive<'f>> {
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
        let mut directives = Vec::new();
        for path in paths {
            let text = if self.open_files.contains(&path) {
                Err("it includes itself".to_owned())
            } else if self.open_files.len() > MAX_NESTED_INCLUDES {
                Err("includes are nested too deeply".to_owned())
            } else if self.file_count >= MAX_FILES || self.byte_count >= MAX_BYTES {
                Err("too much is included".to_owned())
            } else {
                self.files.read(&path).map_err(|error| error.to_string())
            };
            match text {
                Ok(text) => directives.extend(self.parse(&path, &text)),
                Err(why) => {
                    let what = format!("{} is not included: {why}", path.display());
                    at.note(what);
                }
            }
        }
        directives
    }
}

/// Notes a directive that ends without a `;`.
fn note_missing_end(directive: &Directive) {
    let message = format!("{} has no ; at its end", directive.name);
    directive.at.note(message);
}
