use std::collections::BTreeMap;

use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::{Recent, most, of_class, sum};
use super::super::words::{
    listed, pace, pace_of_units, part, percent, seconds, sentence, waiting, whole,
};
use super::holders;
use super::places::{Lacking, lacking, waits_for_places};
use crate::limit::Rate;
use crate::status::views::{BackingOff, GateAsks, GateSample, OriginSample, Plain, Suspicion};

/// The store answers, and refuses what the gate asks for.
pub(super) fn alone(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let refused = origin.gate.as_ref()?.refused.as_ref()?;
    // Otherwise the outage says what gates do meanwhile.
    let store = recent.last()?.store.as_ref();
    store.filter(|store| store.up)?;
    let name = &origin.name;
    let of_its = |what: &str| match (1.0 / refused.part).round() {
        parts if parts > 1.0 => format!("1/{parts} of its {what}"),
        _ => format!("all of its {what}"),
    };
    let (does, severity, unknown) = match refused.asks_for {
        GateAsks::Slots => (
            format!(
                "goes on alone with {}: Redis refused its claims",
                of_its("rate")
            ),
            Severity::Bad,
            "Other gateways do not know what this one sends",
        ),
        GateAsks::Places if refused.part == 0.0 => (
            "starts nothing: Redis refused to lend it places".to_owned(),
            Severity::Bad,
            "Other gateways do not know which requests of this one still run",
        ),
        GateAsks::Places => (
            format!(
                "goes on alone with {}: Redis refused to lend it any",
                of_its("places")
            ),
            Severity::Bad,
            "Other gateways do not know which requests of this one run",
        ),
        GateAsks::Backoff => (
            "backs off alone: Redis refused to tell what other gateways have learned".to_owned(),
            Severity::Warn,
            "A cut or a pause here is none there, nor the reverse",
        ),
    };
    Some(Finding {
        title: format!("The gate of {name} {does}"),
        evidence: format!(
            "{}. {unknown}.",
            refused.reason.as_str().trim_end_matches('.')
        ),
        remedy: sentence(refused.remedy.as_str()),
        ..Finding::about(name, Cause::GateAlone, severity)
    })
}

pub(super) fn holding(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref()?;
    let outage = gate.outage.as_ref()?;
    let (name, depth) = (&origin.name, gate.depth);
    let (lasts, hold) = (seconds(outage.lasts), &outage.hold);
    Some(Finding {
        weight: part(depth, 1),
        title: format!("Origin {name} is down; {} for it, up to {hold}", waiting(depth)),
        evidence: format!("It is down for {lasts}: {}.", outage.error),
        remedy: "Bring the origin back: its requests leave then, in their order. Those that have waited for `hold` get the answer that they would get without it."
            .to_owned(),
        ..Finding::about(name, Cause::Holding, Severity::Bad)
    })
}

/// From this wait on, in seconds, a queue is worth a warning.
pub(super) const LONG_WAIT: f64 = 1.0;
/// From this part of the requests to an origin on, those that get no good answer are trouble.
const TROUBLE: f64 = 0.05;

/// Rejections of an origin's gate, by reason.
fn rejected_at_gate(recent: &Recent<'_>, origin: &OriginSample) -> BTreeMap<Plain, u64> {
    recent.counts(origin, |it| it.gate.as_ref().map(|it| &it.rejected))
}

