use std::fmt::Write;

use super::peer::Peer;

/// What is known of a client's connection: both ends, and how fields tell of them.
#[derive(Debug)]
pub struct ConnectionContext {
    peer: Peer,
    /// The peer's address as text; empty on a unix socket.
    address: AddressText,
}

/// Room for an IPv6 address, written once for all requests of a connection.
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
    pub(super) fn new(peer: Peer) -> Self {
        let mut address = AddressText {
            text: [0; 45],
            length: 0,
        };
        if let Some(ip) = peer.ip() {
            // The longest address fits in.
            let _fits = write!(address, "{ip}");
        }
        Self { peer, address }
    }

    /// Both ends of the connection.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The other end's address as fields tell it; `None` on a unix socket.
    #[must_use]
    pub fn address(&self) -> Option<&[u8]> {
        let text = &self.address.text[..usize::from(self.address.length)];
        (!text.is_empty()).then_some(text)
    }
}
