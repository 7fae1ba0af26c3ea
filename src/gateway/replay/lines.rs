//! Reads the lines of a file in bounded memory. Decompresses gzip.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;

/// Maximum length of a line in bytes. It bounds the memory for any input.
const MAX_LINE: usize = 1 << 20;
/// Size of one read in bytes. Nearly every line fits into it.
const READ_SIZE: usize = 1 << 17;
/// First bytes of a gzip file (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The lines of a file, in bounded memory. Decompresses gzip.
pub(super) struct Lines {
    input: BufReader<Box<dyn Read>>,
    /// The current line, without its end.
    line: Vec<u8>,
    /// Number of the current line, from 1.
    number: u64,
    /// Whether the input has ended or failed.
    has_ended: bool,
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
        let is_gzip = magic == GZIP;
        let input = Cursor::new(magic).chain(input);
        let input: Box<dyn Read> = if is_gzip {
            // Logs that were compressed piece by piece have several members.
            Box::new(MultiGzDecoder::new(input))
        } else {
            Box::new(input)
        };
        Ok(Self {
            input: BufReader::with_capacity(READ_SIZE, input),
            line: Vec::new(),
            number: 0,
            has_ended: false,
        })
    }

    /// Reads the next line. Returns its number; `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read or is not valid gzip. After an error, there are
    /// no further lines.
    pub(super) fn take(&mut self) -> io::Result<Option<u64>> {
        if self.has_ended {
            return Ok(None);
        }
        let read = self.read();
        // Nothing was read, or reading failed.
        self.has_ended = !matches!(read, Ok(1..));
        if read? == 0 {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some(self.number))
    }

    /// Returns the current line; `None` if it is too long.
    pub(super) fn line(&self) -> Option<&[u8]> {
        (self.line.len() <= MAX_LINE).then_some(&self.line)
    }

    /// Returns the number of the last line that was read.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Reads a line with its end, or the rest of the input. Returns its length; 0 at the end.
    ///
    /// Of a line that is too long, only the first bytes are stored and counted.
    fn read(&mut self) -> io::Result<usize> {
        self.line.clear();
        let mut input = self.input.by_ref().take(MAX_LINE as u64 + 1);
        let read = input.read_until(b'\n', &mut self.line)?;
        if self.line.ends_with(b"\n") {
            self.line.pop();
        } else if self.line.len() > MAX_LINE {
            self.input.skip_until(b'\n')?;
        }
        Ok(read)
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
        while let Some(number) = lines.take().unwrap() {
            all.push(lines.line().map(<[u8]>::to_vec));
            assert_eq!(number, all.len() as u64);
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
    fn gzip_is_decompressed_member_by_member() {
        let some = |text: &str| Some(text.as_bytes().to_vec());
        let members = [packed(b"one\ntw"), packed(b"o\n"), packed(b"three")].concat();
        assert_eq!(lines(members), [some("one"), some("two"), some("three")]);
    }

    #[test]
    fn a_line_without_an_end_costs_no_memory() {
        let mut input = b"first\n".to_vec();
        input.extend(vec![b'x'; 5 * MAX_LINE]);
        input.extend(b"\nlast\n");
        let read = lines(input.clone());
        assert_eq!(read.len(), 3);
        assert_eq!(read[1], None);
        assert_eq!(read[2].as_deref(), Some(b"last".as_slice()));
        let mut lines = Lines::new(Box::new(Cursor::new(packed(&input)))).unwrap();
        while lines.take().unwrap().is_some() {}
        assert!(lines.line.capacity() <= 2 * MAX_LINE);
    }

    #[test]
    fn truncated_gzip_is_an_error_after_its_readable_lines() {
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
