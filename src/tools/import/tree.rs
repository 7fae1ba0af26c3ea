//! The directives and their blocks, with includes resolved.

use std::path::{Path, PathBuf};

use super::Files;
use super::glob;
use super::lexer::{Lexer, Token};
use super::notes::{Notes, Place};

/// `name args;` or `name args { block }`.
#[derive(Debug)]
pub(super) struct Directive {
    pub(super) name: String,
    pub(super) args: Vec<String>,
    pub(super) block: Option<Vec<Directive>>,
    pub(super) place: Place,
}

impl Directive {
    /// What is in its block; empty if it has none.
    pub(super) fn inside(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }

    /// An argument, from 0 on; empty if it is not there.
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

/// Maximum number of words and marks of all files. Each takes up to 200 bytes of memory.
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
    pub(super) notes: Notes,
}

/// The words of a directive so far, with their places.
type Words = Vec<(String, Place)>;

/// A block that is not closed yet. The file itself is the outermost.
#[derive(Default)]
struct Opened {
    head: Option<Directive>,
    inside: Vec<Directive>,
}

impl<'f> Reader<'f> {
    pub(super) fn new(files: &'f dyn Files, main: &Path) -> Self {
        Self {
            files,
            folder: main.parent().unwrap_or(Path::new("")).to_owned(),
            read: 0,
            bytes: 0,
            tokens: 0,
            open: Vec::new(),
            notes: Notes::default(),
        }
    }

    /// Reads the text of a file.
    pub(super) fn parse(&mut self, path: &Path, text: &[u8]) -> Vec<Directive> {
        let file = self.notes.file(path);
        self.read += 1;
        self.bytes += text.len();
        self.open.push(path.to_owned());
        let mut lexer = Lexer::new(text);
        let mut blocks = vec![Opened::default()];
        let mut beyond = 0usize;
        let mut words = Words::new();
        while let Some((token, line)) = lexer.next() {
            let place = Place { file, line };
            self.tokens += 1;
            if self.tokens > MAX_TOKENS {
                if self.tokens == MAX_TOKENS + 1 {
                    let message =
                        "too many words: the rest is not read, with its limits; import it in parts";
                    self.notes.lose(place, message);
                }
                break;
            }
            if let Some(complaint) = lexer.complaint {
                self.notes.add(place, complaint);
            }
            match token {
                Token::Word(word) => words.push((word, place)),
                Token::Semicolon => match directive(&mut words) {
                    None => self.notes.add(place, "a ; without a directive before it"),
                    Some(_) if beyond > 0 => {}
                    Some(simple) => self.put(&mut blocks, simple),
                },
                Token::Open => {
                    let head = self.head(&mut words, place);
                    if head.name.ends_with("_by_lua_block") {
                        if !lexer.skip_lua() {
                            self.never_closed(&head);
                        }
                        let block = Some(Vec::new());
                        self.put(&mut blocks, Directive { block, ..head });
                    } else if beyond == 0 && blocks.len() <= DEEPEST {
                        blocks.push(Opened {
                            head: Some(head),
                            inside: Vec::new(),
                        });
                    } else {
                        if beyond == 0 {
                            self.notes
                                .add(place, "blocks are nested too deeply; this one is left out");
                        }
                        beyond += 1;
                    }
                }
                Token::Close => {
                    if let Some(unended) = self.unended(&mut words)
                        && beyond == 0
                    {
                        self.put(&mut blocks, unended);
                    }
                    if beyond > 0 {
                        beyond -= 1;
                    } else if !close(&mut blocks) {
                        self.notes.add(place, "a } that closes nothing");
                    }
                }
            }
        }
        let inside = self.end(words, blocks);
        self.open.pop();
        inside
    }

    /// What is in a file that has ended, with these words and blocks left open.
    fn end(&mut self, mut words: Words, mut blocks: Vec<Opened>) -> Vec<Directive> {
        if let Some(unended) = self.unended(&mut words) {
            self.put(&mut blocks, unended);
        }
        while blocks.len() > 1 {
            if let Some(head) = blocks.last().and_then(|block| block.head.as_ref()) {
                self.never_closed(head);
            }
            close(&mut blocks);
        }
        blocks.pop().map(|file| file.inside).unwrap_or_default()
    }

    /// The directive of the words before a `{`.
    fn head(&mut self, words: &mut Words, place: Place) -> Directive {
        directive(words).unwrap_or_else(|| {
            self.notes.add(place, "a { without a directive before it");
            Directive {
                name: String::new(),
                args: Vec::new(),
                block: None,
                place,
            }
        })
    }

    /// A directive of the words so far, which has no `;`.
    fn unended(&mut self, words: &mut Words) -> Option<Directive> {
        let unended = directive(words)?;
        let message = format!("{} is not ended by a ;", unended.name);
        self.notes.add(unended.place, message);
        Some(unended)
    }

    fn never_closed(&mut self, head: &Directive) {
        let message = format!("the block of {} is never closed", head.name);
        self.notes.add(head.place, message);
    }

    fn put(&mut self, blocks: &mut [Opened], simple: Directive) {
        let included = match (&*simple.name, &simple.args[..]) {
            ("include", [pattern]) => self.include(pattern, simple.place),
            _ => vec![simple],
        };
        if let Some(block) = blocks.last_mut() {
            block.inside.extend(included);
        }
    }

    fn include(&mut self, pattern: &str, place: Place) -> Vec<Directive> {
        let path = self.folder.join(pattern);
        let paths = if glob::is_pattern(pattern) {
            glob::expand(&path, self.files)
        } else {
            vec![path]
        };
        // nginx accepts this. But if the file was moved from another machine, the included files
        // may be missing.
        if paths.is_empty() {
            self.notes.add(
                place,
                format!("{pattern} matches no file; nothing is included"),
            );
        }
        let mut inside = Vec::new();
        for path in paths {
            let refused = if self.open.contains(&path) {
                Some("it includes itself")
            } else if self.open.len() > MAX_NESTED {
                Some("includes are nested too deeply")
            } else if self.read >= MAX_FILES || self.bytes >= MAX_BYTES {
                Some("too much is included")
            } else {
                None
            };
            let text = match refused {
                Some(why) => Err(why.to_owned()),
                None => self.files.read(&path).map_err(|error| error.to_string()),
            };
            match text {
                Ok(text) => inside.extend(self.parse(&path, &text)),
                Err(why) => {
                    let path = path.display();
                    self.notes
                        .add(place, format!("{path} is not included: {why}"));
                }
            }
        }
        inside
    }
}

/// Makes a directive of the words so far.
fn directive(words: &mut Words) -> Option<Directive> {
    let mut words = words.drain(..);
    let (name, place) = words.next()?;
    let args = words.map(|(word, _)| word).collect();
    Some(Directive {
        name,
        args,
        block: None,
        place,
    })
}

/// Closes the innermost block. `false` if only the file itself is open.
fn close(blocks: &mut Vec<Opened>) -> bool {
    let Some(Opened {
        head: Some(head),
        inside,
    }) = blocks.pop_if(|block| block.head.is_some())
    else {
        return false;
    };
    if let Some(outer) = blocks.last_mut() {
        outer.inside.push(Directive {
            block: Some(inside),
            ..head
        });
    }
    true
}
