//! The rules: pure, over the samples of the last seconds.
//!
//! Each rule finds what it is about; the first in the order of [`Cause`] becomes the headline, and
//! the others are named after it. Whatever an origin suffers from comes before all that advises
//! more rate.

mod advice;
mod certificates;
mod file;
mod floods;
mod full_key;
mod gate_overrides;
mod gates;
mod hanging;
mod holders;
mod leaving;
mod maintenance;
mod no_key;
mod origins;
mod places;
mod process;
mod rooms;
mod shared_key;
mod untrusted_proxy;
mod zones;

use self::certificates::certificates;
use self::file::{file_doubtful, file_error};
use self::floods::crowd;
use self::gate_overrides::{overridden_gate, paused_gate};
use self::gates::{alone, backing_off, holding, rejecting_at_gate, waiting_at_gate};
use self::hanging::hangs;
use self::leaving::{leaving, leaving_gate, leaving_origin};
use self::maintenance::maintenance;
use self::no_key::no_key;
use self::origins::{errors, failing, server_out};
use self::process::{connections_full, log_lost, no_descriptors, no_local_ports};
use self::rooms::{long_wait, overridden_room, paused_room, polls, stuck, turns_lost};
use self::untrusted_proxy::untrusted_proxy;
use self::zones::{key_flood, overridden, paused, rejecting, waiting};
use super::finding::{Cause, Finding, Severity, in_order};
use super::recent::{Recent, of_class, sum};
use super::words::{count, listed, pace, part, seconds, sentence, whole};
use crate::status::views::{Headline, OriginSample, Plain, Sample};

/// The headline before the second sample.
pub(super) fn looking() -> Headline {
    let finding = Finding {
        title: "Looking: the first seconds are being measured".to_owned(),
        ..Finding::new(Cause::Looking, Severity::None)
    };
    finding.into_headline(Vec::new())
}

/// The headline of the last seconds.
pub(super) fn headline(recent: &Recent<'_>) -> Headline {
    let Some(now) = recent.last() else {
        return looking();
    };
    let mut found = Vec::new();
    found.extend(connections_full(now));
    found.extend(no_descriptors(recent));
    found.extend(no_local_ports(recent));
    found.extend(log_lost(recent, now));
    found.extend(certificates(recent, now));
    found.extend(store_out(recent, now));
    found.extend(store_refuses(recent, now));
    found.extend(maintenance(now));
    for origin in &now.origins {
        let rules = [
            alone,
            holding,
            failing,
            hangs,
            errors,
            server_out,
            paused_gate,
            backing_off,
            crowd,
            leaving_origin,
            leaving_gate,
            rejecting_at_gate,
            waiting_at_gate,
            stuck,
            paused_room,
            turns_lost,
            long_wait,
            polls,
            overridden_gate,
            overridden_room,
        ];
        found.extend(rules.iter().filter_map(|rule| rule(recent, origin)));
    }
    for zone in &now.zones {
        let rules = [
            paused,
            key_flood,
            leaving,
            untrusted_proxy,
            rejecting,
            no_key,
            waiting,
            overridden,
        ];
        found.extend(rules.iter().filter_map(|rule| rule(recent, zone)));
    }
    found.extend(file_error(now));
    found.extend(file_doubtful(now));
    in_order(&mut found);
    let topics = found.iter().filter_map(Finding::topic).collect();
    let mut found = found.into_iter();
    let headline = match found.next() {
        Some(mut first) => {
            let advises = |field: &&str| first.remedy.contains(field);
            let more = ["`max_in_flight`", "`rate`", "`sessions`", "`admit`"];
            if more.iter().any(|field| advises(&field))
                && let Some(instead) = find_out_first(recent, now)
            {
                first.remedy = instead;
            }
            let others = found.map(|it| Plain::new(&it.title));
            let advised_rate = advice::advised(now, &first);
            Headline {
                advised_rate,
                ..first.into_headline(others.collect())
            }
        }
        None => calm(recent, now).into_headline(Vec::new()),
    };
    Headline {
        count: requests_of(now, &headline),
        is_of_zone: headline
            .about
            .as_ref()
            .is_some_and(|it| now.zone(it).is_some()),
        found: topics,
        ..headline
    }
}

