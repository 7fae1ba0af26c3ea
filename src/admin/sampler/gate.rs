use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;

use super::lefts::Lefts;
use super::seconds;
use crate::admin::gates;
use crate::admin::views::{FileAndNow, GateKeySample, GateRefused, GateSample, Plain};
use crate::http::gateway::Gateway;
use crate::http::upstream::{Origin, OriginGate};
use crate::observe::metrics::Counts;
use crate::time::clock;

/// How many of the deepest keys of a gate are in a sample.
const DEEPEST: usize = 5;

/// The counts of each gate one second ago, by its origin.
#[derive(Default)]
pub(super) struct Gates {
    before: HashMap<String, Counted>,
    now: HashMap<String, Counted>,
}

/// The counts of a gate.
#[derive(Clone, Default)]
struct Counted {
    rejections: BTreeMap<Plain, u64>,
    blocked: BTreeMap<Plain, f64>,
    waits: Counts,
    lefts: Counts,
}

impl Gates {
    /// Begins a new second.
    pub(super) fn begin(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// The gate of an origin in the last second.
    pub(super) fn sample(
        &mut self,
        gateway: &Gateway,
        origin: &Origin,
        gate: &OriginGate,
    ) -> GateSample {
        let settings = origin.settings();
        let state = gate.state(DEEPEST);
        let now = Counted {
            rejections: gates::rejections(gate),
            blocked: gates::blocked_seconds(&state.blocked),
            waits: gate.metrics().waits(),
            lefts: gate.metrics().lefts(),
        };
        let past = self.before.remove(&settings.name).unwrap_or_default();
        let waits = now.waits.since(&past.waits);
        let Lefts { left, left_after } = Lefts::of(&now.lefts.since(&past.lefts));
        let sample = GateSample {
            depth: state.depth as u64,
            rate: FileAndNow {
                file: settings.rate.map(crate::limit::Rate::per_second),
                now: state.rate.map(crate::limit::Rate::per_second),
            },
            max_in_flight: FileAndNow {
                file: settings.max_in_flight.map(NonZeroUsize::get).map(widen),
                now: state.max_in_flight.map(widen),
            },
            rejected: grown(&now.rejections, &past.rejections),
            blocked: grown_by(&now.blocked, &past.blocked, |now, then| {
                let micros = ((now - then) * 1e6).round() / 1e6;
                if micros < 0.0 { now } else { micros }
            }),
            wait_p50: waits.quantile(0.5).map(seconds),
            wait_p99: waits.quantile(0.99).map(seconds),
            left,
            left_after,
            backing_off: gates::backing_off(settings, &state.lowered, clock::now()),
            outage: gates::outage(settings, state.outage.as_ref(), clock::now()),
            refused: state.sharing.as_ref().and_then(|sharing| {
                let why = sharing.why_alone.as_ref().filter(|why| why.is_answer)?;
                Some(GateRefused {
                    part: sharing.part,
                    reason: Plain::new(&why.reason),
                    remedy: why.remedy.into(),
                })
            }),
            classes: gates::classes(&state.classes),
            deepest: state
                .deepest
                .iter()
                .map(|(key, depth)| GateKeySample {
                    key: gates::key_name(gateway, key),
                    plan: gates::plan(gateway, key),
                    depth: widen(*depth),
                })
                .collect(),
        };
        self.now.insert(settings.name.clone(), now);
        sample
    }
}

fn widen(count: usize) -> u64 {
    count as u64
}

/// What each count has grown by, without those that have not.
pub(super) fn grown(
    now: &BTreeMap<Plain, u64>,
    past: &BTreeMap<Plain, u64>,
) -> BTreeMap<Plain, u64> {
    // What left the file and came back counts from zero again.
    grown_by(now, past, |now, then| now.checked_sub(then).unwrap_or(now))
}

fn grown_by<N: Copy + Default + PartialOrd>(
    now: &BTreeMap<Plain, N>,
    past: &BTreeMap<Plain, N>,
    since: impl Fn(N, N) -> N,
) -> BTreeMap<Plain, N> {
    let each = now.iter().map(|(name, count)| {
        let before = past.get(name).copied().unwrap_or_default();
        (name.clone(), since(*count, before))
    });
    each.filter(|(_, by)| *by > N::default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_not_grown_is_left_out_and_a_restart_counts_from_zero() {
        let counts = |a, b| BTreeMap::from([("a".into(), a), ("b".into(), b)]);
        let seen = grown(&counts(7, 2), &counts(4, 2));
        assert_eq!(seen, BTreeMap::from([("a".into(), 3)]));
        let again = grown(&counts(1, 0), &counts(4, 2));
        assert_eq!(again, BTreeMap::from([("a".into(), 1)]));
    }
}
