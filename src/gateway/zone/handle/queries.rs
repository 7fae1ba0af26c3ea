//! Queries that all supervisors of a zone answer together.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use limit::{Measure, Window};
use tokio::time::sleep;

use super::Zone;
use crate::time::clock;
use crate::zone::arrivals::Arrivals;
use crate::zone::heavy::HeavyKeys;
use crate::zone::join::Key;
use crate::zone::stats::{KeyState, Order, Top, ZoneStats};
use crate::zone::supervisor::ZoneSupervisor;

/// Index at which walks begin; they run from the last key to the first.
const FROM_THE_END: usize = usize::MAX;
/// Least pause between two steps of a walk. The actor handles other messages meanwhile.
pub(super) const MIN_PAUSE: Duration = Duration::from_millis(1);

impl Zone {
    /// Returns the zone's state, with the `limit` deepest keys.
    ///
    /// Visits only keys with waiters.
    pub async fn stats(&self, limit: usize) -> ZoneStats {
        let mut stats = ZoneStats::default();
        let mut deepest = Top::new(Order::Depth, limit);
        let step = |zone: &mut _, before| ZoneSupervisor::stats(zone, before);
        self.walk(
            Duration::ZERO,
            step,
            async |(part, keys): (ZoneStats, Vec<KeyState>)| {
                stats.add(&part);
                for state in keys {
                    stats.depth_max = stats.depth_max.max(state.depth);
                    stats.oldest_wait = stats.oldest_wait.max(state.oldest_wait);
                    deepest.show(state);
                }
                true
            },
        )
        .await;
        stats.deepest = deepest.into_sorted();
        stats
    }

    /// Returns the first `limit` keys by `order`.
    ///
    /// Visits all remembered keys.
    pub async fn keys(&self, order: Order, limit: usize) -> Vec<KeyState> {
        let mut top = Top::new(order, limit);
        let step = |zone: &mut _, before| ZoneSupervisor::list(zone, before);
        self.walk(MIN_PAUSE, step, async |keys: Vec<KeyState>| {
            for state in keys {
                top.show(state);
            }
            true
        })
        .await;
        top.into_sorted()
    }

    /// Returns the keys with this [masked name](config::Zone::masked): one, unless names collide.
    ///
    /// Finds keys that are remembered, have an override or are among the heaviest. Visits all
    /// remembered keys.
    pub async fn masked_keys(&self, name: &str) -> BTreeSet<Key> {
        let zone = Arc::clone(&self.settings);
        let has_name = |key: &&Key| zone.masked(key).as_deref() == Some(name);
        let overrides = self.overrides();
        let overridden = overrides.keys.keys().filter(has_name);
        let mut found: BTreeSet<Key> = overridden.cloned().collect();
        for measure in [Measure::Requests, Measure::Rejections, Measure::Waits] {
            let heavy = self.heavy_keys(measure, Window::TenMinutes, usize::MAX);
            let heavy = heavy.await.keys.into_iter();
            let whole = heavy.filter_map(|heavy| heavy.name.whole().cloned());
            found.extend(whole.filter(|key| has_name(&key)));
        }
        let asked = (Arc::clone(&zone), Arc::<str>::from(name));
        let step = move |supervisor: &mut _, before| {
            let (zone, name) = &asked;
            ZoneSupervisor::find_masked(supervisor, before, zone, name)
        };
        self.walk(MIN_PAUSE, step, async |keys: Vec<Key>| {
            found.extend(keys);
            true
        })
        .await;
        found
    }

    /// Returns the first `limit` keys of a window by a measure, over all workers.
    pub async fn heavy_keys(&self, measure: Measure, window: Window, limit: usize) -> HeavyKeys {
        let mut heavy = HeavyKeys::default();
        for supervisor in self.shards.living() {
            let its = supervisor.ask(move |zone| zone.heaviest(measure, window, limit));
            // A supervisor without an answer has ended.
            if let Ok(its) = its.await {
                heavy.merge(its, measure, limit);
            }
        }
        heavy
    }

    /// Returns the arrivals of the last ten minutes.
    pub async fn arrivals(&self) -> Arrivals {
        let mut all = Arrivals::none(self.shards.started);
        for supervisor in self.shards.living() {
            if let Ok(arrivals) = supervisor.ask(|zone| zone.arrivals()).await {
                all.add(arrivals);
            }
        }
        all
    }

    /// Walks over the keys of all supervisors from the last one to the first, a few in a `step`.
    ///
    /// A step begins just before the index that it is given. It returns what it found and the index
    /// to continue from, 0 at the end. After each step there is a pause as long as the step took,
    /// and at least `pause`, so that requests have at least half of the workers' time. The walk
    /// ends early if `take` returns `false`. A supervisor that panics ends its part.
    pub(super) async fn walk<T: Send + 'static>(
        &self,
        pause: Duration,
        step: impl Fn(&mut ZoneSupervisor, usize) -> (T, usize) + Clone + Send + 'static,
        mut take: impl AsyncFnMut(T) -> bool,
    ) {
        for supervisor in self.shards.living() {
            let mut before = FROM_THE_END;
            while before > 0 {
                let (began, step) = (clock::now(), step.clone());
                let Ok((found, next)) = supervisor.ask(move |zone| step(zone, before)).await else {
                    break;
                };
                let took = clock::now().since(began);
                if !take(found).await {
                    return;
                }
                before = next;
                if before > 0 {
                    // A shorter sleep is not possible: a timer takes a millisecond or two.
                    if pause.max(took) >= MIN_PAUSE {
                        sleep(pause.max(took)).await;
                    }
                }
            }
        }
    }
}
