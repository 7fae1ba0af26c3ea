//! Search for a key that limited requests share: the only key, a proxy's address, or a full key.
//!
//! A key is *full* if all permits of its limit (`in_flight`) are in use. `key_rules` has the rules.

use std::net::IpAddr;

use limit::{Measure, Window, show_duration};
use memchr::memmem;
use tokio::time::timeout;

use super::STATS_TIMEOUT;
use super::sample::{FullKey, OnlyKey};
use crate::http::gateway::Gateway;
use crate::observe::key_names::KeyNames;
use crate::status::plain::Plain;
use crate::time::clock;
use crate::zone::{KeyState, Zone};

/// Returns the key of all requests of the last minute; `None` if there were several keys.
pub(crate) async fn only_key(zone: &Zone) -> Option<OnlyKey> {
    let found = zone.heavy_keys(Measure::Requests, Window::Minute, 1);
    let found = timeout(STATS_TIMEOUT, found).await.ok()?;
    let first = found.keys.first()?;
    (first.requests >= found.total).then(|| OnlyKey {
        key: Plain::new(&first.name.short(KeyNames::of(zone.settings()))),
        is_constant: zone.settings().key.is_constant(),
        requests: first.requests,
    })
}

/// Returns untrusted peers of a zone's limited requests that name different clients.
///
/// `None` is the peer of a Unix socket.
pub(crate) fn untrusted_proxies(
    gateway: &Gateway,
    zone: usize,
) -> impl Iterator<Item = Option<IpAddr>> {
    let several = gateway.zone(zone).events().forwarders.several(clock::now());
    let trusted = &gateway.settings().server.trusted_proxies;
    several.into_iter().filter(|peer| !trusted.contains(*peer))
}

/// Returns the untrusted peer whose address is this key or begins with it.
///
/// In a zone that masks its keys, returns the masked name of the key instead.
pub(crate) fn untrusted_proxy(gateway: &Gateway, zone: usize, key: &[u8]) -> Option<Plain> {
    let settings = gateway.zone(zone).settings();
    let name = |peer: Option<IpAddr>| peer.map_or("unix:".to_owned(), |peer| peer.to_string());
    let is_of_key = |peer: &Option<IpAddr>| {
        let cut_address = name(peer.map(|peer| settings.cut(peer)));
        memmem::find(key, cut_address.as_bytes()).is_some()
    };
    let mut found = untrusted_proxies(gateway, zone).filter(is_of_key);
    let peer = found.next()?;
    let masked = KeyNames::of(settings).masked(key);
    Some(Plain::new(&masked.unwrap_or_else(|| name(peer))))
}

/// Returns the key that has all permits of its limit, some of them at other gateways.
///
/// Of several such keys, returns the one with the most withheld permits. `states` begins with the
/// key that is rejected most.
pub(crate) fn full_key<'s>(
    gateway: &Gateway,
    zone: usize,
    states: impl Iterator<Item = &'s KeyState>,
) -> Option<FullKey> {
    let with_permits = states.filter_map(|state| Some((state, state.elsewhere?)));
    let shared: Vec<_> = with_permits.filter(|(_, it)| it.permits > 0).collect();
    if shared.is_empty() {
        return None;
    }
    let routes = &gateway.settings().routes;
    let limits = routes.iter().flat_map(|route| &route.limits);
    let limits = limits.filter(|limit| limit.zone == zone);
    let max_in_flight = limits.filter_map(|it| it.limit.in_flight).min()?;
    let max_in_flight = u64::from(max_in_flight.get());
    let full = shared.into_iter().filter(|(state, elsewhere)| {
        state.in_flight as u64 + u64::from(elsewhere.permits) >= max_in_flight
    });
    // `max_by_key` returns the last of equal keys. In reverse, that is the key rejected most.
    let (state, elsewhere) = full.rev().max_by_key(|(_, it)| (it.withheld, it.permits))?;
    let zone = gateway.zone(zone).settings();
    Some(FullKey {
        key: Plain::new(&KeyNames::of(zone).short(&state.key)),
        of: max_in_flight,
        here: state.in_flight as u64,
        elsewhere: elsewhere.permits.into(),
        withheld: elsewhere.withheld.into(),
        orphan: Plain::new(&show_duration(zone.orphan)),
    })
}
