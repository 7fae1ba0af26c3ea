use std::collections::BTreeMap;

use crate::admin::views::{Codes, Keyless, OriginSample, Plain, Sample, ZoneSample};

/// The samples of the last seconds, oldest first.
pub(super) struct Recent<'a>(&'a [Sample]);

impl<'a> Recent<'a> {
    pub(super) fn new(samples: &'a [Sample]) -> Self {
        Self(samples)
    }

    /// The sample of the last second. `None` until there are two: the counts of the first one are
    /// those of a time that nobody knows.
    pub(super) fn last(&self) -> Option<&'a Sample> {
        match self.0 {
            [_, .., last] => Some(last),
            _ => None,
        }
    }

    /// The last three seconds: what happens now, and no longer what has ended.
    pub(super) fn now(&self) -> Self {
        Self(&self.0[self.0.len().saturating_sub(3)..])
    }

    /// What the last sample has that has it, of the origin of this name.
    pub(super) fn latest<T>(
        &self,
        name: &Plain,
        what: impl Fn(&OriginSample) -> Option<T>,
    ) -> Option<T> {
        let samples = self.0.iter().rev().flat_map(|it| &it.origins);
        let mut origins = samples.filter(|origin| origin.name == *name);
        origins.find_map(what)
    }

    /// How many seconds the sums are about.
    #[expect(clippy::cast_precision_loss, reason = "three at most")]
    pub(super) fn seconds(&self) -> f64 {
        self.counted().len().max(1) as f64
    }

    /// A sum over the zone of this name.
    pub(super) fn of_zone(&self, name: &Plain, count: impl Fn(&ZoneSample) -> u64) -> u64 {
        let zones = self.counted().iter().filter_map(|it| it.zone(name));
        zones.map(count).sum()
    }

    /// What the key of the zone of this name is made of, if a request had none.
    pub(super) fn keyless(&self, name: &Plain) -> Option<&'a Keyless> {
        let mut zones = self.counted().iter().rev().filter_map(|it| it.zone(name));
        zones.find_map(|zone| zone.keyless.as_ref())
    }

    /// The longest p95 of the waits in the zone of this name, if any request waited.
    pub(super) fn longest_wait(&self, name: &Plain) -> Option<f64> {
        self.longest_of_zone(name, |zone| zone.wait_p95.filter(|_| zone.delayed > 0))
    }

    /// The longest of a time of the zone of this name.
    pub(super) fn longest_of_zone(
        &self,
        name: &Plain,
        time: impl Fn(&ZoneSample) -> Option<f64>,
    ) -> Option<f64> {
        let zones = self.counted().iter().filter_map(|it| it.zone(name));
        zones.filter_map(time).max_by(f64::total_cmp)
    }

    /// The sum of each count of the zone of this name.
    pub(super) fn counts_of_zone(
        &self,
        name: &Plain,
        counts: impl Fn(&ZoneSample) -> &BTreeMap<Plain, u64>,
    ) -> BTreeMap<Plain, u64> {
        let zones = self.counted().iter().filter_map(|it| it.zone(name));
        summed(zones.map(counts))
    }

    /// The sum of each count of the origin of this name.
    pub(super) fn counts_of_origin(
        &self,
        name: &Plain,
        counts: impl Fn(&OriginSample) -> Option<&BTreeMap<Plain, u64>>,
    ) -> BTreeMap<Plain, u64> {
        let samples = self.counted().iter().flat_map(|it| &it.origins);
        let origins = samples.filter(|origin| origin.name == *name);
        summed(origins.filter_map(counts))
    }

    /// The highest of a count of the origin of this name in the last three seconds, so that what
    /// goes away for a moment does not flicker.
    pub(super) fn lately(&self, name: &Plain, count: impl Fn(&OriginSample) -> u64) -> u64 {
        let samples = self.0.iter().rev().take(3).flat_map(|it| &it.origins);
        let origins = samples.filter(|origin| origin.name == *name);
        origins.map(count).max().unwrap_or_default()
    }

    /// A sum over the process.
    pub(super) fn of_process(&self, count: impl Fn(&Sample) -> u64) -> u64 {
        self.counted().iter().map(count).sum()
    }

    /// Answers to clients, by class of their status.
    pub(super) fn codes(&self) -> Codes {
        summed(self.counted().iter().map(|it| &it.codes))
    }

    /// Operations in the store, by result.
    pub(super) fn operations(&self) -> BTreeMap<Plain, u64> {
        let stores = self.counted().iter().filter_map(|it| it.store.as_ref());
        summed(stores.map(|store| &store.operations))
    }

    /// The samples whose counts are those of one second.
    fn counted(&self) -> &'a [Sample] {
        match self.0 {
            [first, rest @ ..] if first.seq <= 1 => rest,
            all => all,
        }
    }
}

fn summed<'a>(all: impl Iterator<Item = &'a BTreeMap<Plain, u64>>) -> BTreeMap<Plain, u64> {
    let mut sums = BTreeMap::new();
    for (name, count) in all.flatten() {
        *sums.entry(name.clone()).or_default() += count;
    }
    sums
}

/// The sum of all counts.
pub(super) fn sum(counts: &BTreeMap<Plain, u64>) -> u64 {
    counts.values().sum()
}

/// The name with the highest count.
pub(super) fn most(counts: &BTreeMap<Plain, u64>) -> Option<&Plain> {
    let counted = counts.iter().filter(|(_, count)| **count > 0);
    counted
        .max_by_key(|(_, count)| **count)
        .map(|(name, _)| name)
}
