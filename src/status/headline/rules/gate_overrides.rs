//! Gates that are not as in the file for a while.

use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::Recent;
use super::super::words::{count, listed, part, waiting};
use crate::status::views::OriginSample;
use crate::status::views::Suspicion;

pub(super) fn paused_gate(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref()?;
    let it = gate.overridden.as_ref().filter(|it| it.pause)?;
    let name = &origin.name;
    Some(Finding {
        weight: part(gate.depth, 1),
        title: format!("The gate of {name} is paused"),
        evidence: format!(
            "{} paused it until {}; {}.",
            it.by,
            it.until,
            waiting(gate.depth)
        ),
        remedy: "Resume it by undoing the override, or wait until it ends.".to_owned(),
        suspicion: Suspicion::Unnamed,
        ..Finding::about(name, Cause::Paused, Severity::Warn)
    })
}

pub(super) fn overridden_gate(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref()?;
    let it = gate.overridden.as_ref().filter(|it| !it.pause)?;
    let name = &origin.name;
    let rate = it.rate.as_ref().map(|rate| format!("its rate is {rate}"));
    let places = it.max_in_flight;
    let places = places.map(|most| format!("it has {}", count(most, "place")));
    let what: Vec<_> = [rate, places].into_iter().flatten().collect();
    let (until, by) = (&it.until, &it.by);
    let (end, remedy) = match &it.owner {
        Some(owner) => (
            format!("{owner} renews it, set by {by}"),
            "Nothing is to be done: it ends when its owner ends. To end it now, undo the override.",
        ),
        None => (
            format!("until {until}, set by {by}"),
            "Undo the override, or write its numbers into the file.",
        ),
    };
    Some(Finding {
        title: format!("The gate of {name} is not as in the file"),
        evidence: format!("{}, {end}.", listed(&what)),
        remedy: remedy.to_owned(),
        suspicion: Suspicion::Unnamed,
        ..Finding::about(name, Cause::Overridden, Severity::Warn)
    })
}
