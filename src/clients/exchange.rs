use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

/// What the two sides of a connection know of the request under way: the gate, which lets its bytes in, and the service,
/// which answers it. Both are on one thread; the locks are there because upgraded connections may move between threads.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// A request has come, now or before.
    any_yet: AtomicBool,
    /// A request has come whole, or its head has, and its answer is not over.
    under_way: AtomicBool,
    /// The connection carries HTTP no longer.
    tunnel: AtomicBool,
    /// The answer broke off, and has not come to its end at the client yet.
    breaking: AtomicBool,
    /// Only the end of the connection tells the client where the answer ends.
    endless: AtomicBool,
    /// The status with which a request was refused before anybody read it; zero: none was.
    refused: AtomicU16,
    /// The socket, where bytes of the request under way may still be unread.
    socket: Mutex<Option<OwnedFd>>,
}

impl Exchange {
    /// A head was let in. `socket` is told where there is a body to come.
    pub(super) fn begin(&self, socket: Option<OwnedFd>) {
        self.any_yet.store(true, Ordering::Relaxed);
        self.under_way.store(true, Ordering::Relaxed);
        if socket.is_some() {
            *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = socket;
        }
    }

    /// The answer is over.
    pub(super) fn end(&self) {
        self.under_way.store(false, Ordering::Relaxed);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.any_yet.load(Ordering::Relaxed)
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::Relaxed)
    }

    /// The socket of a request whose body is not all here yet; asked for once.
    pub(super) fn take_socket(&self) -> Option<OwnedFd> {
        self.socket
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    pub(super) fn refuse(&self, status: u16) {
        self.refused.store(status, Ordering::Relaxed);
    }

    pub(super) fn refused(&self) -> Option<u16> {
        Some(self.refused.load(Ordering::Relaxed)).filter(|status| *status > 0)
    }

    /// The answer broke off: the client is to have what there is of it, and to see that it is not the whole.
    pub(super) fn break_off(&self, endless: bool) {
        self.endless.store(endless, Ordering::Relaxed);
        self.breaking.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_breaking(&self) -> bool {
        self.breaking.load(Ordering::Relaxed)
    }

    /// Whether nothing but a reset keeps a client from taking the part for the whole.
    pub(super) fn is_endless(&self) -> bool {
        self.endless.load(Ordering::Relaxed)
    }

    /// The client has what there is of the broken answer.
    pub(super) fn broke_off(&self) {
        self.breaking.store(false, Ordering::Relaxed);
    }

    /// From here on bytes go both ways as they come.
    pub(super) fn open_tunnel(&self) {
        self.tunnel.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_tunnel(&self) -> bool {
        self.tunnel.load(Ordering::Relaxed)
    }
}
