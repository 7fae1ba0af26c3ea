//! Where the replies of a Redis end, and whether one of them grows too large.

use std::fmt::Write as _;

/// Most bytes of a reply, far above those of the scripts and of the list of a cluster's slots.
pub(super) const MAX_REPLY: u64 = 16 * 1024 * 1024;

/// What each value of a reply counts, however short: the parser keeps a structure for it.
const VALUE: u64 = 64;

/// Longest line that begins a value. Errors have text in theirs.
const MAX_LINE: usize = 64 * 1024;

/// How many lists may be within each other. The parser of the client takes 100.
const MAX_DEPTH: usize = 50;

/// How much of an answer that is none of Redis is quoted.
const QUOTED: usize = 40;

/// Follows the replies on a connection without keeping them.
///
/// The parser of the client buffers whatever the server announces. So lengths are checked before
/// the parser sees them.
///
/// Source: Redis serialization protocol specification, versions 2 and 3.
#[derive(Debug, Default)]
pub(super) struct ReplyScan {
    /// Bytes and values of the present reply so far, and those that it has announced.
    size: u64,
    /// How many values are still to come in each list that is open, the innermost last.
    open: Vec<u64>,
    /// Bytes of a string that are still to come, with the end of its line.
    string: u64,
    /// The line that begins a value, as far as it is here.
    line: Vec<u8>,
    /// How many bytes the line has.
    line_length: usize,
}

/// Why a reply cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadReply {
    /// It does not begin as a value of the protocol does.
    #[error("its answer begins with {0}")]
    Foreign(String),
    /// It is longer than [`MAX_REPLY`].
    #[error("it sent a reply of more than {} MB", MAX_REPLY / 1024 / 1024)]
    TooLarge,
    /// It has no number where one belongs, or too many lists within each other.
    #[error("it sent a reply that cannot be read")]
    Malformed,
}

impl ReplyScan {
    /// Follows what was received.
    pub(super) fn read(&mut self, received: &[u8]) -> Result<(), BadReply> {
        let mut rest = received;
        while !rest.is_empty() {
            if self.string > 0 {
                let taken = rest
                    .len()
                    .min(usize::try_from(self.string).unwrap_or(usize::MAX));
                self.string -= taken as u64;
                rest = &rest[taken..];
                if self.string == 0 {
                    self.value_ended();
                }
                continue;
            }
            if self.line_length == 0 && !is_type(rest[0]) {
                return Err(BadReply::Foreign(quoted(rest)));
            }
            let end = memchr::memchr(b'\n', rest);
            let taken = end.map_or(rest.len(), |at| at + 1);
            self.add(taken as u64)?;
            self.line_length += taken;
            if self.line_length > MAX_LINE {
                return Err(BadReply::TooLarge);
            }
            // A type, a number and the end of the line. Of longer lines the rest is text.
            let room = 32_usize.saturating_sub(self.line.len());
            self.line.extend_from_slice(&rest[..taken.min(room)]);
            rest = &rest[taken..];
            if end.is_some() {
                self.line_ended()?;
            }
        }
        Ok(())
    }

    fn line_ended(&mut self) -> Result<(), BadReply> {
        let line = std::mem::take(&mut self.line);
        self.line_length = 0;
        let number = line.get(1..).map(<[u8]>::trim_ascii);
        let number = number.and_then(|it| str::from_utf8(it).ok()?.parse::<i64>().ok());
        // Of -1, which stands for nothing, there is no more to come.
        let length = number.and_then(|it| u64::try_from(it).ok()).unwrap_or(0);
        match line.first() {
            Some(b'$' | b'=' | b'!' | b'*' | b'~' | b'>' | b'%' | b'|' | b':')
                if number.is_none() =>
            {
                return Err(BadReply::Malformed);
            }
            Some(b'$' | b'=' | b'!') if number.is_some_and(|it| it >= 0) => {
                self.add(length)?;
                self.string = length + 2;
            }
            Some(b'*' | b'~' | b'>') => self.begin_values(length)?,
            Some(b'%') => self.begin_values(length.saturating_mul(2))?,
            // The value that the attributes belong to follows them.
            Some(b'|') => self.begin_values(length.saturating_mul(2).saturating_add(1))?,
            _ => self.value_ended(),
        }
        Ok(())
    }

    /// A value that consists of `count` others has begun.
    fn begin_values(&mut self, count: u64) -> Result<(), BadReply> {
        self.add(count.saturating_mul(VALUE))?;
        if count == 0 {
            self.value_ended();
        } else if self.open.len() == MAX_DEPTH {
            return Err(BadReply::Malformed);
        } else {
            self.open.push(count);
        }
        Ok(())
    }

    fn value_ended(&mut self) {
        while let Some(left) = self.open.last_mut() {
            *left -= 1;
            if *left > 0 {
                return;
            }
            self.open.pop();
        }
        // It was a whole reply.
        self.size = 0;
    }

