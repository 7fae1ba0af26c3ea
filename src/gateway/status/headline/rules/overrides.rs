//! Rules for pauses, maintenance and overrides that operators have set.

use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::Recent;
use super::super::words::{count, listed, part, waiting};
use crate::origin::report::sample::OriginSample;
use crate::room::report::rules::visitors_wait;
use crate::status::headline::sample::Suspicion;
use crate::status::plain::Plain;
use crate::status::sample::Sample;
use crate::zone::report::sample::ZoneSample;

/// Rule: routes are in maintenance.
pub(super) fn maintenance(_: &Recent<'_>, now: &Sample) -> Option<Finding> {
    let it = now.maintenance.as_ref()?;
    let title = match &it.route {
        None => "All routes are in maintenance".to_owned(),
        Some(route) if it.routes < 2 => format!("{route} is in maintenance"),
        Some(_) => format!("{} are in maintenance", count(it.routes, "route")),
    };
    Some(Finding {
        title,
        evidence: format!("{} set it until {}; requests get 503.", it.by, it.until),
        remedy: "Undo it, or wait until it ends.".to_owned(),
        suspicion: Suspicion::Unnamed,
        ..Finding::new(Cause::Paused, Severity::Warn)
    })
}

/// Rule: a zone has overrides.
pub(super) fn zone(_: &Recent<'_>, zone: &ZoneSample) -> Option<Finding> {
    let (name, it) = (&zone.name, zone.overridden.as_ref());
    if let Some(it) = it.filter(|it| it.pause) {
        let title = format!("{name} is paused");
        return Some(paused(name, title, (&it.by, &it.until), zone.depth));
    }
    let rate = it.and_then(|it| it.rate.as_ref());
    let rate = rate.map(|rate| format!("its rate is {rate}"));
    let dry_run = it.and_then(|it| it.dry_run);
    let dry_run = dry_run.map(|on| format!("dry run is {}", if on { "on" } else { "off" }));
    let keys = count(zone.overridden_keys, "key");
    let keys = (zone.overridden_keys > 0).then(|| format!("{keys} with numbers of their own"));
    let until = it.map_or(String::new(), |it| {
        format!(", until {}, set by {}", it.until, it.by)
    });
    overridden(name, name.as_str(), [rate, dry_run, keys], &until)
}

/// Rule: a gate has an override.
pub(super) fn gate(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let (name, gate) = (&origin.name, origin.gate.as_ref()?);
    let it = gate.overridden.as_ref()?;
    let (by, until) = (&it.by, &it.until);
    if it.pause {
        let title = format!("The gate of {name} is paused");
        return Some(paused(name, title, (by, until), gate.depth));
    }
    let rate = it.rate.as_ref().map(|rate| format!("its rate is {rate}"));
    let permits = it.max_in_flight;
    let permits = permits.map(|most| format!("its `max_in_flight` is {most}"));
    let end = match &it.owner {
        Some(owner) => format!(", {owner} renews it, set by {by}"),
        None => format!(", until {until}, set by {by}"),
    };
    let found = overridden(name, &format!("The gate of {name}"), [rate, permits], &end)?;
    Some(match it.owner {
        None => found,
        Some(_) => Finding {
            remedy: "Nothing is to be done: it ends when its owner ends. To end it now, undo the override."
                .to_owned(),
            ..found
        },
    })
}

/// Rule: a waiting room has an override.
pub(super) fn room(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let (name, room) = (&origin.name, origin.room.as_ref()?);
    let it = room.room.overridden.as_ref()?;
    let (by, until) = (&it.by, &it.until);
    if it.pause && room.room.waiting > 0 {
        let visitors = visitors_wait(room);
        return Some(Finding {
            weight: part(room.room.waiting, 1),
            title: format!("Calling is paused in the waiting room of {name} while {visitors}"),
            evidence: format!("{by} paused it until {until}."),
            remedy: format!("{RESUME} A word tells those who wait why."),
            ..paused(name, String::new(), (by, until), 0)
        });
    }
    let sessions = it.sessions.map(|it| match it {
        0 => "its sessions are not bounded".to_owned(),
        number => format!("it has {}", count(number, "place")),
    });
    let admit = it.admit.as_ref();
    let admit = admit.map(|admit| format!("its pace is {admit}"));
    let pause = it.pause.then(|| "calling is paused".to_owned());
    let (title, end) = (
        format!("The waiting room of {name}"),
        format!(", until {until}, set by {by}"),
    );
    overridden(name, &title, [sessions, admit, pause], &end)
}

/// Advice to end a pause.
const RESUME: &str = "Resume it by undoing the override, or wait until it ends.";

/// Finding for a pause. `by`: author, and expiry.
fn paused(name: &Plain, title: String, (by, until): (&Plain, &Plain), depth: u64) -> Finding {
    Finding {
        weight: part(depth, 1),
        title,
        evidence: format!("{by} paused it until {until}; {}.", waiting(depth)),
        remedy: RESUME.to_owned(),
        suspicion: Suspicion::Unnamed,
        ..Finding::about(name, Cause::Paused, Severity::Warn)
    }
}

/// Finding for overrides; `None` without any. `end`: expiry, and author.
fn overridden<const N: usize>(
    name: &Plain,
    whole: &str,
    what: [Option<String>; N],
    end: &str,
) -> Option<Finding> {
    let what: Vec<_> = what.into_iter().flatten().collect();
    (!what.is_empty()).then(|| Finding {
        title: format!("{whole} is not as in the file"),
        evidence: format!("{}{end}.", listed(&what)),
        remedy: "Undo the override, or write its numbers into the file.".to_owned(),
        suspicion: Suspicion::Unnamed,
        ..Finding::about(name, Cause::Overridden, Severity::Warn)
    })
}
