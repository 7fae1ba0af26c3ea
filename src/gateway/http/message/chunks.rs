//! Strict decoder of chunked bodies, byte by byte (RFC 9112, section 7.1).
//!
//! A chunk is a line with its size and perhaps an *extension*, and then its data. Lines of
//! *trailers* may follow the last chunk, which is empty. `body` uses the decoder.

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
    position: Position,
    /// Number of bytes of extensions and trailers so far.
    overhead: usize,
    /// Lines after the last chunk, as received.
    trailers: Vec<u8>,
    /// Number of data bytes before the error in the last call of [`Self::decode`].
    pub(super) salvaged: usize,
}

/// Error: an invalid byte in a chunked body, or malformed trailers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidChunk;

/// Position of the decoder in the syntax of a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// In the digits of a chunk's size.
    Size { size: u64, digits: u8 },
    /// In the blanks after a size. An extension or the end of the line follows.
    Blank(u64),
    /// In the extension of a chunk of this size.
    Extension(u64),
    /// After the carriage return of the line with a chunk's size.
    SizeEnd(u64),
    /// In the data of a chunk of which this number of bytes is missing.
    Data(u64),
    /// After the data of a chunk: a carriage return is expected.
    DataReturn,
    /// After the carriage return behind the data: a line feed is expected.
    DataEnd,
    /// In a line after the last chunk. `is_empty`: the line has no bytes yet.
    Trailer { is_empty: bool },
    /// After the carriage return of a trailer line.
    TrailerEnd { is_empty: bool },
    /// After the empty line that ends the body.
    Over,
}

impl Default for Position {
    fn default() -> Self {
        Self::Size { size: 0, digits: 0 }
    }
}

impl Chunks {
    /// Returns whether the body is complete.
    pub(super) fn is_over(&self) -> bool {
        self.position == Position::Over
    }

    /// Decodes the next `bytes`, and moves the data in them to their start.
    ///
    /// Returns the number of data bytes, and the number of `bytes` that belonged to the body.
    pub(super) fn decode(&mut self, bytes: &mut [u8]) -> Result<(usize, usize), InvalidChunk> {
        // `read`: number of bytes decoded. `data`: number of data bytes, which are at the start.
        let (mut read, mut data) = (0, 0);
        while read < bytes.len() && !self.is_over() {
            if let Position::Data(left) = self.position {
                let available = bytes.len() - read;
                let count = usize::try_from(left).map_or(available, |left| left.min(available));
                if read != data {
                    bytes.copy_within(read..read + count, data);
                }
                (read, data) = (read + count, data + count);
                self.position = match left - count as u64 {
                    0 => Position::DataReturn,
                    left => Position::Data(left),
                };
            } else {
                let byte = bytes[read];
                if matches!(
                    self.position,
                    Position::Trailer { .. } | Position::TrailerEnd { .. }
                ) {
                    self.trailers.push(byte);
                }
                let Some(next) = self.step(byte) else {
                    self.salvaged = data;
                    return Err(InvalidChunk);
                };
                self.position = next;
                read += 1;
            }
        }
        Ok((data, read))
    }

    /// Returns the trailers of a complete body.
    pub(super) fn trailers(&self) -> Result<Trailers, InvalidChunk> {
        // Most bodies have no trailers: then this is only the empty line.
        match self.trailers.as_slice() {
            [] | b"\r\n" => Ok(Trailers::default()),
            section => Trailers::parse(section).ok_or(InvalidChunk),
        }
    }

    /// Returns the position after the next byte; `None` if the byte is invalid.
    fn step(&mut self, byte: u8) -> Option<Position> {
        use Position::{
            Blank, Data, DataEnd, DataReturn, Extension, Over, Size, SizeEnd, Trailer, TrailerEnd,
        };

        if matches!(self.position, Blank(_) | Extension(_) | Trailer { .. }) {
            self.overhead += 1;
            if self.overhead > MAX_OVERHEAD {
                return None;
            }
        }
        match (self.position, byte) {
            (Size { size, digits }, _) if byte.is_ascii_hexdigit() && digits < MAX_DIGITS => {
                let digit = char::from(byte).to_digit(16)?;
                Some(Size {
                    size: size * 16 + u64::from(digit),
                    digits: digits + 1,
                })
            }
            (Size { digits: 0, .. }, _) => None,
            (Size { size, .. } | Blank(size) | Extension(size), b'\r') => Some(SizeEnd(size)),
            (Size { size, .. } | Blank(size), b' ' | b'\t') => Some(Blank(size)),
            (Size { size, .. } | Blank(size), b';')
            | (Extension(size), b'\t' | b' '..=0x7e | 0x80..) => Some(Extension(size)),
            (SizeEnd(left @ 1..), b'\n') => Some(Data(left)),
            (DataReturn, b'\r') => Some(DataEnd),
            (DataEnd, b'\n') => Some(Position::default()),
            (Trailer { is_empty }, b'\r') => Some(TrailerEnd { is_empty }),
            (Trailer { .. }, _) if byte != b'\n' => Some(Trailer { is_empty: false }),
            (TrailerEnd { is_empty: true }, b'\n') => Some(Over),
            (SizeEnd(0) | TrailerEnd { is_empty: false }, b'\n') => {
                Some(Trailer { is_empty: true })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod properties;