    fn add(&mut self, size: u64) -> Result<(), BadReply> {
        self.size = self.size.saturating_add(size);
        if self.size > MAX_REPLY {
            return Err(BadReply::TooLarge);
        }
        Ok(())
    }
}

/// Whether a value of the protocol begins with this byte.
fn is_type(byte: u8) -> bool {
    b"+-:$*_#,(!=%~>|".contains(&byte)
}

/// The first line of an answer, as a message shows it.
fn quoted(answer: &[u8]) -> String {
    let line = answer.split(|byte| matches!(byte, b'\r' | b'\n')).next();
    let line = line.unwrap_or_default();
    let mut text = String::from('"');
    for byte in &line[..line.len().min(QUOTED)] {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            // Writing to a string does not fail.
            _ => drop(write!(text, "\\x{byte:02X}")),
        }
    }
    if line.len() > QUOTED {
        text.push_str("...");
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result for the whole answer, the same for all ways to split it in two.
    fn read(answer: &[u8]) -> Result<ReplyScan, BadReply> {
        let read = |pieces: &[&[u8]]| {
            let mut scan = ReplyScan::default();
            pieces
                .iter()
                .try_for_each(|it| scan.read(it))
                .map(|()| scan)
        };
        let whole = read(&[answer]);
        for at in 0..answer.len().min(200) {
            let (one, two) = answer.split_at(at);
            assert_eq!(read(&[one, two]).is_ok(), whole.is_ok(), "split at {at}");
        }
        whole
    }

    #[test]
    fn replies_end_where_they_end_and_the_next_one_counts_from_zero() {
        for reply in [
            &b"+OK\r\n"[..],
            b"-ERR unknown command\r\n",
            b":12\r\n",
            b"$5\r\nhello\r\n",
            b"$0\r\n\r\n",
            b"$-1\r\n",
            b"*-1\r\n",
            b"*0\r\n",
            b"*2\r\n$1\r\na\r\n*2\r\n:1\r\n_\r\n",
            b"%1\r\n+a\r\n#t\r\n",
            b"|1\r\n+ttl\r\n:3\r\n*1\r\n,1.5\r\n",
            b"=7\r\ntxt:abc\r\n",
        ] {
            let shown = String::from_utf8_lossy(reply);
            let scan = read(reply).unwrap_or_else(|bad| panic!("{shown}: {bad}"));
            assert_eq!((scan.size, scan.open.len()), (0, 0), "{shown}");
            let many = reply.repeat(3);
            assert_eq!(read(&many).map(|it| it.size), Ok(0), "{shown}");
        }
    }

    #[test]
    fn a_reply_is_too_large_as_soon_as_it_announces_it() {
        for head in [
            "$536870912\r\n".to_owned(),
            "*100000000\r\n".to_owned(),
            "%9223372036854775807\r\n".to_owned(),
            "*2\r\n$16000000\r\n".to_owned() + &"x".repeat(16_000_000) + "\r\n$900000\r\n",
        ] {
            let begin = &head[..head.len().min(20)];
            assert_eq!(
                read(head.as_bytes()).err(),
                Some(BadReply::TooLarge),
                "{begin}"
            );
        }
        let long = [b"+".as_slice(), &vec![b'x'; MAX_LINE]].concat();
        assert_eq!(read(&long).err(), Some(BadReply::TooLarge));
    }

    #[test]
    fn what_the_parser_would_not_read_is_refused() {
        for reply in ["$x\r\n", "*\r\n", ":1.5\r\n", "*1\r\n$?\r\n"] {
            assert_eq!(
                read(reply.as_bytes()).err(),
                Some(BadReply::Malformed),
                "{reply}"
            );
        }
        let deep = |depth| "*1\r\n".repeat(depth) + ":1\r\n";
        assert_eq!(
            read(deep(MAX_DEPTH).as_bytes()).map(|it| it.open.len()),
            Ok(0)
        );
        assert_eq!(
            read(deep(MAX_DEPTH + 1).as_bytes()).err(),
            Some(BadReply::Malformed)
        );
    }

    #[test]
    fn what_is_no_redis_is_quoted() {
        for (answer, quoted) in [
            (
                &b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n"[..],
                "\"HTTP/1.1 400 Bad Request\"",
            ),
            (b"SSH-2.0-OpenSSH_9.2p1\r\n", "\"SSH-2.0-OpenSSH_9.2p1\""),
            (b"\x00\xFF\"a", "\"\\x00\\xFF\\\"a\""),
        ] {
            let bad = ReplyScan::default().read(answer).err();
            assert_eq!(bad, Some(BadReply::Foreign(quoted.to_owned())));
        }
        let behind = b"+OK\r\nnothing of Redis";
        assert!(matches!(read(behind), Err(BadReply::Foreign(_))));
    }
}
