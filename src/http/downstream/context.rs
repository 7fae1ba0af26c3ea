use std::cell::OnceCell;
use std::fmt::Write;

use super::peer::Peer;
use crate::origin::TiedConnections;

/// The two ends of a client's connection, and the client's address as header fields show it.
#[derive(Debug)]
pub struct ConnectionContext {
    peer: Peer,
    /// The address of the peer as text; empty on a unix socket.
    address: AddressText,
    /// Connections to servers that no other client uses. Boxed: few clients have any.
    tied: OnceCell<Box<TiedConnections>>,
}

/// Text of an address, with room for IPv6: written once for all requests of a connection.
#[derive(Debug)]
struct AddressText {
    text: [u8; 45],
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
    /// The context of a connection with this peer.
    #[must_use]
    pub fn new(peer: Peer) -> Self {
        let mut address = AddressText {
            text: [0; 45],
            length: 0,
        };
        if let Some(ip) = peer.ip() {
            // The longest address fits.
            let _fits = write!(address, "{ip}");
        }
        Self {
            peer,
            address,
            tied: OnceCell::new(),
        }
    }

    /// Returns both ends of the connection.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns both ends of a connection that goes on in another protocol.
    #[must_use]
    pub fn into_peer(self) -> Peer {
        self.peer
    }

    /// Returns the connections that are tied to this one; `None`: there were never any.
    #[must_use]
    pub fn tied(&self) -> Option<&TiedConnections> {
        self.tied.get().map(AsRef::as_ref)
    }

    /// Returns the same, to tie one more.
    #[must_use]
    pub fn to_tie(&self) -> &TiedConnections {
        self.tied.get_or_init(Box::default)
    }

    /// Returns the address of the peer as header fields show it; `None` on a unix socket.
    #[must_use]
    pub fn address(&self) -> Option<&[u8]> {
        let text = &self.address.text[..usize::from(self.address.length)];
        (!text.is_empty()).then_some(text)
    }
}