/// How many requests of the last second a headline is about, where these are counted.
fn requests_of(now: &Sample, headline: &Headline) -> u64 {
    let Some(about) = &headline.about else {
        return 0;
    };
    let origin = now.origin(about);
    let zone = now.zone(about);
    match headline.cause.as_str() {
        "rejecting" => {
            let gate = origin.and_then(|it| it.gate.as_ref());
            let at_gate = gate.map_or(0, |gate| sum(&gate.rejected));
            zone.map_or(at_gate, |zone| zone.rejected)
        }
        "untrusted_proxy" => zone.map_or(0, |zone| zone.rejected),
        "backing_off" => origin.map_or(0, without_good_answer),
        "leaving" => {
            let gate = origin.and_then(|it| it.gate.as_ref());
            let at_gate = gate.map_or(0, |gate| gate.left);
            let at_origin = origin.map_or(0, |origin| origin.left + at_gate);
            zone.map_or(at_origin, |zone| zone.left)
        }
        "origin_errors" => origin.map_or(0, |it| of_class(&it.codes, "5xx")),
        "origin_failing" => origin.map_or(0, |it| sum(&it.errors)),
        _ => 0,
    }
}

/// How many requests for an origin its gate rejects, or get an error from it or no answer.
fn without_good_answer(origin: &OriginSample) -> u64 {
    let gate = origin.gate.as_ref();
    let rejected = gate.map_or(0, |gate| sum(&gate.rejected));
    rejected + sum(&origin.errors) + of_class(&origin.codes, "5xx")
}

fn store_out(recent: &Recent<'_>, now: &Sample) -> Option<Finding> {
    let store = now.store.as_ref().filter(|store| !store.up)?;
    let out_for = store.out_for.unwrap_or_default();
    let operations = recent.operations();
    let failed: Vec<_> = operations
        .iter()
        .filter(|(result, count)| !["ok", "leased"].contains(&result.as_str()) && **count > 0)
        .map(|(result, count)| format!("{} {result}", whole(*count)))
        .collect();
    let reason = store.reason.as_ref().map_or("no answer", Plain::as_str);
    let meanwhile = store.meanwhile.as_ref();
    let meanwhile = meanwhile.map_or(String::new(), |it| format!(" Meanwhile, {it}."));
    let failed = if failed.is_empty() {
        String::new()
    } else {
        let seconds = recent.seconds();
        format!(
            " In the last {seconds:.0} s: {} operations.",
            listed(&failed)
        )
    };
    Some(Finding {
        weight: out_for,
        title: format!("The store is out for {}", seconds(out_for)),
        evidence: format!("{reason}.{failed}{meanwhile}"),
        remedy:
            "Bring Redis or the way to it back, or let it take writes; see Store. Gateways do not share a rate until then."
                .to_owned(),
        ..Finding::new(Cause::StoreOut, Severity::Bad)
    })
}

fn store_refuses(recent: &Recent<'_>, now: &Sample) -> Option<Finding> {
    let store = now.store.as_ref().filter(|store| store.up)?;
    let what = store.refuses.as_ref()?;
    let names: Vec<_> = what.zones.iter().map(Plain::to_string).collect();
    let operations = recent.operations();
    let refused = operations.get(&Plain::from("refused"));
    let refused = refused.copied().unwrap_or_default();
    Some(Finding {
        weight: part(refused, 1),
        about: what.zones.first().filter(|_| names.len() == 1).cloned(),
        title: format!("Redis refuses all requests of {}", listed(&names)),
        evidence: format!(
            "{} refused in the last {:.0} s: {}. Meanwhile, zones follow their on_store_failure.",
            count(refused, "operation"),
            recent.seconds(),
            what.reason
        ),
        remedy: sentence(what.remedy.as_str()),
        ..Finding::new(Cause::StoreRefuses, Severity::Bad)
    })
}

/// From this on, an origin is slow enough to look at it before it gets more requests.
const SLOW: f64 = 1.0;
/// Time without an answer from which on an origin with requests is silent, in seconds.
const SILENT: f64 = 2.0;

/// The first origin that is silent.
fn silent(now: &Sample) -> Option<&OriginSample> {
    let mut origins = now.origins.iter();
    origins.find(|origin| origin.silence() >= SILENT)
}

/// Whether an origin leaves requests without an answer for longer than its answers take.
fn is_late(origin: &OriginSample) -> bool {
    let Some(it) = &origin.unanswered else {
        return false;
    };
    let usual = origin.usual.map(|usual| usual.longest);
    let longest = usual.into_iter().chain(origin.latency.p99);
    match longest.max_by(f64::total_cmp) {
        Some(longest) if it.silence > 0.0 => it.oldest > longest,
        Some(longest) => it.oldest > 3.0 * longest,
        None => it.silence > 0.0,
    }
}

