//! Flow control of request bodies: a small window until a body is read, a large one from then on.
//!
//! A body that waits for its turn must not use what the others of its connection need. So the
//! window of the connection never stops anybody, and what a waiting body may send is bounded by a
//! small window of its own, as in nginx (`http2_body_preread_size`).
//!
//! h2 knows one size of window for all streams. It gets the large one. The client is told the small
//! one, and gets the rest for a stream whose body is read: it has less than h2 would accept, and
//! from then on the same.

use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};

/// Bytes of a body that a client may send before any of it is read.
///
/// The window that each stream has before its client has seen any settings (RFC 9113, section
/// 6.9.2), so that no client has sent more than it may when it sees them.
pub(super) const WAITING_WINDOW: u32 = 65_535;
/// Bytes of a body that a client may send ahead once it is read.
pub(super) const STREAM_WINDOW: u32 = 256 * 1024;
/// The same for all bodies of a connection together: the most that the protocol has.
pub(super) const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// Bytes that are read before the tasks of the streams run and take their frames out of h2.
///
/// h2 keeps some 300 bytes for a frame, which may have 10 bytes on the wire.
const READ_AT_ONCE: usize = 16 * 1024;

const WINDOW_UPDATE: u8 = 8;
const SETTINGS_INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];

/// What the tasks of a connection tell its socket: which streams get the large window, and when it
/// may read.
#[derive(Debug, Default)]
pub(super) struct Windows {
    opened: RefCell<Vec<u32>>,
    /// The connection's task, which reads and writes.
    task: RefCell<Option<Waker>>,
    /// Bytes that were read since that task was last woken.
    read: Cell<usize>,
}

impl Windows {
    /// Registers the connection's task, which was just woken.
    ///
    /// It writes what [`Self::open`] adds. Before it, the tasks of the streams have run.
    pub(super) fn register(&self, cx: &Context<'_>) {
        self.read.set(0);
        let mut task = self.task.borrow_mut();
        match &mut *task {
            Some(known) => known.clone_from(cx.waker()),
            None => *task = Some(cx.waker().clone()),
        }
    }

    /// Returns whether more may be read before the tasks of the streams run.
    pub(super) fn may_read(&self) -> bool {
        self.read.get() < READ_AT_ONCE
    }

    pub(super) fn note_read(&self, count: usize) {
        self.read.set(self.read.get() + count);
    }

    /// Gives a stream the rest of the large window. To be called once.
    pub(super) fn open(&self, stream: u32) {
        self.opened.borrow_mut().push(stream);
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    /// Forgets a stream that ends.
    pub(super) fn forget(&self, stream: u32) {
        self.opened.borrow_mut().retain(|opened| *opened != stream);
    }

    /// Returns the frames that tell the client of windows opened since the last call.
    pub(super) fn take_frames(&self) -> Vec<u8> {
        let mut opened = self.opened.borrow_mut();
        opened.drain(..).flat_map(rest_of_window).collect()
    }
}

/// A `WINDOW_UPDATE` with what the large window has more (RFC 9113, section 6.9).
fn rest_of_window(stream: u32) -> [u8; 13] {
    let mut frame = [0, 0, 4, WINDOW_UPDATE, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    frame[5..9].copy_from_slice(&stream.to_be_bytes());
    frame[9..].copy_from_slice(&(STREAM_WINDOW - WAITING_WINDOW).to_be_bytes());
    frame
}

/// Puts the small window into the payload of a `SETTINGS` frame (RFC 9113, section 6.5.1).
pub(super) fn announce_waiting_window(payload: &mut [u8]) {
    for setting in payload.chunks_exact_mut(6) {
        if setting[..2] == SETTINGS_INITIAL_WINDOW_SIZE {
            setting[2..].copy_from_slice(&WAITING_WINDOW.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod properties;