/// What part of an origin's requests gets no good answer now, and what they get instead.
fn trouble(recent: &Recent<'_>, origin: &OriginSample) -> Option<(f64, &'static str)> {
    let recent = recent.now();
    let rejected = rejected_at_gate(&recent, origin);
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

/// How long an origin takes now, if that is clearly more than before, or if it answers nothing.
fn slower(recent: &Recent<'_>, origin: &OriginSample, usual: Option<f64>) -> Option<String> {
    let (name, usual) = (&origin.name, usual?);
    let before = seconds(usual);
    let Some(takes) = recent.latest(origin, |it| it.latency.p50) else {
        // All that it has takes longer than these seconds.
        let span = recent.seconds();
        return (origin.in_flight > 0)
            .then(|| format!("{name} has answered nothing for {span:.0} s ({before} before)"));
    };
    let now = seconds(takes);
    (takes > 1.5 * usual).then(|| format!("{name} takes {now} ({before} before)"))
}

/// Whether an origin answers most requests in time again.
fn is_in_time(recent: &Recent<'_>, origin: &OriginSample, why: &BackingOff) -> bool {
    // Places also grow while there are no requests, which says nothing of the origin.
    let answers = recent.has_answers_since(origin, |it| {
        it.gate
            .as_ref()
            .is_some_and(|gate| gate.backing_off.is_some())
    });
    let is_known = why.usual.is_some() || grew(recent, origin);
    let is_fast = answers && is_known && slower(recent, origin, why.usual).is_none();
    is_fast
        && match why.reason.as_str() {
            "slow" => true,
            // That answers are fast says nothing of what is in them.
            "trouble" => !answers_trouble(recent, origin),
            _ => false,
        }
}

/// Whether an origin's answers are trouble now: requests get none, or one that may be to the
/// back-off.
fn answers_trouble(recent: &Recent<'_>, origin: &OriginSample) -> bool {
    let recent = recent.now();
    let codes = recent.counts(origin, |it| Some(&it.codes));
    let failed = recent.total(origin, |it| sum(&it.errors));
    let bad = failed + of_class(&codes, "4xx") + of_class(&codes, "5xx");
    part(bad, sum(&codes) + failed) >= TROUBLE
}

/// Whether the places of a gate grow, or grew a moment ago.
///
/// A few slow answers of earlier requests end it for one window.
fn grew(recent: &Recent<'_>, origin: &OriginSample) -> bool {
    let grows = |it: &OriginSample| it.gate.as_ref()?.backing_off.as_ref().map(|it| it.grows);
    recent.lately(origin, |it| grows(it).unwrap_or_default().into()) > 0
}

/// A part of the rate of a gate, which counts requests, or units if they have costs.
fn rate_pace(gate: &GateSample, a_second: f64) -> String {
    if gate.costs {
        pace_of_units(a_second)
    } else {
        pace(a_second)
    }
}

/// What a gate lets through less than the file says, or what is in its place.
fn less(gate: &GateSample) -> Vec<String> {
    let other = gate.overridden.as_ref();
    let rate = other.and_then(|it| it.rate.as_ref()?.as_str().parse::<Rate>().ok());
    let whole_rate = rate.map(Rate::per_second).or(gate.rate.file);
    let places = other.and_then(|it| it.max_in_flight);
    let whole_places = places.or(gate.max_in_flight.file);
    let rate = match (gate.rate.now, whole_rate) {
        (Some(now), Some(file)) if now < file => Some(format!(
            "{} of {}",
            rate_pace(gate, now),
            rate_pace(gate, file)
        )),
        _ => None,
    };
    let places = match (gate.max_in_flight.now, whole_places) {
        (Some(now), Some(file)) if now < file => Some(format!("{now} of {file} places")),
        _ => None,
    };
    rate.into_iter().chain(places).collect()
}

pub(super) fn backing_off(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref()?;
    let why = gate.backing_off.as_ref().filter(|why| !why.shadow)?;
    let name = &origin.name;
    let less = if why.kept {
        let places = gate.max_in_flight.file;
        let back = places.map_or("all places".to_owned(), |it| format!("all {it} places"));
        format!("fewer at once did not make {name} faster; {back} are back")
    } else {
        listed(&less(gate))
    };
    let trouble = trouble(recent, origin);
    let in_time = is_in_time(recent, origin, why);
    let grows = grew(recent, origin);
    let recovers = in_time && grows && trouble.is_none() && why.reason.as_str() == "slow";
    let title = if let Some((share, what)) = trouble {
        let slower = slower(recent, origin, why.usual);
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
    } else if why.grows || (in_time && grows) {
        "Nothing is to be done: the origin gets its places back as long as it answers in time."
    } else if in_time {
        "Most answers are in time again. The gate lets more through once nearly all are; more rate would not help."
    } else {
        "The origin needs relief, and gets its full rate back as it recovers. More rate would not help."
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
        ..Finding::about(name, Cause::BackingOff, severity)
    })
}

