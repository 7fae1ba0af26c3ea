//! Known addresses of a server's name, and the test of connections to dropped ones.
//!
//! A connection to an address that a later lookup did not return is *outdated*: it takes no more
//! requests.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Addresses of a server's name as of the last lookup.
#[derive(Debug, Default)]
pub(super) struct KnownAddresses {
    /// `None` if the server is given by its address, or the name was not looked up yet.
    found: RefCell<Option<Arc<[SocketAddr]>>>,
    /// Number of lookups that did not return an address that was known before. Wraps around.
    generation: Cell<u32>,
}

/// Generation of the addresses with which a connection was last compared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compared(u32);

impl KnownAddresses {
    /// Records the addresses of the last lookup.
    pub(super) fn update(&self, found: &Arc<[SocketAddr]>) {
        let before = self.found.replace(Some(Arc::clone(found)));
        let mut addresses = before.iter().flat_map(|before| before.iter());
        if addresses.any(|it| self.is_outdated(it.ip())) {
            self.generation.update(|number| number.wrapping_add(1));
        }
    }

    /// Returns whether the name no longer has this address.
    pub(super) fn is_outdated(&self, address: IpAddr) -> bool {
        let found = self.found.borrow();
        let found = found.as_ref();
        found.is_some_and(|it| it.iter().all(|known| known.ip() != address))
    }

    /// Returns whether a connection goes to an address that the name no longer has.
    ///
    /// `address` is called only if the name has dropped an address since the last comparison.
    pub(super) fn goes_to_outdated(
        &self,
        compared: &mut Compared,
        address: impl FnOnce() -> Option<IpAddr>,
    ) -> bool {
        if compared.0 == self.generation.get() {
            return false;
        }
        compared.0 = self.generation.get();
        address().is_some_and(|address| self.is_outdated(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_compared_once_after_an_address_was_dropped() {
        let known = KnownAddresses::default();
        let look_up = |last_bytes: &[u8]| {
            let found = last_bytes.iter().map(|last| ([10, 0, 0, *last], 0).into());
            known.update(&found.collect());
        };
        // Returns whether the connection was compared, and whether it is outdated.
        let check = |compared: &mut Compared, last_byte: u8| {
            let is_compared = Cell::new(false);
            let is_outdated = known.goes_to_outdated(compared, || {
                is_compared.set(true);
                Some([10, 0, 0, last_byte].into())
            });
            (is_compared.get(), is_outdated)
        };
        let (mut old, mut staying) = (Compared::default(), Compared::default());
        // Before the first lookup, and while no lookup drops an address.
        assert_eq!(check(&mut old, 1), (false, false));
        look_up(&[1, 2]);
        look_up(&[1, 2]);
        look_up(&[2, 1, 3]);
        assert_eq!(check(&mut old, 1), (false, false));
        look_up(&[3, 2]);
        assert_eq!(check(&mut old, 1), (true, true));
        assert_eq!(check(&mut staying, 2), (true, false));
        assert_eq!(check(&mut staying, 2), (false, false));
    }
}
