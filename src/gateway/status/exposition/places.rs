//! The metrics of places that gateways share.

use super::Family;
use crate::gate::PlaceSharing;

/// Writes how gateways share the places of origins; nothing if they share none.
pub(super) fn write(out: &mut String, shared: &[(&str, &PlaceSharing)]) {
    if shared.is_empty() {
        return;
    }
    let mut together = Family::gauge(
        "drip_origin_places_shared",
        "1 while the gate borrows its places from the pool in Redis, 0 if its lease has ended without an answer.",
    );
    let mut own = Family::gauge(
        "drip_origin_places_held",
        "Places of the origin that this gateway holds.",
    );
    let mut gateways = Family::gauge(
        "drip_origin_places_gateways",
        "Gateways that share the origin's places, as this one was last told.",
    );
    let mut states = Family::gauge(
        "drip_origin_places",
        "Places of the origin over all gateways, as this one was last told, by their state.",
    );
    for (origin, sharing) in shared {
        let name = ("origin", *origin);
        together.add(&[name], u8::from(!sharing.is_out));
        own.add(&[name], sharing.held);
        if let Some(pool) = &sharing.pool {
            gateways.add(&[name], pool.gateways);
            let in_use = pool.in_use.min(pool.held);
            let (withheld, unknown) = pool.withheld_and_unknown();
            for (state, count) in [
                ("used", in_use),
                ("idle", pool.held - in_use),
                ("withheld", withheld),
                ("unknown", unknown),
                ("free", pool.free),
            ] {
                states.add(&[name, ("state", state)], count);
            }
        }
    }
    for family in [together, own, gateways, states] {
        out.push_str(&family.text);
    }
}
