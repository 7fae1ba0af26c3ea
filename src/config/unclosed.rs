//! Finds forgotten ends of lists, inline tables, texts and the names of tables.
//!
//! Without the end the parser reads on through the next tables, and reports each of their lines.
//! So the end is put in where it probably belongs, and the text with it is parsed instead. An end
//! goes behind all else of its line: the lines and columns of the rest stay as they are.

use super::table_header::{Header, is_name};

/// A text with the ends that were forgotten.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Closed {
    pub(super) text: String,
    /// A message for each end, and its byte in `text`.
    pub(super) forgotten: Vec<(usize, String)>,
}

/// Puts forgotten ends into a text that the parser refuses; `None` if none is missing.
pub(super) fn close(text: &str) -> Option<Closed> {
    let mut scan = Scan {
        text,
        line: 1,
        open: Vec::new(),
        lists: 0,
        last: 0,
        last_line: 1,
        missing: Vec::new(),
    };
    scan.run();
    if scan.missing.is_empty() {
        return None;
    }
    let (mut closed, mut forgotten, mut copied) = (String::new(), Vec::new(), 0);
    for Missing { at, end, message } in scan.missing {
        closed.push_str(&text[copied..at]);
        forgotten.push((closed.len(), message));
        closed.push_str(&end);
        copied = at;
    }
    closed.push_str(&text[copied..]);
    Some(Closed {
        text: closed,
        forgotten,
    })
}

/// Most brackets that a message shows.
const MAX_SHOWN: usize = 8;

/// The tables of which there is a list, so that their names are in double brackets.
const LISTS: &[&str] = &["routes", "routes.limits", "server.listen"];

/// An end that is missing.
struct Missing {
    at: usize,
    end: String,
    message: String,
}

/// A `[` or `{` that is open.
#[derive(Clone, Copy)]
struct Open {
    bracket: u8,
    line: usize,
}

struct Scan<'t> {
    text: &'t str,
    /// The current line, from 1.
    line: usize,
    open: Vec<Open>,
    /// How many of them are lists.
    lists: usize,
    /// The byte behind the last one that is neither blank nor comment, and its line.
    last: usize,
    last_line: usize,
    /// In the order of the text.
    missing: Vec<Missing>,
}

