//! Sums and maxima over the samples that the rules of the headline read.
//!
//! A *sample* is the status of the gateway in one second. A headline tells the state of the last
//! few.

use std::collections::BTreeMap;

use super::words::{count, whole};
use crate::origin::report::sample::OriginSample;
use crate::status::counts::Labelled;
use crate::status::plain::Plain;
use crate::status::sample::Sample;
use crate::zone::report::sample::{Keyless, ZoneSample};

/// Item of a sample that has a name: a zone or an origin.
pub(crate) trait NamedItem: 'static {
    /// Finds the item of the same name in the sample of another second.
    fn in_second<'s>(&self, second: &'s Sample) -> Option<&'s Self>;
}

impl NamedItem for ZoneSample {
    fn in_second<'s>(&self, second: &'s Sample) -> Option<&'s Self> {
        second.zone(&self.name)
    }
}

impl NamedItem for OriginSample {
    fn in_second<'s>(&self, second: &'s Sample) -> Option<&'s Self> {
        second.origin(&self.name)
    }
}

/// Samples of the last seconds, oldest first.
pub(crate) struct Recent<'a> {
    /// Samples that the rules read.
    samples: &'a [Sample],
    /// Samples before these, which may give the cause of events counted in these.
    before: &'a [Sample],
}

impl<'a> Recent<'a> {
    /// Takes the last samples, at most `count`.
    pub(crate) fn last_of(samples: &'a [Sample], count: usize) -> Self {
        let (before, samples) = samples.split_at(samples.len().saturating_sub(count));
        Self { samples, before }
    }

