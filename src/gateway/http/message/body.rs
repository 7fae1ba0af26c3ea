//! Bodies in transit: decoded from the framing of one message, encoded in that of another.
//!
//! *Framing* marks the end of a body: a length, chunks, or the end of the connection. *Trailers*
//! are fields after a chunked body. `chunks` decodes chunks.

use std::io::Write;

use thiserror::Error;

use super::buffer::{Buffer, CHUNK_HEADROOM};
use super::chunks::{Chunks, InvalidChunk};
use super::framing::BodyLength;
use super::trailers::Trailers;

/// Error: a body does not end as its framing requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// A chunk is invalid, or a trailer is malformed.
    #[error("the body is not valid chunked encoding")]
    Chunks,
    /// The connection ended before the body did.
    #[error("the connection ended in the middle of the body")]
    CutShort,
}

impl From<InvalidChunk> for BodyError {
    fn from(InvalidChunk: InvalidChunk) -> Self {
        Self::Chunks
    }
}

/// Decodes a body from its framing.
pub struct BodyDecoder(State);

/// Framing of the body, and its progress.
#[derive(Debug)]
enum State {
    /// The body has a length. This number of bytes is still to come.
    Length(u64),
    /// The body is chunked. Boxed: few bodies are, but every connection would reserve the space.
    Chunked(Box<Chunks>),
    /// The body ends with the connection.
    UntilClose,
    /// The body is complete. Boxed: few bodies have trailers.
    Over(Option<Box<Trailers>>),
}

impl BodyDecoder {
    /// Creates a decoder for a body of this length.
    pub fn new(length: BodyLength) -> Self {
        Self(match length {
            BodyLength::None | BodyLength::Length(0) => State::Over(None),
            BodyLength::Length(length) => State::Length(length),
            BodyLength::Chunked => State::Chunked(Box::default()),
            BodyLength::UntilClose => State::UntilClose,
        })
    }

    /// Returns whether the whole body has been received.
    pub fn is_over(&self) -> bool {
        matches!(self.0, State::Over(_))
    }

    /// Returns the number of next bytes that certainly belong to the body.
    ///
    /// A read of at most this size does not read into the next message. `usize::MAX` if the number
    /// is not known.
    pub(crate) fn read_limit(&self) -> usize {
        match self.0 {
            State::Length(left) => usize::try_from(left).unwrap_or(usize::MAX),
            _ => usize::MAX,
        }
    }

    /// Decodes `bytes`, and moves the body's data to their start.
    ///
    /// Returns the number of data bytes, and the number of `bytes` that belonged to the body (data
    /// and framing). The remaining bytes belong to the next message.
    ///
    /// # Errors
    ///
    /// Returns an error if a chunk is invalid.
    pub fn decode(&mut self, bytes: &mut [u8]) -> Result<(usize, usize), BodyError> {
        match &mut self.0 {
            State::Length(left) => {
                let available = bytes.len();
                let count = usize::try_from(*left).map_or(available, |left| left.min(available));
                *left -= count as u64;
                if *left == 0 {
                    self.0 = State::Over(None);
                }
                Ok((count, count))
            }
            State::Chunked(chunks) => {
                let decoded = chunks.decode(bytes)?;
                if chunks.is_over() {
                    // The data is valid even if the trailers are malformed.
                    chunks.salvaged = decoded.0;
                    let trailers = chunks.trailers()?;
                    self.0 = State::Over((!trailers.is_empty()).then(|| Box::new(trailers)));
                }
                Ok(decoded)
            }
            State::UntilClose => Ok((bytes.len(), bytes.len())),
            State::Over(_) => Ok((0, 0)),
        }
    }

    /// Returns the number of data bytes before the error in the last [`Self::decode`].
    ///
    /// These bytes are valid and at the start of the decoded bytes, so they may be forwarded.
    pub fn salvaged(&self) -> usize {
        match &self.0 {
            State::Chunked(chunks) => chunks.salvaged,
            _ => 0,
        }
    }

    /// Notes that the connection has ended.
    ///
    /// # Errors
    ///
    /// Returns an error if the body is not complete.
    pub fn end_of_connection(&mut self) -> Result<(), BodyError> {
        match self.0 {
            State::UntilClose => self.0 = State::Over(None),
            State::Over(_) => {}
            State::Length(_) | State::Chunked(_) => return Err(BodyError::CutShort),
        }
        Ok(())
    }

    /// Returns the trailer fields of a complete body.
    pub fn trailers(&self) -> Option<&Trailers> {
        match &self.0 {
            State::Over(trailers) => trailers.as_deref(),
            _ => None,
        }
    }
}

/// Encodes a body in its framing.
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyEncoder {
    is_chunked: bool,
}

impl BodyEncoder {
    /// Creates an encoder for a body of this length.
    pub fn new(length: BodyLength) -> Self {
        Self {
            is_chunked: length == BodyLength::Chunked,
        }
    }

    /// Appends a piece of the body to `out`.
    pub fn put(self, data: &[u8], out: &mut Buffer) {
        if self.is_chunked && !data.is_empty() {
            let mut line = [0; CHUNK_HEADROOM];
            out.put_all([size_line(data.len(), &mut line), data, b"\r\n"]);
        } else {
            out.put(data);
        }
    }

    /// Frames the whole content of `buffer` as one piece of the body, in place.
    pub fn frame(self, buffer: &mut Buffer) {
        if !self.is_chunked || buffer.is_empty() {
            return;
        }
        let mut line = [0; CHUNK_HEADROOM];
        if buffer.put_before(size_line(buffer.len(), &mut line)) {
            buffer.put(b"\r\n");
        } else {
            // No room before the content: it is copied.
            let mut framed = Buffer::take();
            self.put(buffer.filled(), &mut framed);
            *buffer = framed;
        }
    }

    /// Appends the end of the body.
    pub fn finish(self, trailers: Option<&Trailers>, out: &mut Buffer) {
        if !self.is_chunked {
            return;
        }
        out.put(b"0\r\n");
        for (name, value) in trailers.into_iter().flat_map(Trailers::iter) {
            put_field(out, name, value);
        }
        out.put(b"\r\n");
    }
}

/// Writes the size line of a chunk into `line`. Returns its bytes.
fn size_line(size: usize, line: &mut [u8; CHUNK_HEADROOM]) -> &[u8] {
    let mut rest = &mut line[..];
    // The size of a buffer fits in eight digits.
    let _written = write!(rest, "{size:x}\r\n");
    let length = CHUNK_HEADROOM - rest.len();
    &line[..length]
}

/// Appends the line of a field whose value is a number.
pub(crate) fn put_number_field(out: &mut Buffer, name: &[u8], number: u64) {
    put_field(out, name, itoa::Buffer::new().format(number).as_bytes());
}

/// Appends the line of a field.
#[inline]
pub fn put_field(out: &mut Buffer, name: &[u8], value: &[u8]) {
    out.put_all([name, b": ", value, b"\r\n"]);
}

#[cfg(test)]
mod properties;
