//! Splits an nginx file into tokens: words, and the marks `;`, `{` and `}`.
//!
//! Handles quotes, escapes, comments and `${var}`.

/// A token of an nginx file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word with its quotes and escapes resolved.
    Word(String),
    /// `;`
    Semicolon,
    /// `{`
    Open,
    /// `}`
    Close,
}

/// Reads tokens from bytes. Invalid UTF-8 in a word becomes U+FFFD.
pub(super) struct Lexer<'t> {
    text: &'t [u8],
    /// Index of the next byte.
    index: usize,
    /// Line number of the next byte, from 1.
    pub(super) line: usize,
    /// Error in the last token, if any.
    pub(super) complaint: Option<&'static str>,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self {
            // Some editors write a byte order mark.
            text: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text),
            index: 0,
            line: 1,
            complaint: None,
        }
    }

    /// Returns the next byte; `None` at the end.
    fn peek(&self) -> Option<u8> {
        self.text.get(self.index).copied()
    }

    /// Returns the next byte and goes on to the one after it.
    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.index += 1;
        self.line += usize::from(byte == b'\n');
        Some(byte)
    }

    /// Returns the next token and the line on which it begins; `None` at the end.
    pub(super) fn next(&mut self) -> Option<(Token, usize)> {
        self.complaint = None;
        loop {
            match self.peek()? {
                byte if is_space(byte) => drop(self.take()),
                // The line feed after a comment counts as white space.
                b'#' => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.index += 1;
                    }
                }
                _ => break,
            }
        }
        let line = self.line;
        let token = match self.peek()? {
            b';' => self.take_mark(Token::Semicolon),
            b'{' => self.take_mark(Token::Open),
            b'}' => self.take_mark(Token::Close),
            quote @ (b'"' | b'\'') => self.read_quoted(quote),
            _ => self.read_bare(),
        };
        Some((token, line))
    }

    /// Takes a mark of one byte.
    fn take_mark(&mut self, token: Token) -> Token {
        self.index += 1;
        token
    }

    /// Reads a quoted word.
    fn read_quoted(&mut self, quote: u8) -> Token {
        self.index += 1;
        let mut word = Vec::new();
        loop {
            match self.take() {
                None => {
                    self.complaint = Some("a quote is never closed");
                    break;
                }
                Some(b'\\') => self.read_escape(&mut word),
                Some(byte) if byte == quote => break,
                Some(byte) => word.push(byte),
            }
        }
        let next = self.peek();
        if next.is_some_and(|byte| !is_space(byte) && !b";{)".contains(&byte)) {
            self.complaint = Some("a space is missing after a closing quote");
        }
        self.make_word(word)
    }

    /// Reads a word without quotes.
    fn read_bare(&mut self) -> Token {
        let mut word = Vec::new();
        let mut is_after_dollar = false;
        while let Some(byte) = self.peek() {
            // The brace in `${var}` belongs to the word.
            let opens_block = byte == b'{' && !is_after_dollar;
            if is_space(byte) || byte == b';' || opens_block {
                break;
            }
            self.index += 1;
            is_after_dollar = byte == b'$';
            if byte == b'\\' {
                self.read_escape(&mut word);
            } else {
                word.push(byte);
            }
        }
        self.make_word(word)
    }

    /// Reads the character after a backslash, and adds what both mean to `word`.
    fn read_escape(&mut self, word: &mut Vec<u8>) {
        match self.take() {
            Some(byte @ (b'"' | b'\'' | b'\\')) => word.push(byte),
            Some(b't') => word.push(b'\t'),
            Some(b'r') => word.push(b'\r'),
            Some(b'n') => word.push(b'\n'),
            // Before any other character a backslash stays, as in nginx.
            other => word.extend([b'\\'].into_iter().chain(other)),
        }
    }

    /// Returns the token of a word.
    fn make_word(&mut self, bytes: Vec<u8>) -> Token {
        Token::Word(String::from_utf8(bytes).unwrap_or_else(|error| {
            self.complaint
                .get_or_insert("not UTF-8: unreadable bytes appear as \u{fffd}");
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        }))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
