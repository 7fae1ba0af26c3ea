//! What differs from the file for a while: for a whole zone, or for some of its keys.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use limit::{Moment, Rate};

use super::join::Key;

/// The most keys of a zone that have an override of their own.
pub const MAX_KEYS: usize = 1_000;

/// What differs from the file until it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// `None`: the rate of the file, or of the plan.
    pub rate: Option<Rate>,
    /// Nothing leaves the queue.
    pub pause: bool,
    /// `None`: as the route says.
    pub dry_run: Option<bool>,
    /// When it was set.
    pub since: Moment,
    /// When it ends.
    pub until: Moment,
    /// Who set it.
    pub by: String,
}

/// The overrides of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// For all keys.
    pub zone: Option<Override>,
    /// For one key each; at most [`MAX_KEYS`].
    pub keys: HashMap<Key, Override, RandomState>,
}

impl Overrides {
    /// Whether nothing differs from the file.
    pub fn is_empty(&self) -> bool {
        self.zone.is_none() && self.keys.is_empty()
    }

    /// Whether any is over.
    pub fn any_expired(&self, now: Moment) -> bool {
        let mut all = self.keys.values().chain(&self.zone);
        all.any(|it| it.until <= now)
    }

    /// Removes those that are over. Returns their keys; `None` stands for the whole zone.
    pub fn take_expired(&mut self, now: Moment) -> Vec<Option<Key>> {
        let of_zone = self.zone.take_if(|it| it.until <= now).map(|_| None);
        let of_keys = self.keys.extract_if(|_, it| it.until <= now);
        let of_keys = of_keys.map(|(key, _)| Some(key));
        of_zone.into_iter().chain(of_keys).collect()
    }

    /// The rate of the zone, if that differs.
    pub(super) fn zone_rate(&self) -> Option<Rate> {
        self.zone.as_ref()?.rate
    }

    /// The rate of a key that has one of its own.
    pub(super) fn rate_of(&self, key: &[u8]) -> Option<Rate> {
        self.keys.get(key)?.rate
    }

    /// Until when a key is paused; `None` if it is not.
    pub(super) fn paused_until(&self, key: &[u8]) -> Option<Moment> {
        let own = self.keys.get(key);
        let all = own.into_iter().chain(&self.zone);
        all.filter(|it| it.pause).map(|it| it.until).max()
    }

    /// Whether requests of a key only pass as in a dry run; `None`: as their route says.
    pub(super) fn dry_run(&self, key: &[u8]) -> Option<bool> {
        let own = self.keys.get(key).and_then(|it| it.dry_run);
        own.or_else(|| self.zone.as_ref()?.dry_run)
    }

    /// Whether any says something about the dry run.
    pub(super) fn has_dry_run(&self) -> bool {
        let mut all = self.keys.values().chain(&self.zone);
        all.any(|it| it.dry_run.is_some())
    }
}
