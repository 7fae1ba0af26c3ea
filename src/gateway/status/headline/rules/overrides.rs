//! Rules for pauses, maintenance and overrides that operators have set.
//!
//! An override is values that apply in place of the configured ones, until they expire.

use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::Recent;
use super::super::words::{count, listed, part, waiting};
use crate::origin::report::sample::OriginSample;
use crate::overrides::{Overridable, Override};
use crate::room::report::rules::visitors_wait;
use crate::status::headline::finding::Suspicion;
use crate::status::plain::Plain;
use crate::status::sample::Sample;
use crate::status::timestamp::timestamp;
use crate::zone::report::sample::ZoneSample;

/// Rule: routes are in maintenance.
pub(super) fn maintenance(_: &Recent<'_>, now: &Sample) -> Option<Finding> {
    let maintenance = now.maintenance.as_ref()?;
    let (by, until) = (&maintenance.by, &maintenance.until);
    let title = match &maintenance.route {
        None => "All routes are in maintenance".to_owned(),
        Some(route) if maintenance.routes < 2 => format!("{route} is in maintenance"),
        Some(_) => format!("{} are in maintenance", count(maintenance.routes, "route")),
    };
    Some(Finding {
        title,
        evidence: format!("{by} set it until {until}; requests get 503."),
        remedy: "Undo it, or wait until it ends.".to_owned(),
        suspicion: Suspicion::Unnamed,
        ..Finding::new(Cause::Paused, Severity::Warn)
    })
}

/// Rule: a zone has overrides.
pub(super) fn zone(_: &Recent<'_>, zone: &ZoneSample) -> Option<Finding> {
    let (name, set) = (&zone.name, zone.overridden.as_ref());
    if let Some(pause) = set.filter(|set| set.values.pause) {
        let title = format!("{name} is paused");
        return Some(find_pause(name, title, pause, zone.depth));
    }
    let mut texts = set.map_or(Vec::new(), |set| set.values.texts());
    if zone.overridden_keys > 0 {
        let keys = count(zone.overridden_keys, "key");
        texts.push(format!("{keys} with numbers of their own"));
    }
    let end = set.map_or(String::new(), describe_end);
    (!texts.is_empty()).then(|| find_override(name, name.as_str(), &texts, &end))
}

/// Rule: a gate has an override.
pub(super) fn gate(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let (name, gate) = (&origin.name, origin.gate.as_ref()?);
    let set = gate.overridden.as_ref()?;
    if set.values.pause {
        let title = format!("The gate of {name} is paused");
        return Some(find_pause(name, title, set, gate.depth));
    }
    let subject = format!("The gate of {name}");
    let found = find_override(name, &subject, &set.values.texts(), &describe_end(set));
    Some(match set.owner {
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
    let set = room.room.overridden.as_ref()?;
    if set.values.pause && room.room.waiting > 0 {
        let visitors = visitors_wait(room);
        let title = format!("Calling is paused in the waiting room of {name} while {visitors}");
        return Some(Finding {
            weight: part(room.room.waiting, 1),
            evidence: format!("{} paused it until {}.", set.by, timestamp(set.until)),
            remedy: format!("{RESUME} A word tells those who wait why."),
            ..find_pause(name, title, set, 0)
        });
    }
    let subject = format!("The waiting room of {name}");
    let texts = set.values.texts();
    Some(find_override(name, &subject, &texts, &describe_end(set)))
}

/// Advice to end a pause.
const RESUME: &str = "Resume it by undoing the override, or wait until it ends.";

/// Formats the end and the author of an override, as the end of a sentence.
fn describe_end<V>(overridden: &Override<V>) -> String {
    let (until, by) = (timestamp(overridden.until), &overridden.by);
    match &overridden.owner {
        Some(owner) => format!(", {owner} renews it, set by {by}"),
        None => format!(", until {until}, set by {by}"),
    }
}

/// Describes a pause of a zone or a gate with `depth` waiters.
fn find_pause<V>(name: &Plain, title: String, pause: &Override<V>, depth: u64) -> Finding {
    let (until, by) = (timestamp(pause.until), &pause.by);
    Finding {
        weight: part(depth, 1),
        title,
        evidence: format!("{by} paused it until {until}; {}.", waiting(depth)),
        remedy: RESUME.to_owned(),
        suspicion: Suspicion::Unnamed,
        ..Finding::about(name, Cause::Paused, Severity::Warn)
    }
}

/// Describes an override with these values. `end`: text of its expiry and author.
fn find_override(name: &Plain, subject: &str, values: &[String], end: &str) -> Finding {
    Finding {
        title: format!("{subject} is not as in the file"),
        evidence: format!("{}{end}.", listed(values)),
        remedy: "Undo the override, or write its numbers into the file.".to_owned(),
        suspicion: Suspicion::Unnamed,
        ..Finding::about(name, Cause::Overridden, Severity::Warn)
    }
}
