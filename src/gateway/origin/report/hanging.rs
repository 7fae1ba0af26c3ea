//! Rule of the headline for origins that do not respond, or respond clearly later than usual.
//!
//! An origin *hangs* if it has requests and has not responded for a while. A request is *late* if
//! it waits much longer than usual for its response (`unanswered`).

use super::sample::{OriginSample, Unanswered, Usual};
use crate::gate::report::permits::held_by;
use crate::status::headline::finding::{Cause, Finding, Severity};
use crate::status::headline::recent::Recent;
use crate::status::headline::words::{count, part, seconds, waiting};

/// Time without a response from which an origin hangs, in seconds.
const MIN_SILENCE: f64 = 3.0;
/// Minimum number of requests, with those that wait at the gate, of an origin that hangs.
const MIN_REQUESTS: u64 = 3;
/// Number of unanswered requests from which silence is unusual at any origin.
const MANY: u64 = 10;
/// Minimum number of late requests for a headline, if other requests get responses.
const MIN_LATE: u64 = 5;
/// Number of sampled seconds after which it is known how many requests are usually late.
///
/// Some requests, such as long polls, are always late.
const SECONDS_FOR_LATE: u64 = 60;
/// Number of sampled seconds after which the usual latency is known.
const SECONDS_FOR_LATENCY: u64 = 10;
/// Minimum latency that counts as slow, in seconds.
const SLOW: f64 = 0.5;
/// Minimum multiple of the usual latency that counts as slow.
const SLOWER: f64 = 3.0;
/// Minimum number of responses from which a latency is measured.
const MIN_ANSWERS: u64 = 6;

/// Rule: an origin hangs or is slow.
pub(crate) fn hangs(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref();
    let backs_off = gate.and_then(|gate| gate.backing_off.as_ref());
    // The headlines of these causes say more.
    if backs_off.is_some_and(|why| !why.shadow) || gate.is_some_and(|it| it.outage.is_some()) {
        return None;
    }
    match origin.unanswered.as_ref() {
        Some(it) if is_silent(recent, origin, it) => Some(report_silence(origin, it)),
        Some(it) if are_late(origin, it) => Some(report_lateness(origin, it)),
        _ => report_slowness(recent, origin),
    }
}

/// Returns whether an origin with requests has not responded for a while.
fn is_silent(recent: &Recent<'_>, origin: &OriginSample, unanswered: &Unanswered) -> bool {
    let depth = origin.gate.as_ref().map_or(0, |gate| gate.depth);
    let is_unusual = match &origin.usual {
        Some(usual) => {
            unanswered.late > 0
                && (unanswered.requests >= MANY || unanswered.oldest >= usual.longest)
        }
        None => unanswered.late > 0 && unanswered.late + depth >= MIN_REQUESTS,
    };
    unanswered.silence >= MIN_SILENCE
        && unanswered.requests + depth >= MIN_REQUESTS
        && is_unusual
        && recent.ended_at_origin(origin) == 0
}

/// Returns whether more requests than usual are late, while others get responses.
fn are_late(origin: &OriginSample, unanswered: &Unanswered) -> bool {
    let Unanswered { late, requests, .. } = *unanswered;
    let usual = origin.usual.filter(|usual| usual.span >= SECONDS_FOR_LATE);
    usual.is_some_and(|usual| late >= MIN_LATE && late * 2 >= requests && late > 3 * usual.late)
}

/// Finding for an origin that does not respond at all.
fn report_silence(origin: &OriginSample, unanswered: &Unanswered) -> Finding {
    let name = &origin.name;
    let depth = origin.gate.as_ref().map_or(0, |gate| gate.depth);
    let gate_sentence = (depth > 0).then(|| format!(" {} at its gate.", waiting(depth)));
    let holder_sentence = held_by(origin);
    let usual_latency = origin.usual.map(usual_sentence);
    Finding {
        weight: part(unanswered.requests, 1),
        title: format!(
            "Origin {name} has answered nothing for {}: it has {}, the oldest for {}",
            seconds(unanswered.silence),
            count(unanswered.requests, "request"),
            seconds(unanswered.oldest)
        ),
        evidence: format!(
            "{}{}{}",
            usual_latency.unwrap_or("What is usual for it is not known yet.".to_owned()),
            gate_sentence.unwrap_or_default(),
            holder_sentence.unwrap_or_default()
        ),
        remedy: format!(
            "Find out what {name} waits for: its own log, its database, its threads. More requests at once would not help."
        ),
        ..Finding::about(name, Cause::OriginHangs, Severity::Bad)
    }
}

/// Finding for late requests while others get responses.
fn report_lateness(origin: &OriginSample, unanswered: &Unanswered) -> Finding {
    let name = &origin.name;
    Finding {
        weight: part(unanswered.late, unanswered.requests),
        title: format!(
            "Origin {name} leaves {} without an answer, the oldest for {}",
            count(unanswered.late, "request"),
            seconds(unanswered.oldest)
        ),
        evidence: origin.usual.map_or(String::new(), usual_sentence)
            + &held_by(origin).unwrap_or_default(),
        remedy: format!(
            "Find out what these requests wait for, in the log of {name}. More requests at once would not help."
        ),
        ..Finding::about(name, Cause::OriginHangs, Severity::Warn)
    }
}

/// Latest and usual latency, if all of the last seconds are clearly slower than usual.
pub(crate) fn slower(recent: &Recent<'_>, origin: &OriginSample) -> Option<(f64, Usual)> {
    let is_known = |usual: &Usual| usual.span >= SECONDS_FOR_LATENCY;
    let usual = origin.usual.filter(is_known)?;
    let bound = SLOW.max(SLOWER * usual.p95);
    let latency = recent.latest(origin, |it| it.latency.p95)?;
    let is_fast = |it: &OriginSample| it.latency.p95.is_some_and(|p95| p95 < bound);
    let fast_seconds = recent.total(origin, |it| is_fast(it).into());
    (fast_seconds == 0 && recent.ended_at_origin(origin) >= MIN_ANSWERS).then_some((latency, usual))
}

/// Finding for an origin that is slower than usual; `None` if it is not.
fn report_slowness(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let (latency, usual) = slower(recent, origin)?;
    let answers = recent.ended_at_origin(origin);
    let name = &origin.name;
    Some(Finding {
        weight: latency,
        title: format!(
            "Origin {name} is slower than usual: 95 % of its answers begin within {}, before within {}",
            seconds(latency),
            seconds(usual.p95)
        ),
        evidence: format!(
            "{} in the last {:.0} s.",
            count(answers, "answer"),
            recent.seconds()
        ),
        remedy: format!(
            "Find out what {name} waits for, in its own log, before it gets more requests."
        ),
        ..Finding::about(name, Cause::OriginHangs, Severity::Warn)
    })
}

/// Sentence for the usual latency.
fn usual_sentence(usual: Usual) -> String {
    format!(
        "Usually 95 % of its answers begin within {}.",
        seconds(usual.p95)
    )
}
