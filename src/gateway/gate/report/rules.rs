//! Rules of the headline for the gates of origins: a network that crowds one, rejections, queues.
//!
//! A rule reads the samples of the last seconds, and returns a finding if something is wrong: what,
//! the evidence, and the remedy. `permits` finds who has the permits that requests wait for.
//! `backing_off` has the rule for a gate that backs off.

use std::collections::BTreeMap;

use super::permits::{PermitShortage, held_by, permit_shortage, slow_client, waits_for_permits};
use super::sample::GateSample;
use crate::origin::report::sample::OriginSample;
use crate::status::headline::finding::{Cause, Finding, Severity, Suspicion};
use crate::status::headline::recent::{Recent, most, sum};
use crate::status::headline::words::{pace, pace_of_units, part, seconds, waiting, whole};
use crate::status::plain::Plain;

/// Wait from which a queue is worth a warning, in seconds.
pub(crate) const LONG_WAIT: f64 = 1.0;

/// Returns whether an operator has paused the gate.
fn is_paused(gate: &GateSample) -> bool {
    gate.overridden.as_ref().is_some_and(|it| it.values.pause)
}

/// Rule: many clients of one network crowd a gate that has no shares for keys.
pub(crate) fn crowd(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let crowd = origin.gate.as_ref()?.crowd.as_ref()?;
    let (name, network) = (&origin.name, &crowd.network);
    let [addresses, requests, all_requests] =
        [crowd.addresses, crowd.requests, crowd.of].map(|count| whole(count as u64));
    Some(Finding {
        weight: part(crowd.requests as u64, 1),
        title: format!("{addresses} addresses of {network} crowd the gate of {name}"),
        evidence: format!(
            "{requests} of the last {all_requests} requests that waited there or were rejected are theirs. Without `share`, all clients are in one queue."
        ),
        remedy: format!(
            "Name a zone by `$remote_addr` as `share` of {name}, so that each client has its own queue. `new_keys` in that zone bounds how many new addresses get one; `deny` of the route shuts the network out."
        ),
        ..Finding::about(name, Cause::KeyFlood, Severity::Warn)
    })
}

/// Rule: a gate rejects requests.
pub(crate) fn rejecting_at_gate(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref()?;
    let name = &origin.name;
    let rejected = rejected_at_gate(recent, origin);
    let rejections = sum(&rejected);
    let requests = rejections + recent.ended_at_origin(origin);
    let reason = most(&rejected)?.as_str();
    // Meaning of the label of the most frequent reason.
    let why = match reason {
        "queue" => "a key has as many requests waiting as `queue` allows",
        "max_queue" => "as many requests wait as `max_queue` allows",
        "timeout" => "requests waited, or would wait, longer than `queue_timeout` allows",
        "max_wait" => "requests would wait longer than `max_wait` allows",
        "outage" => "requests waited as long as `hold` allows for an origin that is down",
        _ => "the gateway is stopping",
    };
    // After the rejections, the deepest key is another client.
    let deepest = gate.deepest.first().filter(|_| !gate.rejected.is_empty());
    // Without `share`, all requests have the same empty key.
    let deepest = deepest.filter(|it| !it.key.as_str().is_empty());
    let deepest = deepest.map_or(String::new(), |it| {
        let (key, depth) = (&it.key, whole(it.depth));
        format!(" {key} has {depth} waiting.")
    });
    let setting = binding_setting(recent, origin, gate);
    let is_stopped = is_paused(gate) || reason == "outage";
    let shortage = permit_shortage(recent, origin, gate).filter(|_| !is_stopped);
    let sentence = |it: &PermitShortage| format!(" {}", it.evidence);
    let shortage_evidence = shortage.as_ref().map_or(String::new(), sentence);
    let slow_client = slow_client(recent, origin).filter(|_| !is_stopped);
    let (slow_client_evidence, client_remedy) = slow_client.unzip();
    let slow_client_evidence = slow_client_evidence.unwrap_or_default();
    let other_remedy = client_remedy.or(shortage.and_then(|it| it.remedy));
    let suspicion = suspicion(is_stopped || other_remedy.is_some());
    let remedy = match (reason, other_remedy) {
        _ if is_paused(gate) => "Resume it by undoing the override.".to_owned(),
        ("outage", _) => "Bring the origin back. More rate would not help.".to_owned(),
        (_, Some(remedy)) => remedy,
        ("queue", _) => format!(
            "A client sends more than its share. If the origin can do more, raise its {setting}."
        ),
        ("timeout", _) => format!(
            "If the origin can do more, raise its {setting}; if clients may wait longer, raise `queue_timeout`; otherwise lower `queue` or `max_queue`."
        ),
        _ => format!(
            "If the origin can do more, raise its {setting}; otherwise limit clients earlier, in a zone."
        ),
    };
    // One client may cause a full `queue`.
    let severity = Severity::bad_if(reason != "queue" && rejections * 2 >= requests);
    Some(Finding {
        weight: part(rejections, 1),
        title: format!(
            "The gate of {name} rejects {}",
            pace(part(rejections, 1) / recent.seconds())
        ),
        evidence: format!(
            "{}: {why}.{slow_client_evidence}{deepest}{shortage_evidence}",
            recent.share_of(rejections, requests, "request")
        ),
        remedy,
        suspicion,
        count: sum(&gate.rejected),
        ..Finding::about(name, Cause::Rejecting, severity)
    })
}

