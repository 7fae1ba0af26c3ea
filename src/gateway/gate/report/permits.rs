//! Holders of the permits that requests wait for: other gateways, or a slow client.
//!
//! A permit is the right to run one request at an origin, or one request of a key. These functions
//! make sentences for the rules of gates, origins and zones.

use super::sample::GateSample;
use crate::origin::Phase;
use crate::origin::report::sample::{Holder, OriginSample};
use crate::status::headline::recent::Recent;
use crate::status::headline::words::{is, seconds, sentence, whole};
use crate::status::plain::Plain;
use crate::zone::report::sample::{FullKey, ZoneSample};

/// Sentence about the client with at least half of the requests in flight. Begins with a blank.
pub(crate) fn held_by(origin: &OriginSample) -> Option<String> {
    holder(origin).map(holder_sentence)
}

/// Sentence about a client that holds permits by slow uploads or reads, with the remedy.
///
/// Rejections are counted for some seconds after the client has disconnected.
pub(crate) fn slow_client(recent: &Recent<'_>, origin: &OriginSample) -> Option<(String, String)> {
    let slow_holder = |sample| {
        let holder = holder(sample)?;
        matches!(holder.phase, Phase::Upload | Phase::Reader).then_some(holder)
    };
    let holder = recent.latest_or_before(origin, slow_holder)?;
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
    Some((holder_sentence(holder), remedy))
}

/// Sentence for the requests of a client. Begins with a blank.
fn holder_sentence(holder: &Holder) -> String {
    let Holder { client, route, .. } = holder;
    let why = match holder.phase {
        Phase::Upload => ": it uploads slowly",
        Phase::Reader => ": it reads slowly",
        Phase::Answer | Phase::End => "",
    };
    let (requests, all) = (whole(holder.requests), whole(holder.of));
    let oldest = seconds(holder.oldest);
    format!(
        " {requests} of {all} requests in flight are of {client} on {route}, the oldest for {oldest}{why}."
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
    /// Sentence about where the permits are.
    pub(crate) evidence: String,
    /// Remedy; `None`: to raise the total, which the caller advises.
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
    let (all, here) = (whole(permits.of), whole(permits.held));
    let (unknown, withheld) = (whole(permits.unknown), whole(permits.withheld));
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
    } else if permits.unknown > 0 {
        PermitShortage {
            evidence: format!(
                "Redis does not know yet who has {unknown} of {all} permits: the pool is new, or Redis has lost its state."
            ),
            remedy: Some(LEASED_SOON.to_owned()),
        }
    } else if permits.withheld > 0 {
        let leased = whole(permits.leased);
        PermitShortage {
            evidence: format!(
                "{withheld} of {all} permits {} withheld for a gateway that has vanished, as its requests may still run at the origin. Gateways that are there have {leased}, this one {here}.",
                is(permits.withheld)
            ),
            remedy: Some(format!(
                "There is nothing to raise: withheld permits are free when `orphan`, which is {}, has passed, or when that gateway is back.",
                permits.orphan
            )),
        }
    } else {
        let others = whole(permits.leased.saturating_sub(permits.held));
        PermitShortage {
            evidence: format!("This gateway has {here} of {all} permits, other gateways {others}."),
            remedy: None,
        }
    })
}

/// Returns whether requests waited longer for permits than for their slots; `None`: for neither.
pub(crate) fn waits_for_permits(recent: &Recent<'_>, origin: &OriginSample) -> Option<bool> {
    recent.latest(origin, |it| {
        let blocked = &it.gate.as_ref()?.blocked;
        let seconds = |cause: &str| {
            blocked
                .get(&Plain::from(cause))
                .copied()
                .unwrap_or_default()
        };
        let (by_pace, by_permits) = (seconds("pace"), seconds("in_flight"));
        (by_pace + by_permits > 0.0).then_some(by_permits > by_pace)
    })
}

/// Key that had all permits of its limit lately, some of them at other gateways.
pub(crate) fn full_key<'r>(recent: &Recent<'r>, zone: &ZoneSample) -> Option<&'r FullKey> {
    recent.latest_or_before(zone, |it| it.full_key.as_ref())
}

/// Sentence for the holders of a key's permits.
pub(crate) fn whereabouts(full: &FullKey) -> String {
    let (key, all, here) = (&full.key, whole(full.of), whole(full.here));
    let others = whole(full.elsewhere.saturating_sub(full.withheld));
    if full.withheld > 0 {
        let (withheld, is) = (whole(full.withheld), is(full.withheld));
        return format!(
            "Of {all} permits of {key}, {withheld} {is} withheld for a gateway that has vanished, as its requests may still run; {here} run here, {others} at other gateways."
        );
    }
    format!("Of {all} permits of {key}, {here} are in use here, {others} at other gateways.")
}

/// Remedy for a key whose permits are all used or withheld.
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
