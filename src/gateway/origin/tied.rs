//! Connections that one client alone uses, because it may be logged in on them.
//!
//! A login by NTLM or Negotiate belongs to the connection on which it is made: the server
//! attributes every later request on that connection to the same user.

use std::cell::RefCell;
use std::sync::Arc;

use limit::Moment;

use super::http1::Http1Connection;
use super::server::Server;
use super::shortage;

/// Idle connections of one client, at most one per server. Dropped with the client's connection.
#[derive(Default)]
pub struct TiedConnections(RefCell<Vec<Tied>>);

/// Idle connection of one client.
struct Tied {
    server: Arc<Server>,
    connection: Box<Http1Connection>,
}

impl TiedConnections {
    /// Takes the connection to `server`, if there is a [usable](Http1Connection::is_usable) one.
    ///
    /// `asks_kernel`: whether to check with the kernel that it is still open.
    pub(super) fn take(
        &self,
        server: &Arc<Server>,
        now: Moment,
        asks_kernel: bool,
    ) -> Option<Box<Http1Connection>> {
        let mut tied = self.0.borrow_mut();
        let index = tied.iter().position(|it| Arc::ptr_eq(&it.server, server))?;
        let mut connection = tied.swap_remove(index).connection;
        connection.is_usable(now, asks_kernel).then_some(connection)
    }

    /// Keeps a connection, unless a request needs its descriptor. Closes an older one.
    pub(super) fn keep(&self, server: &Arc<Server>, connection: Box<Http1Connection>) {
        let mut tied = self.0.borrow_mut();
        tied.retain(|it| !Arc::ptr_eq(&it.server, server) && !it.server.is_retired());
        if !shortage::is_short() && !server.is_retired() {
            tied.push(Tied {
                server: Arc::clone(server),
                connection,
            });
        }
    }
}
