//! Buffer for the part of a response's body that has arrived and that its client has not read yet.
//!
//! A *window* is the number of bytes that the server may send before it gets a new window.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::STREAM_WINDOW;
use crate::http::message::Buffer;
use crate::http::message::buffer::READ_SIZE;

/// Smallest capacity of a buffer, in bytes.
const SMALLEST: usize = 1024;

/// Number of buffered bytes of all bodies of a connection.
pub(super) type UnreadBytes = Rc<Cell<usize>>;

/// Buffered bytes of one body.
///
/// The server gets no new window for them, so there are at most [`STREAM_WINDOW`] bytes. Frames as
/// h2 keeps them would take far more memory than their bytes.
pub(super) struct ReadAhead {
    bytes: VecDeque<u8>,
    /// Number of buffered bytes of all bodies of the connection, including this one.
    unread: UnreadBytes,
}

impl ReadAhead {
    pub(super) fn new(unread: UnreadBytes) -> Self {
        Self {
            bytes: VecDeque::new(),
            unread,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds bytes at the end. The capacity doubles, up to [`STREAM_WINDOW`].
    pub(super) fn put(&mut self, bytes: &[u8]) {
        let needed = self.bytes.len() + bytes.len();
        if needed > self.bytes.capacity() {
            let grown = (2 * self.bytes.capacity()).clamp(SMALLEST, STREAM_WINDOW as usize);
            self.bytes
                .reserve_exact(grown.max(needed) - self.bytes.len());
        }
        self.bytes.extend(bytes);
        self.unread.update(|unread| unread + bytes.len());
    }

    /// Moves the first bytes into an empty piece, and returns their number.
    pub(super) fn take(&mut self, piece: &mut Buffer) -> usize {
        let (first, _) = self.bytes.as_slices();
        let count = first.len().min(READ_SIZE);
        piece.put(&first[..count]);
        if count == self.bytes.len() {
            // Frees the memory.
            self.bytes = VecDeque::new();
        } else {
            self.bytes.drain(..count);
        }
        self.unread.update(|unread| unread - count);
        count
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.unread.update(|unread| unread - self.bytes.len());
    }
}

#[cfg(test)]
mod properties;
