//! Idle HTTP/1 connections to one server: they wait for their next request.

use std::cell::RefCell;

use limit::Moment;

use super::addresses::KnownAddresses;
use super::http1::Http1Connection;
use super::shortage;

/// Idle connections to one server. The one used last is on top.
///
/// They are boxed, so that little memory moves when a request takes one and gives it back.
#[derive(Default)]
pub(super) struct IdleConnections {
    #[expect(clippy::vec_box, reason = "requests keep them boxed")]
    idle: RefCell<Vec<Box<Http1Connection>>>,
    /// Addresses of the server's name.
    pub(super) addresses: KnownAddresses,
}

impl IdleConnections {
    /// Takes the connection used last that is still [usable](Http1Connection::is_usable).
    pub(super) fn take(&self, now: Moment, surely: bool) -> Option<Box<Http1Connection>> {
        let mut idle = self.idle.borrow_mut();
        loop {
            let mut last = idle.pop()?;
            if last.is_usable(now, surely) {
                return Some(last);
            }
        }
    }

    /// Keeps a connection, unless there are already `most`, or a request needs its descriptor.
    pub(super) fn keep(&self, connection: Box<Http1Connection>, most: usize) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < most && !shortage::is_short() {
            idle.push(connection);
        }
    }

    /// Closes connections that are no longer usable, and those to dropped addresses.
    ///
    /// Closes all connections if a request needs a descriptor.
    pub(super) fn sweep(&self, now: Moment) {
        let is_short = shortage::is_short();
        self.idle.borrow_mut().retain_mut(|it| {
            !is_short && !it.is_outdated(&self.addresses) && it.is_usable(now, false)
        });
    }
}
