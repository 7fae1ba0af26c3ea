//! Counts of the events in histories.

use std::collections::BTreeMap;

/// Names of the events. Each must happen often.
const EVENTS: &str = "kept|stale|refresh|led|probed|followed|alone|shared|failed|own answer|promoted|\
    dropped|unshareable|stale at failure|stood in|abandoned|released|left|left last|evicted";

/// Number of occurrences of each event.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    pub(super) fn count(&mut self, event: &'static str) {
        *self.0.entry(event).or_default() += 1;
    }

    pub fn add(&mut self, other: &Self) {
        for (event, count) in &other.0 {
            *self.0.entry(event).or_default() += count;
        }
    }

    pub(super) fn least(&self) -> u64 {
        let counts = EVENTS.split('|').map(|it| self.0.get(it).copied());
        counts.min().flatten().unwrap_or_default()
    }
}
