//! State of one client connection that its requests share.
//!
//! An origin connection is *tied* to a client connection if the client has logged in on it (NTLM):
//! it serves no other client.

use std::cell::{Cell, OnceCell};

use limit::{Moment, ReuseLimits, Usage};

use super::peer::Peer;
use crate::origin::TiedConnections;

/// State of one client connection: its two ends, and rarely used extras.
pub struct ConnectionContext {
    peer: Peer,
    /// Rarely used state. Behind one pointer, because idle connections must be small.
    extras: OnceCell<Box<Extras>>,
}

/// State that few connections need.
#[derive(Default)]
struct Extras {
    /// Connections to origins that are reserved for this client.
    tied: OnceCell<TiedConnections>,
    /// Age and number of requests of the connection. `None`: both are unlimited.
    usage: Option<Cell<Usage>>,
}

impl ConnectionContext {
    /// Creates the context of a connection.
    ///
    /// `usage`: counter of its requests; `None`: its age and number of requests are unlimited.
    pub fn new(peer: Peer, usage: Option<Usage>) -> Self {
        let tied = OnceCell::new();
        let extras = match usage.map(Cell::new) {
            // Allocates nothing until a connection is tied.
            None => OnceCell::new(),
            usage => OnceCell::from(Box::new(Extras { tied, usage })),
        };
        Self { peer, extras }
    }

    /// Counts a request that arrived `now`. Returns whether another request may follow.
    ///
    /// The clock is not read if the connection is unlimited.
    pub(super) fn count_request(&self, limits: &ReuseLimits, now: impl Fn() -> Moment) -> bool {
        let usage = self.extras.get().and_then(|extras| extras.usage.as_ref());
        usage.is_none_or(|cell| {
            let mut usage = cell.get();
            usage.count();
            cell.set(usage);
            usage.may_carry(limits, now())
        })
    }

    /// Returns the two ends of the connection.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the two ends of a connection that continues in another protocol.
    pub(crate) fn into_peer(self) -> Peer {
        self.peer
    }

    /// Returns the origin connections tied to this one. `None` if none was ever tied.
    pub(crate) fn tied(&self) -> Option<&TiedConnections> {
        self.extras.get()?.tied.get()
    }

    /// Returns the origin connections tied to this one. Creates the list if it does not exist.
    pub(crate) fn tied_or_new(&self) -> &TiedConnections {
        let extras = self.extras.get_or_init(Box::default);
        extras.tied.get_or_init(TiedConnections::default)
    }
}
