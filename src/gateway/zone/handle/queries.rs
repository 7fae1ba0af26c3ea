//! What a zone's supervisors answer together.

use std::collections::BTreeSet;
use std::sync::Arc;

use limit::{Measure, Window};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::Zone;
use crate::time::clock;
use crate::zone::answer::Key;
use crate::zone::arrivals::Arrivals;
use crate::zone::heavy::{CollectHeavy, HeavyKeys};
use crate::zone::messages::{CollectArrivals, CollectStats, FROM_THE_END, FindMasked, ListKeys};
use crate::zone::stats::{Count, KeyState, Order, Top, ZoneStats};

impl Zone {
    /// The zone's state, with the `limit` deepest keys.
    ///
    /// Only keys with waiters are visited, in small steps.
    pub async fn stats(&self, limit: usize) -> ZoneStats {
        let mut count = Count::new(limit);
        for supervisor in self.shards.living() {
            let mut before = FROM_THE_END;
            while before > 0 {
                let (reply, answer) = oneshot::channel();
                supervisor.post(CollectStats {
                    count,
                    before,
                    reply,
                });
                let Ok(step) = answer.await else {
                    // The supervisor has ended and the count is lost with it. Count the remaining
                    // supervisors.
                    count = Count::new(limit);
                    break;
                };
                (count, before) = step;
            }
        }
        count.finish()
    }

    /// The first `limit` keys by `order`.
    ///
    /// Visits all remembered keys in small steps, with a pause after each step as long as the step
    /// took. So requests have at least half of the workers' time.
    pub async fn keys(&self, order: Order, limit: usize) -> Vec<KeyState> {
        let mut top = Top::new(order, limit);
        for supervisor in self.shards.living() {
            let mut before = FROM_THE_END;
            while before > 0 {
                let (reply, answer) = oneshot::channel();
                let began = clock::now();
                supervisor.post(ListKeys { top, before, reply });
                let Ok(step) = answer.await else {
                    top = Top::new(order, limit);
                    break;
                };
                (top, before) = step;
                if before > 0 {
                    sleep(clock::now().since(began)).await;
                }
            }
        }
        top.into_sorted()
    }

    /// The keys with this [masked name](config::Zone::masked), as far as they are remembered,
    /// have an override, or are among the heaviest: one, unless two have the same name.
    ///
    /// Visits all remembered keys as [`keys`](Self::keys) does.
    pub async fn masked_keys(&self, name: &str) -> BTreeSet<Key> {
        let zone = Arc::new(self.settings.clone());
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
        let name: Arc<str> = name.into();
        for supervisor in self.shards.living() {
            let mut before = FROM_THE_END;
            while before > 0 {
                let (reply, answer) = oneshot::channel();
                let began = clock::now();
                supervisor.post(FindMasked {
                    zone: Arc::clone(&zone),
                    name: Arc::clone(&name),
                    before,
                    reply,
                });
                let Ok((keys, next)) = answer.await else {
                    break;
                };
                found.extend(keys);
                before = next;
                if before > 0 {
                    sleep(clock::now().since(began)).await;
                }
            }
        }
        found
    }

    /// The first `limit` keys of a window by a measure, over all workers.
    pub async fn heavy_keys(&self, measure: Measure, window: Window, limit: usize) -> HeavyKeys {
        let mut heavy = HeavyKeys::default();
        for supervisor in self.shards.living() {
            let (reply, answer) = oneshot::channel();
            supervisor.post(CollectHeavy {
                measure,
                window,
                limit,
                reply,
            });
            // Without an answer it has ended.
            if let Ok(its) = answer.await {
                heavy.merge(its, measure, limit);
            }
        }
        heavy
    }

    /// The arrivals of the last ten minutes.
    pub async fn arrivals(&self) -> Arrivals {
        let mut all = Arrivals::none(self.shards.started());
        for supervisor in self.shards.living() {
            let (reply, answer) = oneshot::channel();
            supervisor.post(CollectArrivals { reply });
            if let Ok(arrivals) = answer.await {
                all.add(arrivals);
            }
        }
        all
    }
}
