//! Translates the common way to exempt some clients: a geo or a map that makes their key empty.
//!
//! ```nginx
//! geo $limit { default 1; 10.0.0.0/8 0; }
//! map $limit $limit_key { 0 ""; 1 $binary_remote_addr; }
//! limit_req_zone $limit_key zone=z:10m rate=5r/s;
//! ```

use std::net::IpAddr;

use ipnet::IpNet;

use super::variables::{Geo, Map, Variables, bare};
use crate::tools::import::notes::Place;

/// The translation of a zone's key.
#[derive(Debug, PartialEq)]
pub(super) struct Exempting {
    /// The key of clients that are limited, as nginx writes it.
    pub(super) key: String,
    /// The networks of clients that are not limited.
    pub(super) networks: Vec<String>,
    /// The places in the file that say so.
    pub(super) places: Vec<Place>,
}

impl Variables<'_> {
    /// Translates a key that is one variable of a map; `None` if `exempt` cannot express it.
    pub(super) fn exempting(&self, key: &str) -> Option<Exempting> {
        let map = self.map(key).filter(|map| map.is_plain)?;
        let source = bare(map.source)?;
        let (place, default, networks) = match self.geos.get(source) {
            Some(geo) => (Some(geo.place), map.of(geo.default), geo.mapped(map)),
            None if ["remote_addr", "binary_remote_addr"].contains(&source) => {
                (None, map.default, map.addresses()?)
            }
            None => return None,
        };
        // Clients that are not named must be limited, and all limited clients must have the same
        // key.
        if default.is_empty() || networks.iter().any(|(_, key)| !["", default].contains(key)) {
            return None;
        }
        let (free, limited): (Vec<_>, Vec<_>) =
            networks.into_iter().partition(|(_, key)| key.is_empty());
        // In nginx the smallest of nested networks decides. `exempt` has no such rule.
        let is_within =
            |(inner, _): &(IpNet, &str)| free.iter().any(|(outer, _)| outer.contains(inner));
        if free.is_empty() || limited.iter().any(is_within) {
            return None;
        }
        Some(Exempting {
            key: default.to_owned(),
            networks: free
                .iter()
                .map(|(network, _)| network.to_string())
                .collect(),
            places: place.into_iter().chain([map.place]).collect(),
        })
    }
}

impl Geo<'_> {
    /// The networks, each with the value that the map gives it.
    fn mapped<'m>(&self, map: &Map<'m>) -> Vec<(IpNet, &'m str)> {
        let networks = self.networks.iter();
        networks
            .map(|(network, value)| (*network, map.of(value)))
            .collect()
    }
}

impl<'t> Map<'t> {
    /// The map's values as addresses; `None` unless all are addresses in the form that nginx
    /// writes.
    fn addresses(&self) -> Option<Vec<(IpNet, &'t str)>> {
        let address = |(text, result): &(&str, &'t str)| {
            let address: IpAddr = text.parse().ok()?;
            let is_written_so = address.to_string().eq_ignore_ascii_case(text);
            is_written_so.then(|| (IpNet::from(address), *result))
        };
        self.values.iter().map(address).collect()
    }
}
