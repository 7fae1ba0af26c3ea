//! The key of a zone of which as many requests run at all gateways as may.

use limit::show_duration;

use crate::http::gateway::Gateway;
use crate::observe::key_names::KeyNames;
use crate::status::views::{FullKey, Plain};
use crate::zone::KeyState;

/// Of these keys of a zone, the one that has all places of its limit, some of them at other
/// gateways: the one of which most are withheld.
pub(super) fn full_key<'s>(
    gateway: &Gateway,
    zone: usize,
    states: impl Iterator<Item = &'s KeyState>,
) -> Option<FullKey> {
    let shared = states.filter_map(|state| Some((state, state.elsewhere?)));
    let shared: Vec<_> = shared.filter(|(_, it)| it.places > 0).collect();
    if shared.is_empty() {
        return None;
    }
    let routes = &gateway.settings().routes;
    let limits = routes.iter().flat_map(|route| &route.limits);
    let limits = limits.filter(|limit| limit.zone == zone);
    let of = limits.filter_map(|it| it.limit.in_flight).min()?.get();
    let count = |places: u32| u64::from(places);
    let full = shared
        .into_iter()
        .filter(|(state, it)| state.in_flight as u64 + count(it.places) >= count(of));
    // Of equal ones the first counts, which is rejected most.
    let (state, elsewhere) = full.rev().max_by_key(|(_, it)| (it.withheld, it.places))?;
    let zone = gateway.zone(zone).settings();
    Some(FullKey {
        key: Plain::new(&KeyNames::of(zone).short(&state.key)),
        of: count(of),
        here: state.in_flight as u64,
        elsewhere: count(elsewhere.places),
        withheld: count(elsewhere.withheld),
        orphan: Plain::new(&show_duration(zone.orphan)),
    })
}
