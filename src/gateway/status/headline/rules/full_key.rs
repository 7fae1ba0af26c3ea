use super::super::recent::Recent;
use super::super::words::{is, whole};
use crate::status::views::{FullKey, ZoneSample};

/// The key that had all places of its limit lately, some of them at other gateways.
pub(super) fn full_key<'r>(recent: &Recent<'r>, zone: &ZoneSample) -> Option<&'r FullKey> {
    recent.latest_or_before(zone, |it| it.full_key.as_ref())
}

/// Where the places of a key are, as a sentence.
pub(super) fn whereabouts(full: &FullKey) -> String {
    let FullKey {
        key,
        of,
        here,
        elsewhere,
        withheld,
        ..
    } = full;
    let (of, here, others) = (
        whole(*of),
        whole(*here),
        elsewhere.saturating_sub(*withheld),
    );
    if *withheld > 0 {
        let is = is(*withheld);
        let withheld = whole(*withheld);
        return format!(
            "Of {of} places of {key}, {withheld} {is} withheld for a gateway that has vanished, as its requests may still run; {here} run here, {} at other gateways.",
            whole(others)
        );
    }
    let others = whole(others);
    format!("Of {of} places of {key}, {here} are in use here, {others} at other gateways.")
}

/// What helps a key that has all its places.
pub(super) fn remedy(full: &FullKey) -> String {
    withheld(full).unwrap_or_else(|| {
        format!(
            "If the origin can do more at once, raise `in_flight`, which is {} for all gateways. More `rate` would not help.",
            whole(full.of)
        )
    })
}

/// What to do about places that are withheld; `None` if none are.
pub(super) fn withheld(full: &FullKey) -> Option<String> {
    let orphan = &full.orphan;
    (full.withheld > 0).then(|| {
        format!(
            "There is nothing to raise: withheld places are free when `orphan` of the zone, which is {orphan}, has passed, or when that gateway is back."
        )
    })
}
