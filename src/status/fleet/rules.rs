//! The headline over several gateways: what none of them can find alone.

use super::member::Named;
use super::settings::Difference;
use crate::status::headline::words::{count, is, listed, percent, sentence, whole};
use crate::status::headline::{Cause, Finding, Severity, in_order};
use crate::status::views::{
    Fleet, FleetGateway, FleetPlaces, GateAsks, GateRefused, GateSample, Headline, Plain,
};

/// How far two clocks may differ beyond what the round trips explain, in seconds.
const MAX_APART: f64 = 1.0;

/// How much above its part, or the rate, something is sent before it is said.
const TOLERANCE: f64 = 1.1;

/// Departures that a window may have more than its span and the rate say: one at each end.
const ENDS: f64 = 2.0;

/// Longest value of a setting that is quoted, in characters.
const MAX_VALUE: usize = 60;

/// The headline over these gateways.
pub(super) fn headline(fleet: &Fleet, named: &[Named]) -> Headline {
    let mut found: Vec<Finding> = fleet.gateways.iter().filter_map(unread).collect();
    let out = without_store(named);
    let all_reach_store = out.is_none();
    found.extend(out);
    found.extend(fleet.places.iter().filter_map(withheld));
    for gate in &fleet.gates {
        found.extend(refused(&gate.origin, named));
        found.extend(backs_off(&gate.origin, named));
    }
    // A gateway without the store takes its part whatever the others send: none of them breaks a
    // rule.
    let judged = fleet.gates.iter().filter(|_| all_reach_store);
    for gate in judged.filter(|gate| gate.shared) {
        found.extend(over_part(&gate.origin, named));
    }
    found.extend(files_differ(named));
    found.extend(clocks_differ(named));
    in_order(&mut found);
    let mut found = found.into_iter();
    match found.next() {
        Some(first) => first.into_headline(found.map(|it| Plain::new(&it.title)).collect()),
        None => calm(fleet).into_headline(Vec::new()),
    }
}

fn unread(gateway: &FleetGateway) -> Option<Finding> {
    let trouble = gateway.trouble()?;
    let since = gateway.since.as_ref()?;
    let reason = gateway.reason.as_ref().map_or("no answer", Plain::as_str);
    // The time without its day.
    let since = since.as_str().split(['T', '.']).nth(1).unwrap_or_default();
    let address = gateway.address.as_ref().filter(|it| **it != gateway.name);
    let address = address.map_or_else(String::new, |it| format!(" ({it})"));
    Some(Finding {
        title: format!("{}{address} {trouble}", gateway.name),
        evidence: format!("Since {since} UTC: {reason}. No sum has what is there."),
        remedy: match gateway.state.as_str() {
            "strange" => "Name the admin port of a gateway; see what listens at this address.",
            "refuses" => "Let its admin port be read from here: what it answers says how.",
            _ => "See whether it runs, and whether its admin port can be reached from here.",
        }
        .to_owned(),
        ..Finding::about(&gateway.name, Cause::GatewaySilent, Severity::Bad)
    })
}

/// Gateways that cannot reach the store.
fn without_store(named: &[Named]) -> Option<Finding> {
    let store = |named: &Named| {
        let store = named.reading.sample.as_ref()?.store.clone()?;
        (!store.up).then(|| (named.name.to_string(), store))
    };
    let out: Vec<_> = named.iter().filter_map(store).collect();
    let (_, first) = out.first()?;
    let gateways: Vec<String> = out.iter().map(|(name, _)| name.clone()).collect();
    let who = if out.len() == named.len() && out.len() > 1 {
        "No gateway reaches the store".to_owned()
    } else {
        let verb = if out.len() == 1 { "does" } else { "do" };
        format!("{} {verb} not reach the store", listed(&gateways))
    };
    let reason = first.reason.as_ref().map_or("no answer", Plain::as_str);
    let meanwhile = first.meanwhile.as_ref();
    let meanwhile = meanwhile.map_or(String::new(), |it| format!(" Meanwhile, {it}."));
    let all = out.iter().map(|(_, store)| store.out_for.unwrap_or(0.0));
    Some(Finding {
        weight: all.fold(0.0, f64::max),
        title: who,
        evidence: format!("{} says: {reason}.{meanwhile}", gateways[0]),
        remedy: "Bring Redis or the way to it back. Until then all together may send more than a shared rate."
            .to_owned(),
        ..Finding::new(Cause::StoreOut, Severity::Bad)
    })
}

