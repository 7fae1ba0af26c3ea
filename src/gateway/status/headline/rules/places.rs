use super::super::recent::Recent;
use super::super::words::{is, sentence, whole};
use crate::status::views::{GateSample, OriginSample, Places, Plain};

/// What to do where Redis does not know yet who has which places.
const LENT_SOON: &str = "There is nothing to do: places are lent within 3 s.";

/// Why requests wait for places that gateways share.
pub(super) struct Lacking {
    pub(super) evidence: String,
    /// `None`: more places in all would help.
    pub(super) remedy: Option<String>,
}

/// `None` if gateways do not share the places, or if requests do not wait for them.
pub(super) fn lacking(
    recent: &Recent<'_>,
    origin: &OriginSample,
    gate: &GateSample,
) -> Option<Lacking> {
    let places = gate.places.as_ref()?;
    let all_are_used = places.in_use >= places.held;
    if !waits_for_places(recent, origin).unwrap_or(all_are_used) {
        return None;
    }
    let Places {
        of,
        held,
        lent,
        withheld,
        unknown,
        orphan,
        ..
    } = places;
    let (of, here) = (whole(*of), whole(*held));
    Some(if places.alone {
        let reason = places.reason.as_ref().map_or("", Plain::as_str);
        let remedy = places.remedy.as_ref().map_or("", Plain::as_str);
        Lacking {
            evidence: format!("The lease of this gateway's places has ended: {reason}."),
            remedy: Some(sentence(remedy)),
        }
    } else if places.of == 0 {
        Lacking {
            evidence: "Redis has not told yet which places there are.".to_owned(),
            remedy: Some(LENT_SOON.to_owned()),
        }
    } else if *unknown > 0 {
        Lacking {
            evidence: format!(
                "Redis does not know yet who has {} of {of} places: the pool is new, or Redis has lost its state.",
                whole(*unknown)
            ),
            remedy: Some(LENT_SOON.to_owned()),
        }
    } else if *withheld > 0 {
        let lent = whole(*lent);
        let at_most = places
            .withheld_seconds
            .map(|it| format!("in {} s at most, ", whole(it)));
        Lacking {
            evidence: format!(
                "{} of {of} places {} withheld for a gateway that has vanished, as its requests may still run at the origin. Gateways that are there have {lent}, this one {here}.",
                whole(*withheld),
                is(*withheld)
            ),
            remedy: Some(format!(
                "There is nothing to raise: withheld places are free when `orphan`, which is {orphan}, has passed, {}or when that gateway is back.",
                at_most.unwrap_or_default()
            )),
        }
    } else {
        let others = whole(lent.saturating_sub(*held));
        Lacking {
            evidence: format!("This gateway has {here} of {of} places, other gateways {others}."),
            remedy: None,
        }
    })
}

/// Whether requests waited for places rather than for the pace; `None` if none waited for either.
pub(super) fn waits_for_places(recent: &Recent<'_>, origin: &OriginSample) -> Option<bool> {
    recent.latest(origin, |it| {
        let blocked = &it.gate.as_ref()?.blocked;
        let by = |cause: &str| {
            blocked
                .get(&Plain::from(cause))
                .copied()
                .unwrap_or_default()
        };
        let (by_pace, by_places) = (by("pace"), by("in_flight"));
        (by_pace + by_places > 0.0).then_some(by_places > by_pace)
    })
}
