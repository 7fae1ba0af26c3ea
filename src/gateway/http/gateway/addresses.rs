//! Names whose addresses are servers of their own: `resolve = "each"`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::PoisonError;

use actix_rt::ArbiterHandle;
use config;
use futures_util::future::join_all;

use super::Gateway;

/// The addresses of names, in order.
pub type Addresses = BTreeMap<String, Vec<IpAddr>>;

impl Gateway {
    /// Whether the addresses of any name are servers.
    pub(crate) fn resolves_names(&self) -> bool {
        let mut origins = self.settings.origins.iter();
        origins.any(|origin| origin.names_to_resolve().next().is_some())
    }

    /// Looks up the names whose addresses are servers. One that cannot be looked up keeps its
    /// addresses.
    pub async fn look_up(&self) -> Addresses {
        let origins = self.settings.origins.iter();
        let names: BTreeSet<&str> = origins.flat_map(config::Origin::names_to_resolve).collect();
        let known = self.addresses();
        let look_up = async |name: &str| {
            let found = self.lifecycle.dialer.look_up(name).await;
            let found = found.ok().or_else(|| known.get(name).cloned());
            Some((name.to_owned(), found?))
        };
        let found = join_all(names.into_iter().map(look_up)).await;
        found.into_iter().flatten().collect()
    }

    /// The addresses in force.
    pub fn addresses(&self) -> Addresses {
        let known = self.lifecycle.addresses.lock();
        known.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The gateway under the same settings, with these addresses of names. Servers at addresses
    /// that stay keep their state.
    pub fn with_addresses(&self, addresses: Addresses, workers: &[ArbiterHandle]) -> Self {
        let known = self.lifecycle.addresses.lock();
        *known.unwrap_or_else(PoisonError::into_inner) = addresses;
        self.reload(self.settings.clone(), workers, self.access.clone())
    }
}
