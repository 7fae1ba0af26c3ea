//! Rules for the holders of the permits that requests wait for: other gateways, or a slow client.

use super::sample::{GateSample, PermitsStatus};
use crate::origin::Phase;
use crate::origin::report::sample::{Holder, OriginSample};
use crate::status::headline::recent::Recent;
use crate::status::headline::words::{is, seconds, sentence, whole};
use crate::status::plain::Plain;
use crate::zone::report::sample::{FullKey, ZoneSample};

/// Sentence about the client with at least half of the requests in flight, after a blank.
pub(crate) fn held_by(origin: &OriginSample) -> Option<String> {
    holder(origin).map(holds)
}

/// Sentence about a client that holds permits by slow uploads or reads, with the remedy.
///
/// Rejections are counted for some seconds after the client has disconnected.
pub(crate) fn slow_client(recent: &Recent<'_>, origin: &OriginSample) -> Option<(String, String)> {
    let slow = |it| {
        let holder = holder(it)?;
        matches!(holder.phase, Phase::Upload | Phase::Reader).then_some(holder)
    };
    let holder = recent.latest_or_before(origin, slow)?;
    let name = &origin.name;
    let remedy = if holder.phase == Phase::Upload {
        format!(
            "Set `request_buffer` for {name}, so that a request leaves once its body is here; a higher `min_body_rate` ends slow uploads. {name} is not at fault."
        )
    } else {
        format!(
            "Set `response_buffer` for {name}, so that its permit is free once it has answered. {name} is not at fault."
        )
    };
    Some((holds(holder), remedy))
}

/// Sentence for the requests of a client.
fn holds(holder: &Holder) -> String {
    let Holder {
        client,
        route,
        phase,
        requests,
        of,
        oldest,
    } = holder;
    let why = match phase {
        Phase::Upload => ": it uploads slowly",
        Phase::Reader => ": it reads slowly",
        Phase::Answer | Phase::End => "",
    };
    let (requests, of) = (whole(*requests), whole(*of));
    format!(
        " {requests} of {of} requests in flight are of {client} on {route}, the oldest for {}{why}.",
        seconds(*oldest)
    )
}

/// Client with at least half of the requests in flight, if there are at least two requests.
fn holder(origin: &OriginSample) -> Option<&Holder> {
    let holder = origin.holder.as_ref()?;
    (holder.of >= 2 && holder.requests * 2 >= holder.of).then_some(holder)
}

/// Remedy while Redis does not know yet which gateway has which permits.
const LEASED_SOON: &str = "There is nothing to do: permits are leased within 3 s.";

/// Reason why requests wait for permits that gateways share.
pub(crate) struct PermitShortage {
    pub(crate) evidence: String,
    /// `None`: a higher total would help.
    pub(crate) remedy: Option<String>,
}

/// Finds why requests wait for shared permits; `None` if no request does.
pub(crate) fn permit_shortage(
    recent: &Recent<'_>,
    origin: &OriginSample,
    gate: &GateSample,
) -> Option<PermitShortage> {
    let permits = gate.permits.as_ref()?;
    let all_are_used = permits.in_use >= permits.held;
    if !waits_for_permits(recent, origin).unwrap_or(all_are_used) {
        return None;
    }
    let PermitsStatus {
        of,
        held,
        leased,
        withheld,
        unknown,
        orphan,
        ..
    } = permits;
    let (of, here) = (whole(*of), whole(*held));
    Some(if permits.alone {
        let reason = permits.reason.as_ref().map_or("", Plain::as_str);
        let remedy = permits.remedy.as_ref().map_or("", Plain::as_str);
        PermitShortage {
            evidence: format!("The lease of this gateway's permits has ended: {reason}."),
            remedy: Some(sentence(remedy)),
        }
    } else if permits.of == 0 {
        PermitShortage {
            evidence: "Redis has not reported the permits of the pool yet.".to_owned(),
            remedy: Some(LEASED_SOON.to_owned()),
        }
    } else if *unknown > 0 {
        PermitShortage {
            evidence: format!(
                "Redis does not know yet who has {} of {of} permits: the pool is new, or Redis has lost its state.",
                whole(*unknown)
            ),
            remedy: Some(LEASED_SOON.to_owned()),
        }
    } else if *withheld > 0 {
        let leased = whole(*leased);
        PermitShortage {
            evidence: format!(
                "{} of {of} permits {} withheld for a gateway that has vanished, as its requests may still run at the origin. Gateways that are there have {leased}, this one {here}.",
                whole(*withheld),
                is(*withheld)
            ),
            remedy: Some(format!(
                "There is nothing to raise: withheld permits are free when `orphan`, which is {orphan}, has passed, or when that gateway is back."
            )),
        }
    } else {
        let others = whole(leased.saturating_sub(*held));
        PermitShortage {
            evidence: format!("This gateway has {here} of {of} permits, other gateways {others}."),
            remedy: None,
        }
    })
}

/// Returns whether requests waited for permits rather than for the pace; `None` if for neither.
pub(crate) fn waits_for_permits(recent: &Recent<'_>, origin: &OriginSample) -> Option<bool> {
    recent.latest(origin, |it| {
        let blocked = &it.gate.as_ref()?.blocked;
        let by = |cause: &str| {
            blocked
                .get(&Plain::from(cause))
                .copied()
                .unwrap_or_default()
        };
        let (by_pace, by_permits) = (by("pace"), by("in_flight"));
        (by_pace + by_permits > 0.0).then_some(by_permits > by_pace)
    })
}

/// Key that had all permits of its limit lately, some of them at other gateways.
pub(crate) fn full_key<'r>(recent: &Recent<'r>, zone: &ZoneSample) -> Option<&'r FullKey> {
    recent.latest_or_before(zone, |it| it.full_key.as_ref())
}

/// Sentence for the holders of a key's permits.
pub(crate) fn whereabouts(full: &FullKey) -> String {
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
            "Of {of} permits of {key}, {withheld} {is} withheld for a gateway that has vanished, as its requests may still run; {here} run here, {} at other gateways.",
            whole(others)
        );
    }
    let others = whole(others);
    format!("Of {of} permits of {key}, {here} are in use here, {others} at other gateways.")
}

/// Remedy for a key that has all its permits.
pub(crate) fn remedy_of_full(full: &FullKey) -> String {
    withheld_of_full(full).unwrap_or_else(|| {
        format!(
            "If the origin can do more at once, raise `in_flight`, which is {} for all gateways. More `rate` would not help.",
            whole(full.of)
        )
    })
}

/// Remedy for withheld permits; `None` if none are withheld.
pub(crate) fn withheld_of_full(full: &FullKey) -> Option<String> {
    let orphan = &full.orphan;
    (full.withheld > 0).then(|| {
        format!(
            "There is nothing to raise: withheld permits are free when `orphan` of the zone, which is {orphan}, has passed, or when that gateway is back."
        )
    })
}