impl Scan<'_> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        let (mut at, mut is_first) = (0, true);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'\n' => {
                    self.line += 1;
                    is_first = true;
                    at += 1;
                }
                b' ' | b'\t' | b'\r' => at += 1,
                b'#' => at = self.end_of_line(at),
                _ => {
                    if is_first && self.begins_statement(at) {
                        self.close_down_to(0, self.last);
                    }
                    at = if is_first && self.open.is_empty() && *byte == b'[' {
                        self.name_of_table(at)
                    } else {
                        self.token(at)
                    };
                    is_first = false;
                    (self.last, self.last_line) = (at, self.line);
                }
            }
        }
        self.close_down_to(0, self.last);
    }

    /// Reads the line that names a table; returns the byte behind it.
    ///
    /// Of a name with wrong brackets the parser takes the next lines for those of the table before.
    fn name_of_table(&mut self, at: usize) -> usize {
        let line_end = self.end_of_line(at);
        if let Some(header) = Header::of(&self.text[at..line_end]) {
            self.missing_in(&header, at);
        }
        line_end
    }

    /// Puts the brackets right of a table's name that begins at a byte.
    fn missing_in(&mut self, header: &Header, at: usize) {
        let Header {
            name,
            opened,
            closed,
        } = *header;
        let is_list = LISTS.contains(&name.trim());
        let wanted = if is_list { 2 } else { opened };
        let behind = at + opened + name.len() + closed;
        if opened < wanted {
            let message = match wanted.saturating_sub(closed) {
                0 => "[ is missing; ",
                1 => "[ and ] are missing; ",
                _ => "[ and ]] are missing; ",
            };
            self.missing.push(Missing {
                at,
                end: "[".to_owned(),
                message: format!("{message}write [[{}]]", name.trim()),
            });
        }
        if closed < wanted {
            let end = "]".repeat(wanted - closed);
            let message = format!(
                "{end} is missing; add it here, to close the {} of line {}",
                "[".repeat(wanted),
                self.line
            );
            self.missing.push(Missing {
                at: behind,
                end,
                message,
            });
        } else if closed > wanted {
            let more = "]".repeat(closed - wanted);
            self.missing.push(Missing {
                at: behind - more.len(),
                // The rest of the line becomes a comment.
                end: "#".to_owned(),
                message: format!("there is a {more} too many; remove it"),
            });
        }
    }

    fn end_of_line(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        at + rest.find('\n').unwrap_or(rest.len())
    }

    /// Whether a line cannot be a part of what is open.
    fn begins_statement(&self, at: usize) -> bool {
        let Some(open) = self.open.last() else {
            return false;
        };
        let line = &self.text[at..self.end_of_line(at)];
        if names_table(line) {
            return true;
        }
        if open.bracket == b'[' {
            return assigns(line);
        }
        // A table may have several lines. One that begins in the line before, and ends there
        // without a comma, was meant to have one.
        let is_done = !self.text[..self.last].ends_with([',', '{']);
        assigns(line) && open.line == self.last_line && is_done
    }

    /// Reads what begins at a byte; returns the byte behind it.
    fn token(&mut self, at: usize) -> usize {
        let bracket = self.text.as_bytes()[at];
        match bracket {
            b'"' | b'\'' => return self.string(at),
            b'[' | b'{' => {
                self.lists += usize::from(bracket == b'[');
                self.open.push(Open {
                    bracket,
                    line: self.line,
                });
            }
            b']' | b'}' => self.end(bracket),
            _ => {}
        }
        at + self.text[at..].chars().next().map_or(1, char::len_utf8)
    }

    /// Closes the innermost list or table that ends so, and what is open within.
    fn end(&mut self, end: u8) {
        let tables = self.open.len() - self.lists;
        if (if end == b']' { self.lists } else { tables }) == 0 {
            return;
        }
        if let Some(opened) = self.open.iter().rposition(|open| end_of(open) == end) {
            self.close_down_to(opened + 1, self.last);
            self.lists -= usize::from(end == b']');
            self.open.pop();
        }
    }

    /// Reads a text in quotes; returns the byte behind it.
    fn string(&mut self, at: usize) -> usize {
        let quote = &self.text[at..=at];
        let triple = quote.repeat(3);
        let text = &self.text[at..];
        let quotes = if text.starts_with(&triple) {
            &*triple
        } else {
            quote
        };
        if let Some(length) = length(text, quotes) {
            self.line += text[..length].matches('\n').count();
            return at + length;
        }
        let end = self.end_of_string(at + quotes.len(), self.end_of_line(at));
        self.missing.push(Missing {
            at: end,
            end: quotes.to_owned(),
            message: format!("the closing {quotes} of a text is missing; add it here"),
        });
        end
    }

    /// Where a text probably ends: before what closes the lists and tables around it.
    fn end_of_string(&self, begin: usize, line_end: usize) -> usize {
        let text = self.text[begin..line_end].trim_end();
        let (mut rest, mut closed) = (text, 0);
        while closed < self.open.len()
            && let Some(shorter) = rest.strip_suffix([']', '}', ',', ' '])
        {
            closed += usize::from(rest.ends_with([']', '}']));
            rest = shorter;
        }
        begin + rest.trim_end().len()
    }

    /// Closes what is open, but for the outer `kept`, with ends at a byte.
    fn close_down_to(&mut self, kept: usize, at: usize) {
        let closing = &self.open[kept..];
        let Some(first) = closing.first() else {
            return;
        };
        let end = closing.iter().rev().map(|open| char::from(end_of(open)));
        let end: String = end.collect();
        let begin = closing.iter().map(|open| char::from(open.bracket));
        let begin: String = begin.collect();
        let message = if closing.len() <= MAX_SHOWN {
            format!(
                "{end} is missing; add it here, to close the {begin} of line {}",
                first.line
            )
        } else {
            format!(
                "{} closing brackets are missing; the first opens in line {}; remove those brackets, or close them here",
                closing.len(),
                first.line
            )
        };
        self.missing.push(Missing { at, end, message });
        self.lists -= closing.iter().filter(|open| open.bracket == b'[').count();
        self.open.truncate(kept);
    }
}

fn end_of(open: &Open) -> u8 {
    if open.bracket == b'[' { b']' } else { b'}' }
}

