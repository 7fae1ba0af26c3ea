use std::collections::BTreeMap;

use crate::status::views::{Codes, Keyless, OriginSample, Plain, Sample, ZoneSample};

/// The samples of the last seconds, oldest first.
pub(super) struct Recent<'a> {
    samples: &'a [Sample],
    /// The samples before these: why what was counted in these happened.
    before: &'a [Sample],
}

impl<'a> Recent<'a> {
    /// The last of the samples, at most so many.
    pub(super) fn last_of(samples: &'a [Sample], count: usize) -> Self {
        let (before, samples) = samples.split_at(samples.len().saturating_sub(count));
        Self { samples, before }
    }

    /// The sample of the last second. `None` until there are two: the counts of the first one are
    /// those of a time that nobody knows.
    pub(super) fn last(&self) -> Option<&'a Sample> {
        match self.samples {
            [_, .., last] => Some(last),
            _ => None,
        }
    }

    /// The last three seconds: what happens now, and no longer what has ended.
    pub(super) fn now(&self) -> Self {
        Self::last_of(self.samples, 3)
    }

    /// What the last sample has that has it, of the origin of this name.
    pub(super) fn latest<T>(
        &self,
        name: &Plain,
        what: impl Fn(&OriginSample) -> Option<T>,
    ) -> Option<T> {
        let samples = self.samples.iter().rev().flat_map(|it| &it.origins);
        let mut origins = samples.filter(|origin| origin.name == *name);
        origins.find_map(what)
    }

    /// Whether the origin of this name has answered here, in a second after the one in which it
    /// became like this.
    pub(super) fn has_answers_since(
        &self,
        name: &Plain,
        is_like: impl Fn(&OriginSample) -> bool,
    ) -> bool {
        let samples = self.samples.iter().rev().chain(self.before.iter().rev());
        let origins = samples.flat_map(|it| &it.origins);
        let like = origins
            .filter(|origin| origin.name == *name)
            .take_while(|origin| is_like(origin));
        let like: Vec<_> = like.take(self.samples.len() + 1).collect();
        let after = like.split_last().map_or(&[][..], |(_, after)| after);
        after.iter().any(|origin| origin.latency.p50.is_some())
    }

    /// Whether all client connections were in use in these seconds.
    pub(super) fn was_full(&self) -> bool {
        self.samples.iter().any(|sample| sample.connections.is_full)
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

    /// Whether the zone of this name was paused in these seconds, and is no longer.
    pub(super) fn was_resumed(&self, name: &Plain) -> bool {
        let is_paused = |it: &Sample| {
            let zone = it.zone(name);
            zone.and_then(|zone| zone.overridden.as_ref())
                .is_some_and(|it| it.pause)
        };
        self.samples.iter().any(is_paused) && !self.samples.last().is_some_and(is_paused)
    }

    /// What was last said of the zone of this name, here or just before.
    ///
    /// Who causes rejections is known only in the second in which they happen, and in the second
    /// in which the cause ends it may be known no more.
    pub(super) fn latest_of_zone<T>(
        &self,
        name: &Plain,
        what: impl Fn(&'a ZoneSample) -> Option<T>,
    ) -> Option<T> {
        let samples = self.samples.iter().rev().chain(self.before.iter().rev());
        let mut zones = samples.filter_map(|it| it.zone(name));
        zones.find_map(what)
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

    /// A sum over the origin of this name.
    pub(super) fn of_origin(&self, name: &Plain, count: impl Fn(&OriginSample) -> u64) -> u64 {
        self.counted_of_origin(name).map(count).sum()
    }

    /// Answers of the origin of this name, and requests that it left without one.
    pub(super) fn ended_at_origin(&self, name: &Plain) -> u64 {
        self.of_origin(name, |it| sum(&it.codes) + sum(&it.errors))
    }

    /// The longest of a time of the origin of this name.
    pub(super) fn longest_of_origin(
        &self,
        name: &Plain,
        time: impl Fn(&OriginSample) -> Option<f64>,
    ) -> Option<f64> {
        let times = self.counted_of_origin(name).filter_map(time);
        times.max_by(f64::total_cmp)
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
        summed(self.counted_of_origin(name).filter_map(counts))
    }

    /// The highest of a count of the origin of this name in the last three seconds, so that what
    /// goes away for a moment does not flicker.
    pub(super) fn lately(&self, name: &Plain, count: impl Fn(&OriginSample) -> u64) -> u64 {
        let samples = self.samples.iter().rev().take(3).flat_map(|it| &it.origins);
        let origins = samples.filter(|origin| origin.name == *name);
        origins.map(count).max().unwrap_or_default()
    }

    fn counted_of_origin(&self, name: &Plain) -> impl Iterator<Item = &'a OriginSample> {
        let samples = self.counted().iter().flat_map(|it| &it.origins);
        samples.filter(move |origin| origin.name == *name)
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
        match self.samples {
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

/// How many answers have a status of this class, such as `5xx`.
pub(super) fn of_class(codes: &Codes, class: &str) -> u64 {
    codes.get(&Plain::from(class)).copied().unwrap_or_default()
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
