use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::{Recent, most, sum};
use super::super::words::{count, listed, pace, part, percent, seconds, sentence, waiting, whole};
use crate::admin::views::{GateSample, OriginSample, Plain};

/// The store answers, and refuses what the gate asks for.
pub(super) fn alone(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let refused = origin.gate.as_ref()?.refused.as_ref()?;
    // Otherwise the outage says what gates do meanwhile.
    let store = recent.last()?.store.as_ref();
    store.filter(|store| store.up)?;
    let name = &origin.name;
    let of_rate = match (1.0 / refused.part).round() {
        parts if parts > 1.0 => format!("1/{parts} of its rate"),
        _ => "all of its rate".to_owned(),
    };
    Some(Finding {
        cause: Cause::GateAlone,
        severity: Severity::Bad,
        weight: 0.0,
        about: Some(name.clone()),
        title: format!("The gate of {name} goes on alone with {of_rate}: Redis refused its claims"),
        evidence: format!(
            "{}. Other gateways do not know what this one sends.",
            refused.reason
        ),
        remedy: sentence(refused.remedy.as_str()),
    })
}

pub(super) fn holding(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref()?;
    let outage = gate.outage.as_ref()?;
    let (name, depth) = (&origin.name, gate.depth);
    let (lasts, hold) = (seconds(outage.lasts), &outage.hold);
    Some(Finding {
        cause: Cause::Holding,
        severity: Severity::Bad,
        weight: part(depth, 1),
        about: Some(name.clone()),
        title: format!("Origin {name} is down; {} for it, up to {hold}", waiting(depth)),
        evidence: format!("It is down for {lasts}: {}.", outage.error),
        remedy: "Bring the origin back: its requests leave then, in their order. Those that have waited for `hold` get the answer that they would get without it."
            .to_owned(),
    })
}

/// From this part of the requests to an origin on, those that get no good answer are in the title.
const DAMAGE: f64 = 0.05;

/// What part of an origin's requests gets no good answer now, and what they get instead.
fn damage(recent: &Recent<'_>, origin: &OriginSample) -> Option<(f64, &'static str)> {
    let (recent, name) = (recent.now(), &origin.name);
    let rejected = recent.counts_of_origin(name, |it| it.gate.as_ref().map(|it| &it.rejected));
    let codes = recent.counts_of_origin(name, |it| Some(&it.codes));
    let failed = sum(&recent.counts_of_origin(name, |it| Some(&it.errors)));
    let errors = failed + codes.get(&Plain::from("5xx")).copied().unwrap_or_default();
    let all = sum(&rejected) + sum(&codes) + failed;
    let share = part(sum(&rejected) + errors, all);
    let what = match most(&rejected).map(Plain::as_str) {
        _ if errors > sum(&rejected) => "get an error",
        // Its status is `reject_status`.
        Some("queue") => "are rejected",
        _ => "get 503",
    };
    (share >= DAMAGE).then_some((share, what))
}

/// How long an origin takes now, if that is clearly more than before.
fn slower(recent: &Recent<'_>, origin: &OriginSample, usual: Option<f64>) -> Option<String> {
    let (name, usual) = (&origin.name, usual?);
    let takes = recent.latest(name, |it| it.latency.p50)?;
    let (now, before) = (seconds(takes), seconds(usual));
    (takes > 1.5 * usual).then(|| format!("{name} takes {now} ({before} before)"))
}

