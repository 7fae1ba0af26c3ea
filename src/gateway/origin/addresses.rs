//! Known addresses of a server's name, and connections to addresses that the name has dropped.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Addresses of a server's name as of the last lookup.
#[derive(Debug, Default)]
pub(super) struct KnownAddresses {
    /// `None` if the server is given by its address, or the name was not looked up yet.
    found: RefCell<Option<Arc<[SocketAddr]>>>,
    /// Number of lookups after which the name no longer had an address. Wraps around.
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
            self.generation
                .update(|generation| generation.wrapping_add(1));
        }
    }

    /// Returns whether the name no longer has this address.
    pub(super) fn is_outdated(&self, address: IpAddr) -> bool {
        let found = self.found.borrow();
        found
            .as_ref()
            .is_some_and(|it| it.iter().all(|known| known.ip() != address))
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

    fn found(addresses: &[&str]) -> Arc<[SocketAddr]> {
        let address = |text: &&str| SocketAddr::new(text.parse().unwrap(), 0);
        addresses.iter().map(address).collect()
    }

    #[test]
    fn a_connection_is_compared_once_after_an_address_was_dropped() {
        let known = KnownAddresses::default();
        let (mut old, mut staying) = (Compared::default(), Compared::default());
        let left = |compared: &mut Compared, address: &str| {
            let mut is_asked = false;
            let goes_to_outdated = known.goes_to_outdated(compared, || {
                is_asked = true;
                address.parse().ok()
            });
            (is_asked, goes_to_outdated)
        };
        // Before the first lookup, after it, after the same result again, and with one more
        // address.
        assert_eq!(left(&mut old, "10.0.0.1"), (false, false));
        let first = found(&["10.0.0.1", "10.0.0.2"]);
        known.update(&first);
        known.update(&first);
        known.update(&found(&["10.0.0.2", "10.0.0.1", "10.0.0.3"]));
        assert_eq!(left(&mut old, "10.0.0.1"), (false, false));
        known.update(&found(&["10.0.0.3", "10.0.0.2"]));
        assert_eq!(left(&mut old, "10.0.0.1"), (true, true));
        assert_eq!(left(&mut staying, "10.0.0.2"), (true, false));
        assert_eq!(left(&mut staying, "10.0.0.2"), (false, false));
    }
}
