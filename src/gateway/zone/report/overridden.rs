//! Overrides of zones and keys, as the API and the samples show them.

use super::sample;
use crate::observe::key_names::KeyNames;
use crate::status::plain::Plain;
use crate::status::timestamp::timestamp;
use crate::zone::{Key, Override, Zone};

/// Status of an override.
pub(crate) fn view(it: &Override) -> sample::Override {
    sample::Override {
        rate: it.rate.map(|rate| Plain::new(&rate.to_string())),
        pause: it.pause,
        dry_run: it.dry_run,
        since: timestamp(it.since),
        until: timestamp(it.until),
        by: Plain::new(&it.by),
    }
}

/// Name of an overridden zone or key in the history of changes.
pub(crate) fn subject(zone: &Zone, key: Option<&Key>) -> String {
    let zone = zone.settings();
    let name = &zone.name;
    match key {
        None => format!("zones.{name}"),
        Some(key) => format!("zones.{name}, key {}", KeyNames::of(zone).short(key)),
    }
}
