//! Reads HTTP/1.1 messages.

use std::io::{self, BufRead, Read};

/// The head of a request or a response.
#[derive(Clone, Debug)]
pub struct Head {
    pub first_line: String,
    pub fields: Vec<(String, String)>,
}

/// A response with its complete body.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: Head,
    pub body: Vec<u8>,
}

impl Head {
    /// Reads a head; `None` if the peer closed the connection instead.
    pub fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if from.read_line(&mut line)? == 0 {
                return if lines.is_empty() {
                    Ok(None)
                } else {
                    Err(cut_short())
                };
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            lines.push(line.to_owned());
        }
        let mut lines = lines.into_iter();
        let first_line = lines.next().ok_or_else(cut_short)?;
        let field = |line: String| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        Ok(Some(Self {
            first_line,
            fields: lines.filter_map(field).collect(),
        }))
    }

    /// Returns the value of a field. The name is given in lower case.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn is_chunked(&self) -> bool {
        self.field("transfer-encoding")
            .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
    }

    pub fn length(&self) -> Option<u64> {
        self.field("content-length")?.parse().ok()
    }

    /// Reads the body that follows this head: framed, or none.
    pub fn read_body(&self, from: &mut impl BufRead) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        self.pass_body(from, |piece| body.extend_from_slice(piece))?;
        Ok(body)
    }

    /// Reads the body piece by piece. Fails if it does not end as its framing says.
    pub fn pass_body(
        &self,
        from: &mut impl BufRead,
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        if !self.is_chunked() {
            return pass(from, self.length().unwrap_or(0), &mut take);
        }
        loop {
            let size = read_line(from)?;
            let size = u64::from_str_radix(size.trim_end(), 16).map_err(io::Error::other)?;
            pass(from, size, &mut take)?;
            if !read_line(from)?.trim_end().is_empty() {
                return Err(io::Error::other("something follows a chunk"));
            }
            if size == 0 {
                return Ok(());
            }
        }
    }
}

impl Answer {
    pub fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let head = Head::read(from)?.ok_or_else(cut_short)?;
        let status = head
            .first_line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(head.first_line.clone()))?;
        let body = head.read_body(from)?;
        Ok(Self { status, head, body })
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.field(name)
    }

    /// Returns the values of all fields of a name. The name is given in lower case.
    pub fn fields(&self, name: &str) -> Vec<&str> {
        let fields = self.head.fields.iter();
        let named = fields.filter(|(found, _)| found == name);
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// Returns the number that a field holds.
    pub fn number(&self, name: &str) -> u64 {
        let value = self.field(name).and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("no number {name} in {:?}", self.head))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn pass(from: &mut impl BufRead, length: u64, take: &mut impl FnMut(&[u8])) -> io::Result<()> {
    let mut from = from.take(length);
    let mut left = length;
    while left > 0 {
        let piece = from.fill_buf()?;
        if piece.is_empty() {
            return Err(cut_short());
        }
        take(piece);
        let taken = piece.len();
        left -= taken as u64;
        from.consume(taken);
    }
    Ok(())
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(cut_short());
    }
    Ok(line)
}

fn cut_short() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}
