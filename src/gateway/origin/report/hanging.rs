//! Rule for origins that do not respond, or respond clearly later than usual.

use super::sample::{OriginSample, Unanswered, Usual};
use crate::gate::report::permits::held_by;
use crate::status::headline::finding::{Cause, Finding, Severity};
use crate::status::headline::recent::Recent;
use crate::status::headline::words::{count, part, seconds, waiting};

/// Time without a response from which an origin hangs, in seconds.
const SILENT: f64 = 3.0;
/// Minimum number of requests, waiters included, of an origin that hangs.
const FEW: u64 = 3;
/// Number of unanswered requests from which silence is unusual at any origin.
const MANY: u64 = 10;
/// Minimum number of requests that are late before a headline reports it, if others get responses.
const LATE: u64 = 5;
/// Number of sampled seconds after which it is known how many requests are usually late.
///
/// Some requests, such as long polls, are always late.
const KNOWN_LATE: u64 = 60;
/// Number of sampled seconds after which the usual latency is known.
const KNOWN: u64 = 10;
/// Minimum latency that counts as slow, in seconds.
const SLOW: f64 = 0.5;
/// Minimum multiple of the usual latency that counts as slow.
const SLOWER: f64 = 3.0;
/// Minimum number of responses from which a latency is measured.
const ANSWERS: u64 = 6;

/// Rule: an origin hangs or is slow.
pub(crate) fn hangs(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref();
    let backs_off = gate.and_then(|gate| gate.backing_off.as_ref());
    // These causes say the same, and more.
    if backs_off.is_some_and(|why| !why.shadow) || gate.is_some_and(|it| it.outage.is_some()) {
        return None;
    }
    let unanswered = origin.unanswered.as_ref();
    let silent = unanswered.filter(|it| is_silent(recent, origin, it));
    if let Some(silent) = silent {
        return Some(silence(origin, silent));
    }
    let late = unanswered.filter(|it| are_late(origin, it));
    late.map(|it| lateness(origin, it))
        .or_else(|| slowness(recent, origin))
}

/// Returns whether an origin with requests has not responded for a while.
fn is_silent(recent: &Recent<'_>, origin: &OriginSample, it: &Unanswered) -> bool {
    let depth = origin.gate.as_ref().map_or(0, |gate| gate.depth);
    let is_unusual = match &origin.usual {
        Some(usual) => it.late > 0 && (it.requests >= MANY || it.oldest >= usual.longest),
        None => it.late > 0 && it.late + depth >= FEW,
    };
    it.silence >= SILENT
        && it.requests + depth >= FEW
        && is_unusual
        && recent.ended_at_origin(origin) == 0
}

/// Returns whether more requests than usual are late, while others get responses.
fn are_late(origin: &OriginSample, it: &Unanswered) -> bool {
    let usual = origin.usual.filter(|usual| usual.span >= KNOWN_LATE);
    usual.is_some_and(|usual| {
        it.late >= LATE && it.late * 2 >= it.requests && it.late > 3 * usual.late
    })
}

/// Finding for an origin that does not respond at all.
fn silence(origin: &OriginSample, it: &Unanswered) -> Finding {
    let name = &origin.name;
    let depth = origin.gate.as_ref().map_or(0, |gate| gate.depth);
    let gate = (depth > 0).then(|| format!(" {} at its gate.", waiting(depth)));
    let holder = held_by(origin);
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
            origin
                .usual
                .map_or("What is usual for it is not known yet.".to_owned(), before),
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
fn lateness(origin: &OriginSample, it: &Unanswered) -> Finding {
    let name = &origin.name;
    Finding {
        weight: part(it.late, it.requests),
        title: format!(
            "Origin {name} leaves {} without an answer, the oldest for {}",
            count(it.late, "request"),
            seconds(it.oldest)
        ),
        evidence: origin.usual.map_or(String::new(), before) + &held_by(origin).unwrap_or_default(),
        remedy: format!(
            "Find out what these requests wait for, in the log of {name}. More requests at once would not help."
        ),
        ..Finding::about(name, Cause::OriginHangs, Severity::Warn)
    }
}

/// Latest and usual latency, if all of the last seconds are clearly slower than usual.
pub(crate) fn slower(recent: &Recent<'_>, origin: &OriginSample) -> Option<(f64, Usual)> {
    let usual = origin.usual.filter(|usual| usual.span >= KNOWN)?;
    let bound = SLOW.max(SLOWER * usual.p95);
    let takes = recent.latest(origin, |it| it.latency.p95)?;
    let is_fast = |it: &OriginSample| it.latency.p95.is_some_and(|p95| p95 < bound);
    let was_fast = recent.total(origin, |it| is_fast(it).into()) > 0;
    (!was_fast && recent.ended_at_origin(origin) >= ANSWERS).then_some((takes, usual))
}

/// Finding for an origin that is slower than usual.
fn slowness(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let (takes, usual) = slower(recent, origin)?;
    let answers = recent.ended_at_origin(origin);
    let name = &origin.name;
    Some(Finding {
        weight: takes,
        title: format!(
            "Origin {name} is slower than usual: 95 % of its answers begin within {}, before within {}",
            seconds(takes),
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
fn before(usual: Usual) -> String {
    format!(
        "Usually 95 % of its answers begin within {}.",
        seconds(usual.p95)
    )
}
