//! Connections to one server over HTTP/2, which the requests of a worker share.

mod exchange;

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use tokio::sync::Notify;

pub use self::exchange::Http2Exchange;
use super::stream::OriginStream;
use crate::http::http2::{CONNECTION_WINDOW, MAX_UNSENT, STREAM_WINDOW};

/// The open connections to one server. Each is filled before the next is used.
#[derive(Debug, Default)]
pub(super) struct Http2Connections {
    open: RefCell<Vec<Rc<SharedConnection>>>,
    /// Whether the server chose HTTP/1 on its last connection.
    is_unused: Cell<bool>,
    is_opening: Cell<bool>,
    opened: Notify,
}

/// One connection, and how many requests it carries.
#[derive(Debug)]
struct SharedConnection {
    send: SendRequest<Bytes>,
    in_use: Cell<usize>,
    has_carried: Cell<bool>,
    /// Whether it takes no more requests.
    is_leaving: Cell<bool>,
}

impl SharedConnection {
    /// Returns whether the server takes another request on this connection.
    fn has_room(&self) -> bool {
        self.in_use.get() < self.send.current_max_send_streams()
    }

    /// Returns whether the connection still takes requests, now or later.
    fn is_open(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let ready = self.send.clone().poll_ready(&mut cx);
        !self.is_leaving.get() && !matches!(ready, Poll::Ready(Err(_)))
    }
}

/// The place of one request on a connection, until this is dropped.
#[derive(Debug)]
struct StreamPlace {
    connection: Rc<SharedConnection>,
    is_reused: bool,
}

impl StreamPlace {
    fn on(connection: &Rc<SharedConnection>) -> Self {
        connection.in_use.set(connection.in_use.get() + 1);
        Self {
            connection: Rc::clone(connection),
            is_reused: connection.has_carried.replace(true),
        }
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let in_use = &self.connection.in_use;
        in_use.set(in_use.get().saturating_sub(1));
    }
}

/// The right to open a connection, while others wait for it.
pub(super) struct Opening<'a>(&'a Http2Connections);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.is_opening.set(false);
        self.0.opened.notify_waiters();
    }
}

impl Http2Connections {
    /// Takes a place on an open connection, if one has room.
    pub(super) fn take(&self) -> Option<Http2Exchange> {
        let mut open = self.open.borrow_mut();
        if open.is_empty() {
            return None;
        }
        open.retain(|connection| connection.is_open());
        let found = open.iter().find(|connection| connection.has_room())?;
        Some(Http2Exchange::new(StreamPlace::on(found)))
    }

    /// Waits until nobody else opens a connection, unless the server chose HTTP/1 before.
    ///
    /// Returns `None` after a wait: there may be a connection now.
    pub(super) async fn opening(&self) -> Option<Opening<'_>> {
        let opened = self.opened.notified();
        if !self.is_unused.get() && self.is_opening.get() {
            opened.await;
            return None;
        }
        self.is_opening.set(true);
        Some(Opening(self))
    }

    /// Notes that the server chose HTTP/1.
    pub(super) fn note_http1(&self) {
        self.is_unused.set(true);
    }

    /// Begins HTTP/2 on a new connection, and takes the first place on it.
    ///
    /// `max_header_size`: most bytes of a response's head, as HTTP/2 counts them.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails.
    pub(super) async fn begin(
        &self,
        stream: OriginStream,
        max_header_size: usize,
    ) -> io::Result<Http2Exchange> {
        let handshake = Builder::new()
            .enable_push(false)
            .max_header_list_size(u32::try_from(max_header_size).unwrap_or(u32::MAX))
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buffer_size(MAX_UNSENT)
            .handshake(stream)
            .await;
        let (send, connection) = handshake.map_err(into_io)?;
        let shared = Rc::new(SharedConnection {
            send,
            in_use: Cell::new(0),
            has_carried: Cell::new(false),
            is_leaving: Cell::new(false),
        });
        // It ends by itself when the server closes it, or when no request can use it any more.
        actix_rt::spawn(drive(connection, Rc::downgrade(&shared)));
        self.is_unused.set(false);
        let first = Http2Exchange::new(StreamPlace::on(&shared));
        self.open.borrow_mut().push(shared);
        Ok(first)
    }
}

/// Moves the frames of a connection until it ends.
async fn drive<F: Future>(connection: F, shared: Weak<SharedConnection>) {
    connection.await;
    if let Some(shared) = shared.upgrade() {
        shared.is_leaving.set(true);
    }
}

fn into_io(error: h2::Error) -> io::Error {
    if error.is_io() {
        let io = error.into_io();
        return io.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
    }
    io::Error::other(error)
}
