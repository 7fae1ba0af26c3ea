use std::cell::{Cell, OnceCell};
use std::fmt::Write;

use limit::{Moment, ReuseLimits, Usage};

use super::peer::Peer;
use crate::origin::TiedConnections;

/// The two ends of a client's connection, and the client's address as header fields show it.
#[derive(Debug)]
pub struct ConnectionContext {
    peer: Peer,
    /// The address of the peer as text; empty on a unix socket.
    address: AddressText,
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

/// Length of the longest text of an address: IPv6, eight groups of four digits.
const MAX_ADDRESS: usize = 39;

/// Text of an address: written once for all requests of a connection.
#[derive(Debug)]
struct AddressText {
    text: [u8; MAX_ADDRESS],
    length: u8,
}

impl Write for AddressText {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        let start = usize::from(self.length);
        let room = self
            .text
            .get_mut(start..start + part.len())
            .ok_or(std::fmt::Error)?;
        room.copy_from_slice(part.as_bytes());
        self.length = u8::try_from(start + part.len()).map_err(|_| std::fmt::Error)?;
        Ok(())
    }
}

impl ConnectionContext {
    /// The context of a connection with this peer. `usage`: what it has carried; `None`: without limit.
    #[must_use]
    pub fn new(peer: Peer, usage: Option<Usage>) -> Self {
        let mut address = AddressText {
            text: [0; MAX_ADDRESS],
            length: 0,
        };
        if let Some(ip) = peer.ip() {
            // The longest address fits.
            let _fits = write!(address, "{ip}");
        }
        let extras = OnceCell::new();
        if let Some(usage) = usage {
            extras.get_or_init(|| {
                Box::new(Extras {
                    tied: OnceCell::new(),
                    usage: Some(Cell::new(usage)),
                })
            });
        }
        Self {
            peer,
            address,
            extras,
        }
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

    /// Returns the address of the peer as header fields show it; `None` on a unix socket.
    #[must_use]
    pub fn address(&self) -> Option<&[u8]> {
        let text = &self.address.text[..usize::from(self.address.length)];
        (!text.is_empty()).then_some(text)
    }
}