/// What a gate lets through less than the file says.
fn less(gate: &GateSample) -> Vec<String> {
    let rate = match (gate.rate.now, gate.rate.file) {
        (Some(now), Some(file)) if now < file => Some(format!("{} of {}", pace(now), pace(file))),
        _ => None,
    };
    let places = match (gate.max_in_flight.now, gate.max_in_flight.file) {
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
    let damage = damage(recent, origin);
    let title = if let Some((share, what)) = damage {
        let slower = slower(recent, origin, why.usual);
        let causes: Vec<_> = slower.into_iter().chain(Some(less.clone())).collect();
        let causes: Vec<_> = causes.iter().filter(|it| !it.is_empty()).cloned().collect();
        let because = match causes.as_slice() {
            [] => format!("the gate of {name} backs off"),
            causes => causes.join("; "),
        };
        format!("{} of requests {what}: {because}", percent(share))
    } else if why.kept {
        sentence(&less).trim_end_matches('.').to_owned()
    } else {
        format!("The gate of {name} backs off")
    };
    let evidence = match (why.kept, why.reason.as_str(), less.as_str()) {
        (true, ..) => "Its answers are slow, however many requests run at once.".to_owned(),
        (_, "retry_after", "") => format!("{}.", why.text),
        (_, "retry_after", less) => format!("{}. It lets {less} through.", why.text),
        (_, _, "") => format!("At the last cut, {}.", why.text),
        (_, _, less) => format!("At the last cut, {}. It lets {less} through.", why.text),
    };
    let remedy = if why.kept {
        "Find out what the origin waits for. If answers are to take so long, raise `slow`."
    } else {
        "The origin needs relief, and gets its full rate back as it recovers. More rate would not help."
    };
    let share = damage.map_or(0.0, |(share, _)| share);
    Some(Finding {
        cause: Cause::BackingOff,
        severity: Severity::bad_if(share >= 0.5),
        weight: share,
        about: Some(name.clone()),
        title,
        evidence,
        remedy: remedy.to_owned(),
    })
}

pub(super) fn rejecting_at_gate(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref()?;
    let name = &origin.name;
    let rejected = recent.counts_of_origin(name, |it| it.gate.as_ref().map(|it| &it.rejected));
    let all = sum(&rejected);
    let reason = most(&rejected)?.as_str();
    let why = match reason {
        "queue" => "a key has as many requests waiting as `queue` allows",
        "max_queue" => "as many requests wait as `max_queue` allows",
        "timeout" => "requests waited as long as `queue_timeout` allows",
        "max_wait" => "requests would wait longer than `max_wait` allows",
        "outage" => "requests waited as long as `hold` allows for an origin that is down",
        _ => "the gateway is stopping",
    };
    // Afterwards, the deepest key is somebody else.
    let deepest = gate.deepest.first().filter(|_| !gate.rejected.is_empty());
    let deepest = deepest.map_or(String::new(), |it| {
        let (key, depth) = (&it.key, whole(it.depth));
        format!(" {key} has {depth} waiting.")
    });
    let remedy = if reason == "outage" {
        "Bring the origin back. More rate would not help."
    } else if reason == "queue" {
        "A client sends more than its share. If the origin can do more, raise the `rate` or `max_in_flight` of the origin."
    } else {
        "If the origin can do more, raise its `rate` or `max_in_flight`; otherwise limit clients earlier, in a zone."
    };
    Some(Finding {
        cause: Cause::Rejecting,
        severity: Severity::Warn,
        weight: part(all, 1),
        about: Some(name.clone()),
        title: format!(
            "The gate of {name} rejects {}",
            pace(part(all, 1) / recent.seconds())
        ),
        evidence: format!(
            "{} in the last {:.0} s: {why}.{deepest}",
            count(all, "rejection"),
            recent.seconds()
        ),
        remedy: remedy.to_owned(),
    })
}

pub(super) fn waiting_at_gate(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref().filter(|gate| gate.depth > 0)?;
    if gate.outage.is_some() {
        return None;
    }
    let name = &origin.name;
    let full = gate
        .max_in_flight
        .now
        .filter(|most| origin.in_flight >= *most);
    // What binds is what helps if it is raised.
    let (why, remedy) = match (full, gate.rate.now) {
        (Some(most), rate) => (
            format!("All {most} places at the origin are taken."),
            format!(
                "If {name} can work on more requests at once, raise its `max_in_flight`, which is {most}.{}",
                rate.map_or("", |_| " More of its `rate` would not help.")
            ),
        ),
        (None, Some(rate)) => {
            let places = gate.max_in_flight.now.map_or(String::new(), |most| {
                let busy = origin.in_flight;
                format!(" More `max_in_flight` would not help: {busy} of {most} places are taken.")
            });
            (
                format!("They leave one by one, {}.", pace(rate)),
                format!(
                    "If {name} can take more, raise its `rate`, which is {}.{places}",
                    pace(gate.rate.file.unwrap_or(rate))
                ),
            )
        }
        (None, None) => (String::new(), String::new()),
    };
    let wait = gate.wait_p99.map_or(String::new(), |wait| {
        format!(" The longest waits take {}.", seconds(wait))
    });
    Some(Finding {
        cause: Cause::Waiting,
        severity: Severity::Warn,
        weight: part(gate.depth, 1),
        about: Some(name.clone()),
        title: format!("{} at the gate of {name}", waiting(gate.depth)),
        evidence: why + &wait,
        remedy,
    })
}
