//! Rule of the headline for a gate that backs off because its origin fails or is slow.
//!
//! A gate that *backs off* lowers its rate or its permits. `in_vain`: responses did not get faster
//! with fewer permits. `kept`: therefore all permits are back. `grows`: responses are in time
//! again, and the permits grow back.

use limit::Rate;

use super::rules::{rate_pace, rejected_at_gate};
use super::sample::GateSample;
use crate::origin::report::sample::OriginSample;
use crate::status::headline::finding::{Cause, Finding, Severity};
use crate::status::headline::recent::{Recent, most, of_class, sum};
use crate::status::headline::words::{listed, part, percent, seconds, sentence};
use crate::status::plain::Plain;

/// Minimum share of an origin's requests without a good response that counts as trouble.
const TROUBLE: f64 = 0.05;
/// Minimum multiple of the usual latency that counts as slower.
const SLOWER: f64 = 1.5;

/// Rule: a gate backs off.
pub(crate) fn backing_off(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref()?;
    let why = gate.backing_off.as_ref().filter(|why| !why.shadow)?;
    let name = &origin.name;
    // What the gate lets through, as text; empty if the gate is only paused.
    let reduced = if why.kept {
        let permits = gate.max_in_flight.file;
        let back = permits.map_or("all permits".to_owned(), |it| format!("all {it} permits"));
        format!("fewer at once did not make {name} faster; {back} are back")
    } else {
        listed(&reduced_limits(gate))
    };
    // Whether the origin is still in trouble or slow, or recovers.
    let trouble = trouble(recent, origin);
    let slower = slower(recent, origin, why.usual);
    // Permits also grow while there are no responses, which says nothing about the origin.
    let has_answers = recent.latest(origin, |it| it.latency.p50).is_some();
    let is_fast = trouble.is_none() && has_answers && slower.is_none();
    let is_in_time = is_fast && grew(recent, origin);
    let recovers = is_in_time && why.reason.as_str() == "slow";
    // Of several facts, the title has the one that users notice most.
    let title = if let Some((share, outcome)) = trouble {
        let causes = slower.into_iter().chain(Some(reduced.clone()));
        let causes: Vec<_> = causes.filter(|it| !it.is_empty()).collect();
        let because = match causes.as_slice() {
            [] => format!("the gate of {name} backs off"),
            causes => causes.join("; "),
        };
        format!("{} of requests {outcome}: {because}", percent(share))
    } else if recovers {
        format!("Origin {name} answers in time again; its gate grows back: {reduced}")
    } else if why.kept {
        sentence(&reduced).trim_end_matches('.').to_owned()
    } else {
        format!("The gate of {name} backs off")
    };
    let cut = match why.reason.as_str() {
        "retry_after" => format!("{}.", why.text),
        _ => format!("At the last cut, {}.", why.text),
    };
    let evidence = if why.kept {
        "Its answers are slow, however many requests run at once.".to_owned()
    } else if reduced.is_empty() || recovers {
        cut
    } else {
        format!("{cut} It lets {reduced} through.")
    };
    let remedy = if why.kept || why.in_vain {
        "Find out what the origin waits for. If answers are to take so long, raise `slow`."
    } else if why.grows || is_in_time {
        "Nothing is to be done: the origin gets its permits back as long as it answers in time."
    } else {
        "The origin gets its full rate back once nearly all its answers are in time. More rate would not help."
    };
    let trouble_share = trouble.map_or(0.0, |(share, _)| share);
    let severity = if recovers {
        Severity::Fine
    } else {
        Severity::bad_if(trouble_share >= 0.5)
    };
    Some(Finding {
        weight: trouble_share,
        title,
        evidence,
        remedy: remedy.to_owned(),
        count: sum(&gate.rejected) + sum(&origin.errors) + of_class(&origin.codes, "5xx"),
        ..Finding::about(name, Cause::BackingOff, severity)
    })
}

/// Share of an origin's requests that get no good response, and what they get, as text.
///
/// `None`: the share is below [`TROUBLE`].
fn trouble(recent: &Recent<'_>, origin: &OriginSample) -> Option<(f64, &'static str)> {
    let rejected = rejected_at_gate(recent, origin);
    let codes = recent.counts(origin, |it| Some(&it.codes));
    let failed = recent.total(origin, |it| sum(&it.errors));
    let errors = failed + of_class(&codes, "5xx");
    let rejections = sum(&rejected);
    let requests = rejections + sum(&codes) + failed;
    let share = part(rejections + errors, requests);
    let outcome = match most(&rejected).map(Plain::as_str) {
        _ if errors > rejections => "get an error",
        // The status of these rejections is `reject_status`.
        Some("queue") => "are rejected",
        _ => "get 503",
    };
    (share >= TROUBLE).then_some((share, outcome))
}

/// Text for a latency that is clearly longer than usual, or for missing responses.
///
/// `usual`: mean latency before the back-off, in seconds.
fn slower(recent: &Recent<'_>, origin: &OriginSample, usual: Option<f64>) -> Option<String> {
    let (name, usual) = (&origin.name, usual?);
    let before = seconds(usual);
    match recent.latest(origin, |it| it.latency.p50) {
        Some(latency) if latency > SLOWER * usual => Some(format!(
            "{name} takes {} ({before} before)",
            seconds(latency)
        )),
        // All responses take longer than these seconds.
        None if origin.in_flight > 0 => Some(format!(
            "{name} has answered nothing for {:.0} s ({before} before)",
            recent.seconds()
        )),
        _ => None,
    }
}

/// Returns whether the permits of a gate grow, or grew a moment ago.
///
/// A few slow responses to earlier requests may stop the growth for a moment.
fn grew(recent: &Recent<'_>, origin: &OriginSample) -> bool {
    let grows = |it: &OriginSample| it.gate.as_ref()?.backing_off.as_ref().map(|it| it.grows);
    recent.lately(origin, |it| grows(it).unwrap_or_default().into()) > 0
}

/// Limits of a gate that are lower than in the file or in the override.
fn reduced_limits(gate: &GateSample) -> Vec<String> {
    let overridden = gate.overridden.as_ref().map(|it| &it.values);
    let rate = overridden.and_then(|it| it.rate);
    let rate = rate.map(Rate::per_second).or(gate.rate.file);
    let permits = overridden.and_then(|it| it.max_in_flight);
    let permits = permits.map(|it| it.get() as u64);
    let permits = permits.or(gate.max_in_flight.file);
    let lower_rate = gate.rate.now.zip(rate).filter(|(now, full)| now < full);
    let lower_permits = gate.max_in_flight.now.zip(permits);
    let lower_permits = lower_permits.filter(|(now, full)| now < full);
    let pace = |rate| rate_pace(gate, rate);
    let rate = lower_rate.map(|(now, full)| format!("{} of {}", pace(now), pace(full)));
    let permits = lower_permits.map(|(now, full)| format!("{now} of {full} permits"));
    rate.into_iter().chain(permits).collect()
}
