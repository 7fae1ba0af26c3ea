//! Rule for origins that do not respond, or respond clearly later than usual.

use super::sample::{OriginSample, Unanswered, Usual};
use crate::gate::report::permits::held_by;
use crate::status::headline::finding::{Cause, Finding, Severity};
use crate::status::headline::recent::Recent;
use crate::status::headline::words::{count, part, seconds, waiting};

/// Time without a response from which an origin hangs, in seconds.
const MIN_SILENCE: f64 = 3.0;
/// Minimum number of requests, waiters included, of an origin that hangs.
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
        Some(it) if is_silent(recent, origin, it) => Some(find_silence(origin, it)),
        Some(it) if are_late(origin, it) => Some(find_lateness(origin, it)),
        _ => find_slowness(recent, origin),
    }
}

/// Returns whether an origin with requests has not responded for a while.
fn is_silent(recent: &Recent<'_>, origin: &OriginSample, it: &Unanswered) -> bool {
    let depth = origin.gate.as_ref().map_or(0, |gate| gate.depth);
    let is_unusual = match &origin.usual {
        Some(usual) => it.late > 0 && (it.requests >= MANY || it.oldest >= usual.longest),
        None => it.late > 0 && it.late + depth >= MIN_REQUESTS,
    };
    it.silence >= MIN_SILENCE
        && it.requests + depth >= MIN_REQUESTS
        && is_unusual
        && recent.ended_at_origin(origin) == 0
}

/// Returns whether more requests than usual are late, while others get responses.
fn are_late(origin: &OriginSample, it: &Unanswered) -> bool {
    let usual = origin.usual.filter(|usual| usual.span >= SECONDS_FOR_LATE);
    usual.is_some_and(|usual| {
        it.late >= MIN_LATE && it.late * 2 >= it.requests && it.late > 3 * usual.late
    })
}

/// Finding for an origin that does not respond at all.
fn find_silence(origin: &OriginSample, it: &Unanswered) -> Finding {
    let name = &origin.name;
    let depth = origin.gate.as_ref().map_or(0, |gate| gate.depth);
    let gate = (depth > 0).then(|| format!(" {} at its gate.", waiting(depth)));
    let holder = held_by(origin);
    let usual_latency = origin.usual.map(usual_sentence);
    Finding {
        weight: part(it.requests, 1),
        title: format!(
            "Origin {name} has answered nothing for {}: it has {}, the oldest for {}",
            seconds(it.silence),
            count(it.requests, "request"),
            seconds(it.oldest)
        ),
        evidence: format!(
            "{}{}{}",
            usual_latency.unwrap_or("What is usual for it is not known yet.".to_owned()),
            gate.unwrap_or_default(),
            holder.unwrap_or_default()
        ),
        remedy: format!(
            "Find out what {name} waits for: its own log, its database, its threads. More requests at once would not help."
        ),
        ..Finding::about(name, Cause::OriginHangs, Severity::Bad)
    }
}

/// Finding for late requests while others get responses.
fn find_lateness(origin: &OriginSample, it: &Unanswered) -> Finding {
    let name = &origin.name;
    Finding {
        weight: part(it.late, it.requests),
        title: format!(
            "Origin {name} leaves {} without an answer, the oldest for {}",
            count(it.late, "request"),
            seconds(it.oldest)
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
    let usual = origin
        .usual
        .filter(|usual| usual.span >= SECONDS_FOR_LATENCY)?;
    let bound = SLOW.max(SLOWER * usual.p95);
    let latency = recent.latest(origin, |it| it.latency.p95)?;
    let is_fast = |it: &OriginSample| it.latency.p95.is_some_and(|p95| p95 < bound);
    let was_fast = recent.total(origin, |it| is_fast(it).into()) > 0;
    (!was_fast && recent.ended_at_origin(origin) >= MIN_ANSWERS).then_some((latency, usual))
}

/// Finding for an origin that is slower than usual.
fn find_slowness(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
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
