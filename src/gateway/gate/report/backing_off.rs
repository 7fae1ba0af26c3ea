//! Rule for a gate that backs off because its origin fails or is slow.

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

/// Rule: a gate backs off.
pub(crate) fn backing_off(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref()?;
    let why = gate.backing_off.as_ref().filter(|why| !why.shadow)?;
    let name = &origin.name;
    let less = if why.kept {
        let permits = gate.max_in_flight.file;
        let back = permits.map_or("all permits".to_owned(), |it| format!("all {it} permits"));
        format!("fewer at once did not make {name} faster; {back} are back")
    } else {
        listed(&less(gate))
    };
    let trouble = trouble(recent, origin);
    let slower = slower(recent, origin, why.usual);
    // Permits also grow while there are no responses, which says nothing about the origin.
    let answers = trouble.is_none() && recent.latest(origin, |it| it.latency.p50).is_some();
    let in_time = answers && slower.is_none() && grew(recent, origin);
    let recovers = in_time && why.reason.as_str() == "slow";
    let title = if let Some((share, what)) = trouble {
        let causes: Vec<_> = slower.into_iter().chain(Some(less.clone())).collect();
        let causes: Vec<_> = causes.iter().filter(|it| !it.is_empty()).cloned().collect();
        let because = match causes.as_slice() {
            [] => format!("the gate of {name} backs off"),
            causes => causes.join("; "),
        };
        format!("{} of requests {what}: {because}", percent(share))
    } else if recovers {
        format!("Origin {name} answers in time again; its gate grows back: {less}")
    } else if why.kept {
        sentence(&less).trim_end_matches('.').to_owned()
    } else {
        format!("The gate of {name} backs off")
    };
    let evidence = match (why.kept, why.reason.as_str(), less.as_str()) {
        (true, ..) => "Its answers are slow, however many requests run at once.".to_owned(),
        (_, "retry_after", "") => format!("{}.", why.text),
        (_, "retry_after", less) => format!("{}. It lets {less} through.", why.text),
        (_, _, less) if recovers || less.is_empty() => format!("At the last cut, {}.", why.text),
        (_, _, less) => format!("At the last cut, {}. It lets {less} through.", why.text),
    };
    let remedy = if why.kept || why.in_vain {
        "Find out what the origin waits for. If answers are to take so long, raise `slow`."
    } else if why.grows || in_time {
        "Nothing is to be done: the origin gets its permits back as long as it answers in time."
    } else {
        "The origin gets its full rate back once nearly all its answers are in time. More rate would not help."
    };
    let share = trouble.map_or(0.0, |(share, _)| share);
    let severity = if recovers {
        Severity::Fine
    } else {
        Severity::bad_if(share >= 0.5)
    };
    Some(Finding {
        weight: share,
        title,
        evidence,
        remedy: remedy.to_owned(),
        count: sum(&gate.rejected) + sum(&origin.errors) + of_class(&origin.codes, "5xx"),
        ..Finding::about(name, Cause::BackingOff, severity)
    })
}

/// Share of an origin's requests that get no good response, and their outcome instead.
fn trouble(recent: &Recent<'_>, origin: &OriginSample) -> Option<(f64, &'static str)> {
    let rejected = rejected_at_gate(recent, origin);
    let codes = recent.counts(origin, |it| Some(&it.codes));
    let failed = recent.total(origin, |it| sum(&it.errors));
    let errors = failed + of_class(&codes, "5xx");
    let all = sum(&rejected) + sum(&codes) + failed;
    let share = part(sum(&rejected) + errors, all);
    let what = match most(&rejected).map(Plain::as_str) {
        _ if errors > sum(&rejected) => "get an error",
        // Its status is `reject_status`.
        Some("queue") => "are rejected",
        _ => "get 503",
    };
    (share >= TROUBLE).then_some((share, what))
}

/// Sentence for a latency that is clearly longer than usual, or for missing responses.
fn slower(recent: &Recent<'_>, origin: &OriginSample, usual: Option<f64>) -> Option<String> {
    let (name, usual) = (&origin.name, usual?);
    let before = seconds(usual);
    let Some(takes) = recent.latest(origin, |it| it.latency.p50) else {
        // All responses take longer than these seconds.
        let span = recent.seconds();
        return (origin.in_flight > 0)
            .then(|| format!("{name} has answered nothing for {span:.0} s ({before} before)"));
    };
    let now = seconds(takes);
    (takes > 1.5 * usual).then(|| format!("{name} takes {now} ({before} before)"))
}

/// Returns whether the permits of a gate grow, or grew a moment ago.
///
/// A few slow responses to earlier requests stop the growth for one window.
fn grew(recent: &Recent<'_>, origin: &OriginSample) -> bool {
    let grows = |it: &OriginSample| it.gate.as_ref()?.backing_off.as_ref().map(|it| it.grows);
    recent.lately(origin, |it| grows(it).unwrap_or_default().into()) > 0
}

/// Settings of a gate that are below the configured ones, or replace them.
fn less(gate: &GateSample) -> Vec<String> {
    let overridden = gate.overridden.as_ref().map(|it| &it.values);
    let rate = overridden.and_then(|it| it.rate);
    let whole_rate = rate.map(Rate::per_second).or(gate.rate.file);
    let permits = overridden.and_then(|it| it.max_in_flight);
    let permits = permits.map(|most| most.get() as u64);
    let whole_permits = permits.or(gate.max_in_flight.file);
    let rate = match (gate.rate.now, whole_rate) {
        (Some(now), Some(file)) if now < file => Some(format!(
            "{} of {}",
            rate_pace(gate, now),
            rate_pace(gate, file)
        )),
        _ => None,
    };
    let permits = match (gate.max_in_flight.now, whole_permits) {
        (Some(now), Some(file)) if now < file => Some(format!("{now} of {file} permits")),
        _ => None,
    };
    rate.into_iter().chain(permits).collect()
}