fn withheld(places: &FleetPlaces) -> Option<Finding> {
    let FleetPlaces {
        origin,
        of,
        withheld,
        free,
        ..
    } = places;
    (*withheld > 0).then(|| Finding {
        weight: weight(*withheld),
        title: format!(
            "{} of {origin} {} withheld",
            count(*withheld, "place"),
            is(*withheld)
        ),
        evidence: format!(
            "A gateway that had them has vanished, and its requests may still run at the origin. \
             Of {} places {} are in use and {} free.",
            whole(*of),
            whole(places.in_use),
            whole(*free)
        ),
        remedy: "They come back when `orphan` of the origin has passed, or the gateway returns."
            .to_owned(),
        ..Finding::about(origin, Cause::PlacesWithheld, Severity::Warn)
    })
}

/// What is so at the gates of an origin, with the gateways where it is.
fn at_gates<T>(
    origin: &Plain,
    named: &[Named],
    what: impl Fn(&GateSample) -> Option<T>,
) -> Vec<(String, T)> {
    let at = |named: &Named| {
        let sample = named.reading.sample.as_ref()?;
        let origin = sample.origins.iter().find(|it| it.name == *origin)?;
        Some((named.name.to_string(), what(origin.gate.as_ref()?)?))
    };
    named.iter().filter_map(at).collect()
}

/// Some gateways, and what they do: `one` does, or `many` do.
fn do_all<T>(some: &[(String, T)], named: &[Named], one: &str, many: &str) -> String {
    if some.len() == named.len() && some.len() > 1 {
        return format!("All gateways {many}");
    }
    let gateways: Vec<String> = some.iter().map(|(name, _)| name.clone()).collect();
    let verb = if some.len() == 1 { one } else { many };
    format!("{} {verb}", listed(&gateways))
}

/// Gateways whose gates the store refuses what they ask for.
fn refused(origin: &Plain, named: &[Named]) -> Option<Finding> {
    let all = at_gates(origin, named, |gate| gate.refused.clone());
    let (first, why) = all.first()?;
    let who = do_all(&all, named, "goes", "go");
    let is_bad = |(_, it): &(String, GateRefused)| it.asks_for != GateAsks::Backoff;
    let severity = if all.iter().any(is_bad) {
        Severity::Bad
    } else {
        Severity::Warn
    };
    Some(Finding {
        weight: weight(all.len() as u64),
        title: format!("{who} on alone at {origin}: Redis refused what they share"),
        evidence: format!("{first} says: {}", sentence(why.reason.as_str())),
        remedy: sentence(why.remedy.as_str()),
        ..Finding::about(origin, Cause::GateAlone, severity)
    })
}

/// Gateways whose gates let less through to an origin than the file says.
fn backs_off(origin: &Plain, named: &[Named]) -> Option<Finding> {
    let all = at_gates(origin, named, |gate| {
        let why = gate.backing_off.as_ref()?;
        (!why.shadow).then(|| why.text.clone())
    });
    let (first, why) = all.first()?;
    let who = do_all(&all, named, "backs", "back");
    Some(Finding {
        weight: weight(all.len() as u64),
        title: format!("{who} off from {origin}"),
        evidence: format!("{first} says: {why}."),
        remedy:
            "See what each of them says. The origin needs relief, and gets all back as it recovers."
                .to_owned(),
        ..Finding::about(origin, Cause::BackingOff, Severity::Warn)
    })
}

/// A gateway that sends more than its part of a shared rate.
///
/// Nobody suffers from it as long as all together send no more than the rate: a part is told once
/// a second, and moves with the demand. The part of an idle gateway is what it would have, so the
/// parts of those that send are measured against their sum.
fn over_part(origin: &Plain, named: &[Named]) -> Option<Finding> {
    let sent = named.iter().filter_map(|named| {
        let sent = named.member.pace.sent(origin)?;
        Some((named.name, sent, sent.part?)).filter(|_| sent.is_sure())
    });
    let sent: Vec<_> = sent.collect();
    if sent.len() < 2 {
        return None;
    }
    let rates = sent.iter().filter_map(|(_, sent, _)| sent.rate);
    let rate = rates.min_by(f64::total_cmp)?;
    let slack: f64 = sent.iter().map(|(_, sent, _)| ENDS / sent.span).sum();
    let total: f64 = sent.iter().map(|(_, sent, _)| sent.pace).sum();
    if total <= rate * TOLERANCE + slack {
        return None;
    }
    let busy = sent.iter().filter(|(_, sent, _)| sent.pace > 0.0);
    let parts: f64 = busy.map(|(_, _, part)| part).sum();
    let fair = |part: f64| rate * part / parts.max(1.0);
    let over: Vec<_> = sent
        .iter()
        .filter(|(_, sent, part)| sent.pace > fair(*part) * TOLERANCE + ENDS / sent.span)
        .collect();
    let (first, ..) = over.first()?;
    let senders: Vec<String> = over.iter().map(|(name, ..)| name.to_string()).collect();
    let title = match over.len() {
        1 => format!("{first} sends more than its part to {origin}"),
        _ => format!(
            "{} send more than their parts to {origin}",
            listed(&senders)
        ),
    };
    let each = sent.iter().map(|(name, sent, part)| {
        format!("{name} {:.0} with a part of {}", sent.pace, percent(*part))
    });
    let each: Vec<String> = each.collect();
    Some(Finding {
        weight: total / rate,
        title,
        evidence: format!(
            "Requests a second in the last {:.0} s: {}. Together {total:.0}, and the rate is {rate:.0}.",
            sent.iter().map(|(_, sent, _)| sent.span).fold(0.0, f64::max),
            listed(&each)
        ),
        remedy: "Give all gateways the same `[redis]` and the same `rate` of the origin, and see their stores."
            .to_owned(),
        ..Finding::about(origin, Cause::OverPart, Severity::Bad)
    })
}