/// What to do instead of sending an origin more if it is slow, or leaves requests without an answer.
///
/// Rejections of a hang are counted for some seconds after it.
fn find_out_first(recent: &Recent<'_>, now: &Sample) -> Option<String> {
    let was_late = |origin| recent.latest_or_before(origin, |it| is_late(it).then_some(()));
    let is_silent =
        |origin: &OriginSample| origin.silence() >= SILENT && recent.ended_at_origin(origin) == 0;
    now.origins.iter().find_map(|origin| {
        let name = &origin.name;
        let what = match origin.latency.p95 {
            _ if is_silent(origin) => "has answered nothing for some seconds".to_owned(),
            Some(p95) if p95 >= SLOW => format!("takes {} for its slowest answers", seconds(p95)),
            _ if hanging::slower(&recent.now(), origin).is_some() => {
                "is slower than usual".to_owned()
            }
            _ if was_late(origin).is_some() => "leaves requests without an answer".to_owned(),
            _ => return None,
        };
        Some(format!(
            "Origin {name} {what}: find out why before it gets more requests."
        ))
    })
}

/// How long the requests of the last seconds waited, if any did: 19 of 20 no longer than this.
fn waited(recent: &Recent<'_>, now: &Sample) -> Option<String> {
    let longest = now
        .zones
        .iter()
        .filter_map(|zone| recent.longest_wait(zone));
    longest.max_by(f64::total_cmp).map(seconds)
}

/// What is under way at origins where nothing has ended in these seconds.
fn unended(recent: &Recent<'_>, now: &Sample) -> String {
    let busy = now.origins.iter().filter(|origin| origin.in_flight > 0);
    let silent = busy.filter(|origin| recent.ended_at_origin(origin) == 0);
    let silent = silent.map(|origin| {
        let requests = count(origin.in_flight, "request");
        format!("{requests} at {}", origin.name)
    });
    let silent: Vec<_> = silent.collect();
    if silent.is_empty() {
        return String::new();
    }
    let span = recent.seconds();
    format!(
        " Under way: {}, of which none was answered in these {span:.0} s.",
        listed(&silent)
    )
}

/// Nothing waits long, and nothing is rejected.
fn calm(recent: &Recent<'_>, now: &Sample) -> Finding {
    let left = recent.of_process(|it| it.left);
    let came = sum(&recent.codes());
    let answered = came.saturating_sub(left);
    let dry: Vec<_> = now
        .zones
        .iter()
        .filter(|zone| recent.total(*zone, |it| it.dry_run) > 0)
        .map(|zone| zone.name.to_string())
        .collect();
    let span = recent.seconds();
    let is_busy = now.origins.iter().any(|origin| origin.in_flight > 0);
    let requests = if came == 0 && is_busy {
        format!("No request has ended in the last {span:.0} s.")
    } else if came == 0 {
        format!("No requests in the last {span:.0} s.")
    } else if answered == 0 {
        let left = count(left, "client");
        format!("No answers in the last {span:.0} s: {left} left before one.")
    } else {
        let a_second = part(answered, 1) / span;
        let waited = waited(recent, now).map_or_else(
            || "none delayed or rejected now".to_owned(),
            |longest| format!("none rejected; those that waited went on within {longest}"),
        );
        format!("Answers: {}, {waited}.", pace(a_second))
    };
    let would = (!dry.is_empty())
        .then(|| format!(" Dry run would have limited requests in {}.", listed(&dry)));
    let evidence = requests + &unended(recent, now) + &would.unwrap_or_default();
    let silent = silent(now);
    let (cause, severity) = if came == 0 || silent.is_some() {
        (Cause::Idle, Severity::None)
    } else {
        (Cause::Fine, Severity::Fine)
    };
    let title = match silent {
        Some(origin) => {
            let (name, silence) = (&origin.name, seconds(origin.silence()));
            format!("Origin {name} has answered nothing for {silence}")
        }
        None if answered > 0 => "Answers come as usual".to_owned(),
        None if is_busy => "All requests are under way".to_owned(),
        None => "No requests are waiting".to_owned(),
    };
    Finding {
        title,
        evidence,
        ..Finding::new(cause, severity)
    }
}
