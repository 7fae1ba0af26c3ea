use std::cell::{Cell, OnceCell};

use limit::{Moment, ReuseLimits, Usage};

use super::peer::Peer;
use crate::origin::TiedConnections;

/// The two ends of a client's connection, and what few connections have.
pub struct ConnectionContext {
    peer: Peer,
    /// What few connections have; one pointer, because each idle connection has room for it.
    extras: OnceCell<Box<Extras>>,
}

#[derive(Debug, Default)]
struct Extras {
    /// Connections to servers that no other client uses.
    tied: OnceCell<TiedConnections>,
    /// `None`: the connection is used without limit.
    usage: Option<Cell<Usage>>,
}

impl ConnectionContext {
    /// The context of a connection with this peer. `usage`: what it has carried; `None`: without limit.
    pub fn new(peer: Peer, usage: Option<Usage>) -> Self {
        let extras = OnceCell::new();
        if let Some(usage) = usage {
            extras.get_or_init(|| {
                Box::new(Extras {
                    tied: OnceCell::new(),
                    usage: Some(Cell::new(usage)),
                })
            });
        }
        Self { peer, extras }
    }

    /// Counts a request that came `now`. Returns whether the connection may carry another one.
    pub(super) fn count_request(&self, limits: &ReuseLimits, now: impl Fn() -> Moment) -> bool {
        let usage = self.extras.get().and_then(|extras| extras.usage.as_ref());
        usage.is_none_or(|cell| {
            let mut usage = cell.get();
            usage.count();
            cell.set(usage);
            usage.may_carry(limits, now())
        })
    }

    /// Returns both ends of the connection.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns both ends of a connection that goes on in another protocol.
    pub(crate) fn into_peer(self) -> Peer {
        self.peer
    }

    /// Returns the connections that are tied to this one; `None`: there were never any.
    pub(crate) fn tied(&self) -> Option<&TiedConnections> {
        self.extras.get()?.tied.get()
    }

    /// Returns the same, to tie one more.
    pub(crate) fn to_tie(&self) -> &TiedConnections {
        let extras = self.extras.get_or_init(Box::default);
        extras.tied.get_or_init(TiedConnections::default)
    }
}