/// Whether an operator has paused the gate.
fn is_paused(gate: &GateSample) -> bool {
    gate.overridden.as_ref().is_some_and(|it| it.pause)
}

pub(super) fn rejecting_at_gate(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref()?;
    let name = &origin.name;
    let rejected = rejected_at_gate(recent, origin);
    let all = sum(&rejected);
    let came = all + recent.ended_at_origin(origin);
    let reason = most(&rejected)?.as_str();
    let why = match reason {
        "queue" => "a key has as many requests waiting as `queue` allows",
        "max_queue" => "as many requests wait as `max_queue` allows",
        "timeout" => "requests waited, or would wait, longer than `queue_timeout` allows",
        "max_wait" => "requests would wait longer than `max_wait` allows",
        "outage" => "requests waited as long as `hold` allows for an origin that is down",
        _ => "the gateway is stopping",
    };
    // Afterwards, the deepest key is somebody else.
    let deepest = gate.deepest.first().filter(|_| !gate.rejected.is_empty());
    // Without `share`, all requests have the same empty key.
    let deepest = deepest.filter(|it| !it.key.as_str().is_empty());
    let deepest = deepest.map_or(String::new(), |it| {
        let (key, depth) = (&it.key, whole(it.depth));
        format!(" {key} has {depth} waiting.")
    });
    let more = binding(recent, origin, gate);
    let is_for_origin = is_paused(gate) || reason == "outage";
    let lacking = lacking(recent, origin, gate).filter(|_| !is_for_origin);
    let (lacks, waited_for) = lacking.map_or((None, None), |it| (Some(it.evidence), it.remedy));
    let lacks = lacks.map_or(String::new(), |text| format!(" {text}"));
    let slow = holders::slow_client(recent, origin).filter(|_| !is_for_origin);
    let (holder, held) = slow.unzip();
    let holder = holder.unwrap_or_default();
    let suspicion = suspicion(is_for_origin || held.is_some() || waited_for.is_some());
    let remedy = match (reason, held.or(waited_for)) {
        _ if is_paused(gate) => "Resume it by undoing the override.".to_owned(),
        ("outage", _) => "Bring the origin back. More rate would not help.".to_owned(),
        (_, Some(remedy)) => remedy,
        ("queue", _) => format!(
            "A client sends more than its share. If the origin can do more, raise its {more}."
        ),
        ("timeout", _) => format!(
            "If the origin can do more, raise its {more}; if clients may wait longer, raise `queue_timeout`; otherwise lower `queue` or `max_queue`."
        ),
        _ => format!(
            "If the origin can do more, raise its {more}; otherwise limit clients earlier, in a zone."
        ),
    };
    // A full `queue` may be the fault of one client.
    let severity = Severity::bad_if(reason != "queue" && all * 2 >= came);
    Some(Finding {
        weight: part(all, 1),
        title: format!(
            "The gate of {name} rejects {}",
            pace(part(all, 1) / recent.seconds())
        ),
        evidence: format!(
            "{}: {why}.{holder}{deepest}{lacks}",
            recent.share_of(all, came, "request")
        ),
        remedy,
        suspicion,
        ..Finding::about(name, Cause::Rejecting, severity)
    })
}

/// What a change means for a gate. `is_elsewhere`: what requests wait for is not a number of the file.
fn suspicion(is_elsewhere: bool) -> Suspicion {
    if is_elsewhere {
        Suspicion::Named
    } else {
        Suspicion::Suspected
    }
}

