//! Places of an origin that gateways share, and settings of such places that do nothing.

use std::time::Duration;

use limit::{WithoutPool, show_duration};

use crate::node::Node;
use crate::{Origin, StoreKind};

/// The default of `orphan`, which each file has that `drip check` printed.
const USUAL_ORPHAN: Duration = Duration::from_secs(75);

/// Warns of settings of shared places where an origin has none.
pub(super) fn unlent_places(origin: &Origin, node: Node) {
    if origin.shared_places().is_some() {
        return;
    }
    let is_closed = origin.on_store_failure == WithoutPool::Closed;
    let closed = node.field("on_store_failure").filter(|_| is_closed);
    let is_usual = origin.orphan == USUAL_ORPHAN;
    let orphan = node.field("orphan").filter(|_| !is_usual);
    let missing = match (origin.store, origin.max_in_flight) {
        (StoreKind::Redis, _) => "max_in_flight",
        (StoreKind::Memory, Some(_)) => "store = \"redis\"",
        (StoreKind::Memory, None) => "store = \"redis\" and max_in_flight",
    };
    for field in [closed, orphan].into_iter().flatten() {
        field.warn(&format!(
            "this is about places that gateways share, and the origin has none, so it does nothing; add {missing}, or remove it"
        ));
    }
}

/// Warns of places that are lent again while a request of a gateway that vanished may still run.
pub(super) fn short_orphan(origin: &Origin, node: Node) {
    let (orphan, response_timeout) = (origin.orphan, origin.response_timeout);
    if origin.shared_places().is_none() || orphan >= response_timeout {
        return;
    }
    // One of them is written: the default of `orphan` is the longer one.
    let written = ["orphan", "response_timeout"].map(|name| node.field(name));
    let Some(field) = written.into_iter().flatten().next() else {
        return;
    };
    let [orphan, response_timeout] = [orphan, response_timeout].map(show_duration);
    field.warn(&format!(
        "if a gateway vanishes, its requests may run at the origin for response_timeout, which is {response_timeout}, and others get their places after orphan, which is {orphan}; set orphan to more than {response_timeout}, or lower response_timeout"
    ));
}

/// Warns of more gateways than places, where each takes one at least while it cannot reach Redis.
pub(super) fn too_many_alone(origin: &Origin, node: Node) {
    let (Some(gateways), Some(places)) = (origin.gateways, origin.shared_places()) else {
        return;
    };
    let is_closed = origin.on_store_failure == WithoutPool::Closed;
    let gateways = gateways.get() as usize;
    if is_closed || gateways <= places.get() {
        return;
    }
    let Some(field) = node.field("gateways") else {
        return;
    };
    field.warn(&format!(
        "while Redis is out, each of {gateways} gateways takes a place, and max_in_flight is {places}, so more may be at the origin; set on_store_failure = \"closed\" if it must not have more"
    ));
}
