use std::io::{self, Cursor, Read};
use std::ops::Range;

use flate2::read::MultiGzDecoder;

/// Maximum length of a line in bytes. It bounds the memory for any input.
const MAX_SIZE: usize = 1 << 20;
/// Size of one read in bytes. Nearly every line fits into it.
const AT_ONCE: usize = 1 << 17;
/// The first bytes of a gzip file (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The lines of a file, in bounded memory. Decompresses gzip.
pub(super) struct Lines {
    input: Box<dyn Read>,
    buffer: Vec<u8>,
    /// The part of the buffer that has been read and not been taken yet.
    unread: Range<usize>,
    number: u64,
    ended: bool,
}

/// The place of a line in the buffer; `None` if the line was too long.
pub(super) struct Place {
    pub(super) number: u64,
    pub(super) bytes: Option<Range<usize>>,
}

impl Lines {
    /// Reads from `input`, and detects gzip.
    ///
    /// # Errors
    ///
    /// Returns an error if the first bytes cannot be read.
    pub(super) fn new(mut input: Box<dyn Read>) -> io::Result<Self> {
        let mut magic = Vec::with_capacity(2);
        input.by_ref().take(2).read_to_end(&mut magic)?;
        let is_packed = magic == GZIP;
        let input = Cursor::new(magic).chain(input);
        Ok(Self {
            input: if is_packed {
                // Logs that were compressed piece by piece have several members.
                Box::new(MultiGzDecoder::new(input))
            } else {
                Box::new(input)
            },
            buffer: vec![0; AT_ONCE],
            unread: 0..0,
            number: 0,
            ended: false,
        })
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read or is not valid gzip. Nothing comes after an
    /// error.
    pub(super) fn take(&mut self) -> io::Result<Option<Place>> {
        let mut is_too_long = false;
        let mut searched = 0;
        loop {
            let unread = &self.buffer[self.unread.clone()];
            if let Some(end) = memchr::memchr(b'\n', &unread[searched..]) {
                let begin = self.unread.start;
                let end = begin + searched + end;
                self.unread.start = end + 1;
                return Ok(Some(self.place(begin..end, is_too_long)));
            }
            searched = unread.len();
            if self.ended {
                let rest = self.unread.clone();
                self.unread.start = self.unread.end;
                let is_line = is_too_long || !rest.is_empty();
                return Ok(is_line.then(|| self.place(rest, is_too_long)));
            }
            if searched >= MAX_SIZE {
                is_too_long = true;
                searched = 0;
                self.unread = 0..0;
            }
            self.more()?;
        }
    }

    fn place(&mut self, bytes: Range<usize>, is_too_long: bool) -> Place {
        self.number += 1;
        Place {
            number: self.number,
            bytes: (!is_too_long).then_some(bytes),
        }
    }

    /// The number of the last line that was taken.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn bytes(&self, place: Range<usize>) -> &[u8] {
        &self.buffer[place]
    }

    fn more(&mut self) -> io::Result<()> {
        if self.unread.start > 0 {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        if self.unread.end == self.buffer.len() {
            let room = (self.buffer.len() * 2).min(MAX_SIZE + AT_ONCE);
            self.buffer.resize(room, 0);
        }
        let free = &mut self.buffer[self.unread.end..];
        match self.input.read(free) {
            Ok(0) => self.ended = true,
            Ok(count) => self.unread.end += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                self.ended = true;
                self.unread = 0..0;
                return Err(error);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn lines(input: Vec<u8>) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(Box::new(Cursor::new(input))).unwrap();
        let mut all = Vec::new();
        while let Some(place) = lines.take().unwrap() {
            all.push(place.bytes.map(|bytes| lines.bytes(bytes).to_vec()));
            assert_eq!(place.number, all.len() as u64);
        }
        all
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(text).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn lines_end_at_newlines_and_at_the_end() {
        let some = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(lines(b"".to_vec()), []);
        assert_eq!(lines(b"\x1f".to_vec()), [some("\x1f")]);
        assert_eq!(lines(b"\n\na".to_vec()), [some(""), some(""), some("a")]);
        let many = "a line\n".repeat(100_000);
        assert_eq!(lines(many.into_bytes()), vec![some("a line"); 100_000]);
    }

    #[test]
    fn what_is_packed_is_unpacked_member_by_member() {
        let some = |text: &str| Some(text.as_bytes().to_vec());
        let members = [packed(b"one\ntw"), packed(b"o\n"), packed(b"three")].concat();
        assert_eq!(lines(members), [some("one"), some("two"), some("three")]);
    }

    #[test]
    fn a_line_without_an_end_costs_no_memory() {
        let mut input = b"first\n".to_vec();
        input.extend(vec![b'x'; 5 * MAX_SIZE]);
        input.extend(b"\nlast\n");
        let read = lines(input.clone());
        assert_eq!(read.len(), 3);
        assert_eq!(read[1], None);
        assert_eq!(read[2].as_deref(), Some(b"last".as_slice()));
        let mut lines = Lines::new(Box::new(Cursor::new(packed(&input)))).unwrap();
        while lines.take().unwrap().is_some() {}
        assert!(lines.buffer.len() <= MAX_SIZE + AT_ONCE);
    }

    #[test]
    fn what_was_cut_off_is_an_error_after_what_came_before() {
        let mut cut = packed("a line\n".repeat(200_000).as_bytes());
        cut.truncate(cut.len() / 2);
        let mut lines = Lines::new(Box::new(Cursor::new(cut))).unwrap();
        let mut count = 0;
        let error = loop {
            match lines.take() {
                Ok(Some(_)) => count += 1,
                Ok(None) => panic!("no error"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(count > 1000);
        assert!(lines.take().unwrap().is_none());
    }
}
