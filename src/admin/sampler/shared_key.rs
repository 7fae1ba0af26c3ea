//! Whether the limited requests of a zone share a key, and why.

use std::net::IpAddr;

use tokio::time::timeout;

use super::EVERY;
use crate::actors::Zone;
use crate::admin::views::{OnlyKey, Plain};
use crate::http::gateway::Gateway;
use crate::limit::{Measure, Window};
use crate::observe::escape::short_name;
use crate::time::clock;

/// The key that all requests of the last minute had. `None` if there were several keys.
pub(super) async fn only_key(zone: &Zone) -> Option<OnlyKey> {
    let found = zone.heavy_keys(Measure::Requests, Window::Minute, 1);
    let found = timeout(EVERY, found).await.ok()?;
    let first = found.keys.first()?;
    (first.requests >= found.total).then(|| OnlyKey {
        key: Plain::new(&short_name(first.name.begin())),
        is_constant: zone.settings().key.is_constant(),
        requests: first.requests,
    })
}

/// The peers of limited requests of a zone that name different clients, and are not trusted.
pub(in super::super) fn untrusted_proxies(
    gateway: &Gateway,
    zone: usize,
) -> impl Iterator<Item = Option<IpAddr>> {
    let several = gateway.events(zone).forwarders.several(clock::now());
    let trusted = &gateway.settings().server.trusted_proxies;
    several.into_iter().filter(|peer| !trusted.contain(*peer))
}

/// Such a peer that this key is of.
pub(super) fn untrusted_proxy(gateway: &Gateway, zone: usize, key: &Plain) -> Option<Plain> {
    let settings = gateway.zone(zone).settings();
    let name = |peer: Option<IpAddr>| peer.map_or("unix:".to_owned(), |peer| peer.to_string());
    let is_of_key = |peer: &Option<IpAddr>| {
        let in_key = name(peer.map(|peer| settings.cut(peer)));
        key.as_str().contains(&in_key)
    };
    let mut found = untrusted_proxies(gateway, zone).filter(is_of_key);
    found.next().map(|peer| Plain::new(&name(peer)))
}
