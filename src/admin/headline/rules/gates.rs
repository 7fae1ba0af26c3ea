use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::{Recent, most, sum};
use super::super::words::{count, pace, part, seconds, sentence, waiting, whole};
use crate::admin::views::OriginSample;

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

pub(super) fn backing_off(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref()?;
    let why = gate.backing_off.as_ref().filter(|why| !why.shadow)?;
    let name = &origin.name;
    let rate = match (gate.rate.now, gate.rate.file) {
        (Some(now), Some(file)) if now < file => {
            format!(" It lets {} of {} through.", pace(now), pace(file))
        }
        _ => String::new(),
    };
    let places = match (gate.max_in_flight.now, gate.max_in_flight.file) {
        (Some(now), Some(file)) if now < file => {
            format!(" It allows {now} of {file} requests in flight.")
        }
        _ => String::new(),
    };
    Some(Finding {
        cause: Cause::BackingOff,
        severity: Severity::Warn,
        weight: 0.0,
        about: Some(name.clone()),
        title: format!("The gate of {name} backs off"),
        evidence: format!("{}.{rate}{places}", why.text),
        remedy: "The origin needs relief, and gets its full rate back as it recovers. More rate would not help."
            .to_owned(),
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
                format!("More requests come than {}.", pace(rate)),
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