/// Returns the part of the file's last change in a finding.
///
/// `Suspected`: the remedy begins with reverting the change. `Named`: the change is only shown as
/// evidence, because requests wait for something that no field of the file sets
/// (`has_other_cause`).
fn suspicion(has_other_cause: bool) -> Suspicion {
    if has_other_cause {
        Suspicion::Named
    } else {
        Suspicion::Suspected
    }
}

/// Setting of a gate that requests wait for, with its value.
///
/// Raising another setting does not help.
pub(crate) fn binding_setting(
    recent: &Recent<'_>,
    origin: &OriginSample,
    gate: &GateSample,
) -> String {
    let rate = gate.rate.file;
    let rate = rate.map(|it| format!("`rate`, which is {}", rate_pace(gate, it)));
    let permits = gate.max_in_flight.file.map(|it| {
        let scope = match gate.permits {
            Some(_) => " for all gateways",
            None => "",
        };
        format!("`max_in_flight`, which is {it}{scope}")
    });
    // The setting that requests wait for, or the only one that the file has.
    match (waits_for_permits(recent, origin), rate, permits) {
        (Some(true), _, Some(permits)) | (_, None, Some(permits)) => permits,
        (Some(false), Some(rate), _) | (_, Some(rate), None) => rate,
        // The gate has both, and no request has waited for either.
        _ => "`rate` or `max_in_flight`".to_owned(),
    }
}

/// Rule: requests wait at a gate.
pub(crate) fn waiting_at_gate(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref().filter(|gate| gate.depth > 0)?;
    if gate.outage.is_some() || is_paused(gate) {
        return None;
    }
    let name = &origin.name;
    // `raise`: the advice to raise a limit, which holds if there is no other remedy.
    let (cause, other_remedy, raise) = if let Some(lack) = permit_shortage(recent, origin, gate) {
        let raise = advise_more_permits(origin, gate, " for all gateways");
        (lack.evidence, lack.remedy, raise)
    } else {
        let (evidence, raise) = explain_own_limits(origin, gate);
        (evidence, None, raise)
    };
    let (slow_client_evidence, client_remedy) = slow_client(recent, origin).unzip();
    let other_remedy = client_remedy.or(other_remedy);
    let suspicion = suspicion(other_remedy.is_some());
    let remedy = other_remedy.unwrap_or(raise);
    let holder_evidence = slow_client_evidence.or_else(|| held_by(origin));
    let holder_evidence = holder_evidence.unwrap_or_default();
    let wait = gate.wait_p99.map_or(String::new(), |wait| {
        format!(" The longest waits take {}.", seconds(wait))
    });
    let severity = if waits_long(recent, origin) {
        Severity::Warn
    } else {
        Severity::Fine
    };
    Some(Finding {
        weight: part(gate.depth, 1),
        title: format!("{} at the gate of {name}", waiting(gate.depth)),
        evidence: cause + &holder_evidence + &wait,
        remedy,
        suspicion,
        ..Finding::about(name, Cause::Waiting, severity)
    })
}