    /// Returns the sample of the last second.
    ///
    /// `None` until there are two samples: the counts of the first one cover an unknown duration.
    pub(crate) fn last(&self) -> Option<&'a Sample> {
        match self.samples {
            [_, .., last] => Some(last),
            _ => None,
        }
    }

    /// Returns the last known value of a zone or an origin in these seconds.
    pub(crate) fn latest<T: NamedItem, R>(
        &self,
        item: &T,
        value: impl Fn(&'a T) -> Option<R>,
    ) -> Option<R> {
        let mut seconds = self.samples.iter().rev();
        seconds.find_map(|second| value(item.in_second(second)?))
    }

    /// Returns the last known value of a zone or an origin, in these seconds or just before.
    ///
    /// The cause of rejections is known only in the second in which they happen. In the second in
    /// which the cause ends, it may no longer be known.
    pub(crate) fn latest_or_before<T: NamedItem, R>(
        &self,
        item: &T,
        value: impl Fn(&'a T) -> Option<R>,
    ) -> Option<R> {
        let mut seconds = self.samples.iter().rev().chain(self.before.iter().rev());
        seconds.find_map(|second| value(item.in_second(second)?))
    }

    /// Returns whether all client connections were in use in these seconds.
    pub(crate) fn was_full(&self) -> bool {
        self.samples.iter().any(|sample| sample.connections.is_full)
    }

    /// Returns the number of seconds that the sums cover.
    pub(crate) fn seconds(&self) -> f64 {
        self.counted().len().max(1) as f64
    }

    /// Formats a share, such as `3 of 7 requests in the last 3 s`.
    pub(crate) fn share_of(&self, part: u64, all: u64, noun: &str) -> String {
        let (part, all) = (whole(part), count(all, noun));
        format!("{part} of {all} in the last {:.0} s", self.seconds())
    }

    /// Returns a zone or an origin in each second whose counts are known.
    fn each<T: NamedItem>(&self, item: &T) -> impl Iterator<Item = &'a T> {
        self.counted().iter().filter_map(|it| item.in_second(it))
    }

    /// Sums a count of a zone or an origin.
    pub(crate) fn total<T: NamedItem>(&self, item: &T, count: impl Fn(&T) -> u64) -> u64 {
        self.each(item).map(count).sum()
    }

    /// Returns the number of requests of a zone that had a key and whose outcome is known.
    pub(crate) fn came(&self, zone: &ZoneSample) -> u64 {
        let ended = |it: &ZoneSample| it.out() + it.rejected + it.cancelled + it.rejected_elsewhere;
        self.total(zone, ended)
    }

    /// Returns the maximum of a duration of a zone or an origin.
    pub(crate) fn longest<T: NamedItem>(
        &self,
        item: &T,
        time: impl Fn(&T) -> Option<f64>,
    ) -> Option<f64> {
        self.each(item).filter_map(time).max_by(f64::total_cmp)
    }

    /// Sums the labelled counts of a zone or an origin, label by label.
    pub(crate) fn counts<T: NamedItem>(
        &self,
        item: &T,
        counts: impl Fn(&T) -> Option<&BTreeMap<Plain, u64>>,
    ) -> BTreeMap<Plain, u64> {
        summed(self.each(item).filter_map(counts))
    }

    /// Returns whether a zone was paused in these seconds and no longer is.
    pub(crate) fn was_resumed(&self, zone: &ZoneSample) -> bool {
        let is_paused = |second: &Sample| {
            let zone = zone.in_second(second);
            let overridden = zone.and_then(|zone| zone.overridden.as_ref());
            overridden.is_some_and(|overridden| overridden.values.pause)
        };
        self.samples.iter().any(is_paused) && !self.samples.last().is_some_and(is_paused)
    }

    /// Returns how a zone defines its key, if a request had none.
    pub(crate) fn keyless(&self, zone: &ZoneSample) -> Option<&'a Keyless> {
        let keyless = self.each(zone).filter_map(|it| it.keyless.as_ref());
        keyless.last()
    }

    /// Returns the maximum p95 of the waits in a zone, if any request waited.
    pub(crate) fn longest_wait(&self, zone: &ZoneSample) -> Option<f64> {
        self.longest(zone, |it| it.wait_p95.filter(|_| it.delayed > 0))
    }

    /// Returns the number of responses of an origin and of its requests without a response.
    pub(crate) fn ended_at_origin(&self, origin: &OriginSample) -> u64 {
        self.total(origin, |it| sum(&it.codes) + sum(&it.errors))
    }

    /// Returns the maximum of a count of an origin in these seconds: a short dip does not show.
    pub(crate) fn lately(
        &self,
        origin: &OriginSample,
        count: impl Fn(&OriginSample) -> u64,
    ) -> u64 {
        let origins = self.samples.iter().filter_map(|it| origin.in_second(it));
        origins.map(count).max().unwrap_or_default()
    }

    /// Sums a count of the process.
    pub(crate) fn of_process(&self, count: impl Fn(&Sample) -> u64) -> u64 {
        self.counted().iter().map(count).sum()
    }

    /// Returns the number of responses to clients, by status class.
    pub(crate) fn codes(&self) -> Labelled {
        summed(self.counted().iter().map(|it| &it.codes))
    }

    /// Returns the number of operations in the store, by result.
    pub(crate) fn operations(&self) -> BTreeMap<Plain, u64> {
        let stores = self.counted().iter().filter_map(|it| it.store.as_ref());
        summed(stores.map(|store| &store.operations))
    }

    /// Returns the samples whose counts cover exactly one second: not the first one of the process.
    fn counted(&self) -> &'a [Sample] {
        match self.samples {
            [first, rest @ ..] if first.seq <= 1 => rest,
            samples => samples,
        }
    }
}

/// Sums labelled counts.
fn summed<'a>(counts: impl Iterator<Item = &'a BTreeMap<Plain, u64>>) -> BTreeMap<Plain, u64> {
    let mut sums = BTreeMap::new();
    for (name, count) in counts.flatten() {
        *sums.entry(name.clone()).or_default() += count;
    }
    sums
}

/// Returns the number of responses of a status class, such as `5xx`.
pub(crate) fn of_class(codes: &Labelled, class: &str) -> u64 {
    codes.get(&Plain::from(class)).copied().unwrap_or_default()
}

/// Sums all counts.
pub(crate) fn sum(counts: &BTreeMap<Plain, u64>) -> u64 {
    counts.values().sum()
}

/// Returns the name with the highest count, if any count is above 0.
pub(crate) fn most(counts: &BTreeMap<Plain, u64>) -> Option<&Plain> {
    let counted = counts.iter().filter(|(_, count)| **count > 0);
    counted
        .max_by_key(|(_, count)| **count)
        .map(|(name, _)| name)
}
