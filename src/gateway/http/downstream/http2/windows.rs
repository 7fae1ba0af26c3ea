//! Flow control of request bodies: a small window until a body is read, then a large one.
//!
//! A *window* is the number of body bytes that the client may send ahead.
//!
//! A body whose request still waits must not block the other requests of its connection. So the
//! window of the connection is unlimited, and each waiting body has a small window of its own, as
//! in nginx (`http2_body_preread_size`).
//!
//! h2 supports only one window size for all streams. It is configured with the large size. The
//! gateway announces the small size to the client, and grants the rest when the body is read. Until
//! then the client uses less than h2 would accept.

use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};

/// Number of body bytes that a client may send before any of them is read.
///
/// This is the default window of a stream (RFC 9113, section 6.9.2). So a client that has not
/// received the settings yet cannot have sent more.
pub(super) const WAITING_WINDOW: u32 = 65_535;
/// Number of body bytes that a client may send ahead once the body is read.
pub(super) const STREAM_WINDOW: u32 = 256 * 1024;
/// Window of the whole connection: the maximum of the protocol.
pub(super) const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// Maximum number of bytes read before the streams' tasks take their frames out of h2.
///
/// h2 needs about 300 bytes of memory per frame, and a frame may have only 10 bytes on the wire.
const READ_AT_ONCE: usize = 16 * 1024;

/// Frame type of a window update (RFC 9113, section 6.9).
const WINDOW_UPDATE: u8 = 8;
/// Identifier of the setting with the initial window of a stream (RFC 9113, section 6.5.2).
const SETTINGS_INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];

/// State that the streams of a connection share with its socket.
#[derive(Debug, Default)]
pub(super) struct Windows {
    /// Ids of the streams that get the large window with the next frames.
    opened: RefCell<Vec<u32>>,
    /// The connection's task, which reads and writes.
    task: RefCell<Option<Waker>>,
    /// Number of bytes read since `task` was last woken.
    read: Cell<usize>,
}

impl Windows {
    /// Registers the connection's task, which runs now, and lets it read again.
    ///
    /// The connection's task writes the frames of [`Self::open_stream`]. Since its last read, the
    /// tasks of the streams have run.
    pub(super) fn register(&self, cx: &Context<'_>) {
        self.read.set(0);
        match &mut *self.task.borrow_mut() {
            Some(known) => known.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// Returns whether the socket may read more before the streams' tasks run.
    pub(super) fn may_read(&self) -> bool {
        self.read.get() < READ_AT_ONCE
    }

    /// Counts bytes that were read from the socket.
    pub(super) fn note_read(&self, count: usize) {
        self.read.set(self.read.get() + count);
    }

    /// Gives a stream the rest of the large window. Call it once per stream.
    pub(super) fn open_stream(&self, stream: u32) {
        self.opened.borrow_mut().push(stream);
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    /// Forgets a stream that ends: it needs no large window any more.
    pub(super) fn forget(&self, stream: u32) {
        self.opened.borrow_mut().retain(|opened| *opened != stream);
    }

    /// Returns the `WINDOW_UPDATE` frames of the streams opened since the last call.
    pub(super) fn take_frames(&self) -> Vec<u8> {
        let mut opened = self.opened.borrow_mut();
        opened.drain(..).flat_map(window_update).collect()
    }
}

/// Builds the `WINDOW_UPDATE` from the small window to the large one (RFC 9113, section 6.9).
fn window_update(stream: u32) -> [u8; 13] {
    // Length of the payload (3 bytes), type, flags, stream (4 bytes), and the increment (4 bytes).
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