/// Returns whether requests wait long at a gate.
///
/// While no request departs, there is no wait to measure. Then a queue that was never empty in the
/// last seconds counts as a long wait.
fn waits_long(recent: &Recent<'_>, origin: &OriginSample) -> bool {
    let gate = |it: &OriginSample| it.gate.as_ref().map(|gate| (gate.depth, gate.wait_p99));
    let wait = recent.longest(origin, |it| gate(it)?.1);
    let seconds_without_queue = recent.total(origin, |it| {
        u64::from(gate(it).is_none_or(|(depth, _)| depth == 0))
    });
    wait.map_or(seconds_without_queue == 0, |wait| wait >= LONG_WAIT)
}

/// Explains a queue at this gateway's own limits, not at a shared pool.
///
/// Returns the evidence, and the advice to raise a limit.
fn explain_own_limits(origin: &OriginSample, gate: &GateSample) -> (String, String) {
    let (name, in_flight) = (&origin.name, origin.in_flight);
    let own_maximum = gate.max_in_flight.now.filter(|_| gate.permits.is_none());
    // Number of permits in use, and their maximum.
    let permits_in_use = match (&gate.permits, own_maximum) {
        (Some(permits), _) => Some((permits.in_use, permits.held)),
        (None, most) => most.map(|most| (in_flight, most)),
    };
    let reached_maximum = own_maximum.filter(|most| in_flight >= *most);
    match (reached_maximum, gate.rate.now) {
        (Some(most), _) => (
            format!("All {most} permits at the origin are taken."),
            advise_more_permits(origin, gate, ""),
        ),
        (None, Some(rate)) => {
            let permits = permits_in_use.map_or(String::new(), |(used, most)| {
                format!(" More `max_in_flight` would not help: {used} of {most} permits are taken.")
            });
            (
                format!("They leave one by one, {}.", rate_pace(gate, rate)),
                format!(
                    "If {name} can take more, raise its `rate`, which is {}.{permits}",
                    rate_pace(gate, gate.rate.file.unwrap_or(rate))
                ),
            )
        }
        (None, None) => (String::new(), String::new()),
    }
}

/// Advice to raise the permits of an origin. `scope`: " for all gateways", or empty for this one.
fn advise_more_permits(origin: &OriginSample, gate: &GateSample, scope: &str) -> String {
    let most = gate.max_in_flight.now.unwrap_or_default();
    let rate = gate.rate.now;
    format!(
        "If {} can work on more requests at once, raise its `max_in_flight`, which is {most}{scope}.{}",
        origin.name,
        rate.map_or("", |_| " More of its `rate` would not help.")
    )
}

/// Rejections of an origin's gate, by reason.
pub(crate) fn rejected_at_gate(recent: &Recent<'_>, origin: &OriginSample) -> BTreeMap<Plain, u64> {
    recent.counts(origin, |it| it.gate.as_ref().map(|it| &it.rejected))
}

/// Formats a part of a gate's rate, in requests, or in units if requests have costs.
pub(crate) fn rate_pace(gate: &GateSample, per_second: f64) -> String {
    if gate.costs {
        pace_of_units(per_second)
    } else {
        pace(per_second)
    }
}
