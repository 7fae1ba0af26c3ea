//! Queries that all supervisors of a zone answer together, for operators and samples.

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
use crate::zone::supervisor::{FROM_THE_END, StatsStep, ZoneSupervisor};

/// Minimum pause between two steps of a walk. The supervisor handles other messages meanwhile.
pub(super) const MIN_PAUSE: Duration = Duration::from_millis(1);

impl Zone {
    /// Returns the zone's state, with the `limit` deepest keys.
    ///
    /// Visits only keys with waiters.
    pub async fn stats(&self, limit: usize) -> ZoneStats {
        let mut stats = ZoneStats::default();
        let mut deepest = Top::new(Order::Depth, limit);
        let take = async |StatsStep { sums, waiting }: StatsStep| {
            if let Some(sums) = sums {
                stats.depth += sums.depth;
                stats.in_flight += sums.in_flight;
                stats.active += sums.active;
                stats.parked += sums.parked;
            }
            for state in waiting {
                stats.depth_max = stats.depth_max.max(state.depth);
                stats.oldest_wait = stats.oldest_wait.max(state.oldest_wait);
                deepest.offer(state);
            }
            true
        };
        self.walk(Duration::ZERO, ZoneSupervisor::stats, take).await;
        stats.deepest = deepest.into_sorted();
        stats
    }

    /// Returns the first `limit` keys by `order`.
    ///
    /// Visits all remembered keys.
    pub async fn keys(&self, order: Order, limit: usize) -> Vec<KeyState> {
        let mut top = Top::new(order, limit);
        let take = async |keys: Vec<KeyState>| {
            for state in keys {
                top.offer(state);
            }
            true
        };
        self.walk(MIN_PAUSE, ZoneSupervisor::list, take).await;
        top.into_sorted()
    }

    /// Returns the keys with this [masked name](config::Zone::masked): one, unless names collide.
    ///
    /// A masked name hides the key from operators. Finds keys that are remembered, have an override
    /// or are among the heaviest. Visits all remembered keys.
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
        let (zone, name) = (Arc::clone(&zone), Arc::<str>::from(name));
        let step =
            move |supervisor: &mut ZoneSupervisor, end| supervisor.find_masked(end, &zone, &name);
        let take = async |keys: Vec<Key>| {
            found.extend(keys);
            true
        };
        self.walk(MIN_PAUSE, step, take).await;
        found
    }

    /// Returns the first `limit` keys of a window by a measure, over all workers.
    pub async fn heavy_keys(&self, measure: Measure, window: Window, limit: usize) -> HeavyKeys {
        let mut heavy = HeavyKeys::default();
        for supervisor in self.shards.living() {
            let answer = supervisor.ask(move |zone| zone.heaviest(measure, window, limit));
            // A supervisor without an answer has ended.
            if let Ok(keys) = answer.await {
                heavy.merge(keys, measure, limit);
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

    /// Walks over the keys of all supervisors, from the last key to the first.
    ///
    /// `step` visits a few keys before the index that it is given. It returns its result and the
    /// index to continue from, 0 at the end. `take` receives each result; the walk ends if it
    /// returns `false`. After each step there is a pause, at least as long as `pause` and as the
    /// step took. So requests have at least half of the workers' time. If a supervisor panics, the
    /// walk continues with the next one.
    pub(super) async fn walk<T: Send + 'static>(
        &self,
        pause: Duration,
        step: impl Fn(&mut ZoneSupervisor, usize) -> (T, usize) + Clone + Send + 'static,
        mut take: impl AsyncFnMut(T) -> bool,
    ) {
        for supervisor in self.shards.living() {
            let mut end = FROM_THE_END;
            while end > 0 {
                let (began, step) = (clock::now(), step.clone());
                let Ok((found, next_end)) = supervisor.ask(move |zone| step(zone, end)).await
                else {
                    break;
                };
                let pause = pause.max(clock::now().since(began));
                if !take(found).await {
                    return;
                }
                end = next_end;
                // A shorter pause is left out: any sleep takes a millisecond or two.
                if end > 0 && pause >= MIN_PAUSE {
                    sleep(pause).await;
                }
            }
        }
    }
}
