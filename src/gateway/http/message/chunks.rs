//! Strict decoder of chunked bodies, byte by byte (RFC 9112, section 7.1).
//!
//! `body` uses it for chunked bodies.

use super::trailers::Trailers;

/// Maximum number of bytes of all chunk extensions and trailers of one body.
const MAX_OVERHEAD: usize = 16 * 1024;

/// Maximum number of hexadecimal digits of a chunk's size.
///
/// More than any size needs, and few enough to avoid an overflow.
const MAX_DIGITS: u8 = 15;

/// Decoder state of a chunked body.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chunks {
    at: At,
    /// Number of bytes of extensions and trailers so far.
    overhead: usize,
    /// Lines after the last chunk, as received.
    trailers: Vec<u8>,
    /// Number of data bytes before the invalid byte.
    salvaged: usize,
}

/// Error: an invalid byte in a chunked body, or malformed trailers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidChunk;

/// Position of the decoder in the syntax of a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In the digits of a chunk's size.
    Size {
        size: u64,
        digits: u8,
    },
    /// In the blanks after this size. An extension or the end of the line follows.
    Blank(u64),
    /// In the extension of a chunk of this size.
    Extension(u64),
    /// After the carriage return of the line with this size.
    SizeEnd(u64),
    /// In the data of a chunk, with the number of its missing bytes.
    Data(u64),
    /// After the data: a carriage return is expected.
    DataReturn,
    /// After that: a line feed is expected.
    DataEnd,
    /// In a line after the last chunk. `empty`: the line has no bytes yet.
    Trailer {
        empty: bool,
    },
    /// After the carriage return of a trailer line.
    TrailerEnd {
        empty: bool,
    },
    Over,
}

impl Default for At {
    fn default() -> Self {
        Self::Size { size: 0, digits: 0 }
    }
}

impl Chunks {
    /// Returns whether the body is complete.
    pub(super) fn is_over(&self) -> bool {
        self.at == At::Over
    }

    /// Decodes the next `bytes`, and moves the data in them to their start.
    ///
    /// Returns the number of data bytes, and the number of `bytes` that belonged to the body.
    pub(super) fn decode(&mut self, bytes: &mut [u8]) -> Result<(usize, usize), InvalidChunk> {
        let (mut read, mut data) = (0, 0);
        while read < bytes.len() && !self.is_over() {
            if let At::Data(left) = self.at {
                let available = bytes.len() - read;
                let count = usize::try_from(left).map_or(available, |left| left.min(available));
                if read != data {
                    bytes.copy_within(read..read + count, data);
                }
                (read, data) = (read + count, data + count);
                self.at = match left - count as u64 {
                    0 => At::DataReturn,
                    left => At::Data(left),
                };
            } else {
                let byte = bytes[read];
                if matches!(self.at, At::Trailer { .. } | At::TrailerEnd { .. }) {
                    self.trailers.push(byte);
                }
                let Some(next) = self.step(byte) else {
                    self.salvaged = data;
                    return Err(InvalidChunk);
                };
                self.at = next;
                read += 1;
            }
        }
        Ok((data, read))
    }

    /// Returns the number of data bytes that the last call decoded before the invalid byte.
    pub(super) fn salvaged(&self) -> usize {
        self.salvaged
    }

    /// Sets the number of data bytes before an error in the trailers.
    pub(super) fn set_salvaged(&mut self, data: usize) {
        self.salvaged = data;
    }

    /// Returns the trailers of a complete body.
    pub(super) fn trailers(&self) -> Result<Trailers, InvalidChunk> {
        // Most bodies have no trailers: then this is only the empty line.
        match self.trailers.as_slice() {
            [] | b"\r\n" => Ok(Trailers::default()),
            section => Trailers::parse(section).ok_or(InvalidChunk),
        }
    }

    /// Returns the state after the next byte; `None` if the byte is invalid.
    fn step(&mut self, byte: u8) -> Option<At> {
        if matches!(
            self.at,
            At::Blank(_) | At::Extension(_) | At::Trailer { .. }
        ) {
            self.overhead += 1;
            if self.overhead > MAX_OVERHEAD {
                return None;
            }
        }
        match (self.at, byte) {
            (At::Size { size, digits }, _) if byte.is_ascii_hexdigit() && digits < MAX_DIGITS => {
                let digit = char::from(byte).to_digit(16)?;
                Some(At::Size {
                    size: size * 16 + u64::from(digit),
                    digits: digits + 1,
                })
            }
            (At::Size { digits: 0, .. }, _) => None,
            (At::Size { size, .. } | At::Blank(size) | At::Extension(size), b'\r') => {
                Some(At::SizeEnd(size))
            }
            (At::Size { size, .. } | At::Blank(size), b' ' | b'\t') => Some(At::Blank(size)),
            (At::Size { size, .. } | At::Blank(size), b';')
            | (At::Extension(size), b'\t' | b' '..=0x7e | 0x80..) => Some(At::Extension(size)),
            (At::SizeEnd(left @ 1..), b'\n') => Some(At::Data(left)),
            (At::DataReturn, b'\r') => Some(At::DataEnd),
            (At::DataEnd, b'\n') => Some(At::default()),
            (At::Trailer { empty }, b'\r') => Some(At::TrailerEnd { empty }),
            (At::Trailer { .. }, _) if byte != b'\n' => Some(At::Trailer { empty: false }),
            (At::TrailerEnd { empty: true }, b'\n') => Some(At::Over),
            (At::SizeEnd(0) | At::TrailerEnd { empty: false }, b'\n') => {
                Some(At::Trailer { empty: true })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod properties;