/// The length of a text with its quotes, if it has an end; one quote ends it on its line.
fn length(text: &str, quotes: &str) -> Option<usize> {
    let (bytes, quote) = (text.as_bytes(), quotes.as_bytes()[0]);
    let is_long = quotes.len() == 3;
    let mut at = quotes.len();
    loop {
        match *bytes.get(at)? {
            b'\\' if quote == b'"' => at += 1,
            b'\n' if !is_long => return None,
            byte if byte == quote && !is_long => return Some(at + 1),
            byte if byte == quote && bytes[at..].starts_with(quotes.as_bytes()) => {
                // Up to two quotes more belong to the text.
                let more = bytes[at + 3..].iter().take(2);
                return Some(at + 3 + more.take_while(|byte| **byte == quote).count());
            }
            _ => {}
        }
        at += 1;
    }
}

/// Whether a line names a table: `[origins.app]`.
fn names_table(line: &str) -> bool {
    let name = line.trim_start_matches('[');
    let brackets = line.len() - name.len();
    let Some((name, behind)) = name.split_once(&"]]"[..brackets.min(2)]) else {
        return false;
    };
    let behind = behind.trim_start();
    (1..=2).contains(&brackets) && is_name(name) && (behind.is_empty() || behind.starts_with('#'))
}

/// Whether a line gives a field a value: `rate = "10r/s"`.
fn assigns(line: &str) -> bool {
    line.split_once('=').is_some_and(|(name, _)| is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_go_where_they_were_forgotten() {
        for (text, expected) in [
            ("a = [1\nb = 2\n", "a = [1]\nb = 2\n"),
            ("a = [1 # one\nb = 2", "a = [1] # one\nb = 2"),
            ("a = [\n  1,\n\n[b]\n", "a = [\n  1,]\n\n[b]\n"),
            ("a = [{ x = 1 }\n[[b]] # b", "a = [{ x = 1 }]\n[[b]] # b"),
            ("a = [{ x = 1 ]\nb = 1", "a = [{ x = 1} ]\nb = 1"),
            ("a = [{ x = 1\nb = 1", "a = [{ x = 1}]\nb = 1"),
            ("a = { x = 1\nb = 1", "a = { x = 1}\nb = 1"),
            ("a = \"x\nb = 1", "a = \"x\"\nb = 1"),
            ("a = 'x\r\nb = 1", "a = 'x'\r\nb = 1"),
            ("a = [\"x\", \"y]\nb = 1", "a = [\"x\", \"y\"]\nb = 1"),
            ("a = [{ x = \"y }]\nb = 1", "a = [{ x = \"y\" }]\nb = 1"),
            ("a = [\n\"x,\n\"y\"]\n", "a = [\n\"x\",\n\"y\"]\n"),
            ("a = \"[0-9]\nb = 1", "a = \"[0-9]\"\nb = 1"),
            ("a = \"\"\"x\nb = 1", "a = \"\"\"x\"\"\"\nb = 1"),
            ("a = [1", "a = [1]"),
            ("[[a] # b\nc = 1", "[[a]] # b\nc = 1"),
            ("[[a # b\nc = 1", "[[a]] # b\nc = 1"),
            ("[a # ]\nb = 1", "[a] # ]\nb = 1"),
            ("[a.\"b\"\n", "[a.\"b\"]\n"),
            ("[a\r\nb = 1 ]\n", "[a]\r\nb = 1 ]\n"),
            ("[ a ]] # b\n", "[ a ]#] # b\n"),
            ("[routes]]\n", "[[routes]]\n"),
            ("[routes] # a\n", "[[routes]] # a\n"),
            ("[routes\n", "[[routes]]\n"),
            ("[[routes\n", "[[routes]]\n"),
            ("[[routes]]]\n", "[[routes]]#]\n"),
            ("a = \"\\", "a = \"\\\""),
        ] {
            let closed = close(text).map(|closed| closed.text);
            assert_eq!(closed.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_closed_stays() {
        for text in [
            "a = [\n  \"x=1\", # [b]\n  \"[b]\",\n]\nb = { x = 1,\n y = 2 }\n",
            "a = '[' # \"\nb = \"\\\"[\"\n[c.\"]\"]\n",
            "a = \"\"\"\n[b\n\"\"\"\nc = '''\n{'''\nd = \"\"\"a\"\"\"\"\n",
            "[a = 1\n[a b\" c\n[[[a\n[]\n[\n[a] b",
            "a = [\n  [\"x\"],\n  [1],\n]\n",
            "",
        ] {
            assert_eq!(close(text), None, "{text}");
        }
    }
}