/// The setting of a gate that requests wait for, with its value.
///
/// Raising the other one does not help.
pub(super) fn binding(recent: &Recent<'_>, origin: &OriginSample, gate: &GateSample) -> String {
    let rate = gate
        .rate
        .file
        .map(|it| format!("`rate`, which is {}", rate_pace(gate, it)));
    let places = gate.max_in_flight.file.map(|it| {
        let whose = match gate.places {
            Some(_) => " for all gateways",
            None => "",
        };
        format!("`max_in_flight`, which is {it}{whose}")
    });
    match (waits_for_places(recent, origin), rate, places) {
        (Some(true), _, Some(places)) | (_, None, Some(places)) => places,
        (Some(false), Some(rate), _) | (_, Some(rate), None) => rate,
        _ => "`rate` or `max_in_flight`".to_owned(),
    }
}

pub(super) fn waiting_at_gate(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref().filter(|gate| gate.depth > 0)?;
    if gate.outage.is_some() || is_paused(gate) {
        return None;
    }
    let name = &origin.name;
    let (why, remedy, is_soon) = match lacking(recent, origin, gate) {
        Some(Lacking { evidence, remedy }) => {
            let is_soon = remedy.is_some();
            let raise = || more_places(origin, gate, " for all gateways");
            (evidence, remedy.unwrap_or_else(raise), is_soon)
        }
        None => {
            let (why, remedy) = waited_for(origin, gate);
            (why, remedy, false)
        }
    };
    let (holder, held) = holders::slow_client(recent, origin).unzip();
    let suspicion = suspicion(is_soon || held.is_some());
    let remedy = held.unwrap_or(remedy);
    let holder = holder
        .or_else(|| holders::evidence(origin))
        .unwrap_or_default();
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
        evidence: why + &holder + &wait,
        remedy,
        suspicion,
        ..Finding::about(name, Cause::Waiting, severity)
    })
}

/// Whether requests wait long at a gate. While none leaves, all have waited since the seconds before.
fn waits_long(recent: &Recent<'_>, origin: &OriginSample) -> bool {
    let gate = |it: &OriginSample| it.gate.as_ref().map(|gate| (gate.depth, gate.wait_p99));
    let wait = recent.longest(origin, |it| gate(it)?.1);
    let was_empty = recent.total(origin, |it| {
        u64::from(gate(it).is_none_or(|(depth, _)| depth == 0))
    });
    wait.map_or(was_empty == 0, |wait| wait >= LONG_WAIT)
}

/// What requests wait for that have no places of a pool to wait for, and what helps.
///
/// What binds is what helps if it is raised.
fn waited_for(origin: &OriginSample, gate: &GateSample) -> (String, String) {
    let (name, busy) = (&origin.name, origin.in_flight);
    let here = gate.max_in_flight.now.filter(|_| gate.places.is_none());
    let taken = match (&gate.places, here) {
        (Some(places), _) => Some((places.in_use, places.held)),
        (None, most) => most.map(|most| (busy, most)),
    };
    match (here.filter(|most| busy >= *most), gate.rate.now) {
        (Some(most), _) => (
            format!("All {most} places at the origin are taken."),
            more_places(origin, gate, ""),
        ),
        (None, Some(rate)) => {
            let places = taken.map_or(String::new(), |(busy, most)| {
                format!(" More `max_in_flight` would not help: {busy} of {most} places are taken.")
            });
            (
                format!("They leave one by one, {}.", rate_pace(gate, rate)),
                format!(
                    "If {name} can take more, raise its `rate`, which is {}.{places}",
                    rate_pace(gate, gate.rate.file.unwrap_or(rate))
                ),
            )
        }
        (None, None) => (String::new(), String::new()),
    }
}

/// The advice to raise the places of an origin. `whose`: whose number that is.
fn more_places(origin: &OriginSample, gate: &GateSample, whose: &str) -> String {
    let most = gate.max_in_flight.now.unwrap_or_default();
    let rate = gate.rate.now;
    format!(
        "If {} can work on more requests at once, raise its `max_in_flight`, which is {most}{whose}.{}",
        origin.name,
        rate.map_or("", |_| " More of its `rate` would not help.")
    )
}
