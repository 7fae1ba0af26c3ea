//! Overrides of a zone and of single keys: values that apply for a while in place of the file's.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use limit::{Moment, Rate};
use serde::Serialize;

use super::join::Key;
use crate::overrides::{Overridable, Override};

/// Upper bound of the keys of a zone that have an override.
pub const MAX_KEYS: usize = 1_000;

/// Override of a zone or of a key.
pub type ZoneOverride = Override<ZoneValues>;

/// Values of a zone or of a key that can be overridden. Serialized for the API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ZoneValues {
    /// Rate; `None`: the rate of the file or of the plan applies.
    pub rate: Option<Rate>,
    /// Whether the zone or the key is paused: no waiter leaves the queue.
    pub pause: bool,
    /// Dry run on or off; `None`: the setting of the route applies.
    pub dry_run: Option<bool>,
}

impl Overridable for ZoneValues {
    fn named(&self) -> [(&'static str, Option<String>); 3] {
        let dry_run = |on| format!("dry run {}", if on { "on" } else { "off" });
        [
            ("rate", self.rate.map(|rate| format!("rate {rate}"))),
            ("pause", self.pause.then(|| "paused".to_owned())),
            ("dry_run", self.dry_run.map(dry_run)),
        ]
    }
}

/// Overrides of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Override for all keys.
    pub zone: Option<ZoneOverride>,
    /// Overrides for single keys; at most [`MAX_KEYS`].
    pub keys: HashMap<Key, ZoneOverride, RandomState>,
}

impl Overrides {
    /// Returns whether there is no override.
    pub fn is_empty(&self) -> bool {
        self.zone.is_none() && self.keys.is_empty()
    }

    /// Returns whether an override has expired.
    pub fn any_expired(&self, now: Moment) -> bool {
        let mut overrides = self.keys.values().chain(&self.zone);
        overrides.any(|one| one.has_expired(now))
    }

    /// Removes expired overrides. Returns their keys; `None` stands for the whole zone.
    pub fn take_expired(&mut self, now: Moment) -> Vec<Option<Key>> {
        let zone = self.zone.take_if(|zone| zone.has_expired(now));
        let keys = self.keys.extract_if(|_, key| key.has_expired(now));
        let expired_keys = keys.map(|(key, _)| Some(key));
        zone.map(|_| None).into_iter().chain(expired_keys).collect()
    }

    /// Returns the overriding rate of the zone, if there is one.
    pub(super) fn zone_rate(&self) -> Option<Rate> {
        self.zone.as_ref()?.values.rate
    }

    /// Returns the overriding rate of a key, if there is one.
    pub(super) fn rate_of(&self, key: &[u8]) -> Option<Rate> {
        self.keys.get(key)?.values.rate
    }

    /// Returns the end of a key's pause; `None` if neither the key nor the zone is paused.
    pub(super) fn paused_until(&self, key: &[u8]) -> Option<Moment> {
        let overrides = self.keys.get(key).into_iter().chain(&self.zone);
        let pauses = overrides.filter(|one| one.values.pause);
        pauses.map(|pause| pause.until).max()
    }

    /// Returns whether a key is in dry run; `None`: the setting of the route applies.
    pub(super) fn dry_run(&self, key: &[u8]) -> Option<bool> {
        let of_key = self.keys.get(key).and_then(|one| one.values.dry_run);
        of_key.or_else(|| self.zone.as_ref()?.values.dry_run)
    }

    /// Returns whether any override sets the dry run.
    pub(super) fn has_dry_run(&self) -> bool {
        let mut overrides = self.keys.values().chain(&self.zone);
        overrides.any(|one| one.values.dry_run.is_some())
    }
}