fn files_differ(named: &[Named]) -> Option<Finding> {
    let mut known = named.iter().filter(|it| !it.reading.settings.is_empty());
    let first = known.next()?;
    let mut others = Vec::new();
    let mut example = None;
    for other in known {
        let is_same_version = first.reading.version == other.reading.version;
        let settings = &first.reading.settings;
        let differences = settings.differences(&other.reading.settings, is_same_version);
        let Some(difference) = differences.first() else {
            continue;
        };
        others.push(other.name.to_string());
        if example.is_none() {
            example = Some(told(first.name, other.name, difference, differences.len()));
        }
    }
    let evidence = example?;
    let verb = if others.len() == 1 { "has" } else { "have" };
    Some(Finding {
        title: format!(
            "{} {verb} other zones, origins or routes than {}",
            listed(&others),
            first.name
        ),
        evidence,
        remedy: "Give all gateways the same zones, origins and routes; a reload takes them over."
            .to_owned(),
        ..Finding::new(Cause::FilesDiffer, Severity::Warn)
    })
}

/// The first difference between two gateways, and how many more there are.
fn told(first: &Plain, other: &Plain, difference: &Difference, all: usize) -> String {
    let cut = |value: Option<&str>| match value {
        None => "not set".to_owned(),
        Some(value) if value.chars().count() <= MAX_VALUE => value.to_owned(),
        Some(value) => value.chars().take(MAX_VALUE).chain(['…']).collect(),
    };
    let [a, b] = difference.values.map(cut);
    let more = match all - 1 {
        0 => String::new(),
        more => format!(
            " {} more between these two.",
            count(more as u64, "difference")
        ),
    };
    format!(
        "{} is {a} at {first}, {b} at {other}.{more}",
        difference.name
    )
}

fn clocks_differ(named: &[Named]) -> Option<Finding> {
    let clocks: Vec<_> = named
        .iter()
        .filter_map(|named| Some((named.name, named.reading.clock?)))
        .collect();
    let ahead = clocks
        .iter()
        .max_by(|a, b| a.1.at_least.total_cmp(&b.1.at_least))?;
    let behind = clocks
        .iter()
        .min_by(|a, b| a.1.at_most.total_cmp(&b.1.at_most))?;
    let apart = ahead.1.surely_ahead_of(behind.1);
    (apart > MAX_APART).then(|| Finding {
        weight: apart,
        title: format!("The clock of {} is ahead of that of {}", ahead.0, behind.0),
        evidence: format!("By at least {apart:.1} s; the round trips are taken into account."),
        remedy: "Set the clocks by NTP, and restart the gateway that was wrong: of two files that \
                 differ, the one that was saved last by its own clock is in force."
            .to_owned(),
        ..Finding::new(Cause::ClocksDiffer, Severity::Warn)
    })
}

fn calm(fleet: &Fleet) -> Finding {
    let is = |state: &str| {
        let all = fleet.gateways.iter();
        all.filter(|it| it.state.as_str() == state).count() as u64
    };
    let answer = is("answers");
    let waited_for = match is("unknown") {
        0 => String::new(),
        some => format!(" {} not been read yet.", count(some, "gateway has")),
    };
    Finding {
        title: match answer {
            1 => "One gateway answers".to_owned(),
            _ => format!("{} agree", count(answer, "gateway")),
        },
        evidence: match answer {
            1 => format!("There is no other to compare it with.{waited_for}"),
            _ => format!(
                "They have the same zones, origins and routes, and the same time.{waited_for}"
            ),
        },
        ..Finding::new(Cause::Fine, Severity::Fine)
    }
}

#[expect(clippy::cast_precision_loss, reason = "it only orders findings")]
fn weight(count: u64) -> f64 {
    count as f64
}
