//! Latencies of the last minute, for the store and for each server and route.
//!
//! Histograms count since the start of the process. A *step* keeps such total counts, so that the
//! difference between now and the oldest step is the counts of the last minute.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::ServerUrl;
use serde::Serialize;

use crate::http::gateway::Gateway;
use crate::observe::metrics::Counts;

/// Interval of steps, in seconds.
const INTERVAL: u64 = 10;
/// Number of kept steps. The oldest is 50 to 60 seconds old.
const STEPS: usize = 6;
/// Maximum number of servers and routes with latencies, at most 13 KB for each.
///
/// Further ones have no latencies.
pub(crate) const MAX_KEPT: usize = 500;

/// Counts of latencies at several instants of the last minute.
#[derive(Clone, Default)]
pub(crate) struct Minute(Arc<Mutex<Steps>>);

/// Kept steps.
#[derive(Default)]
struct Steps {
    /// Number of seconds that have ended.
    seconds: u64,
    /// Total counts of each source at each of the last steps, the oldest step first.
    counts: HashMap<LatencySource, VecDeque<Counts>>,
}

impl Steps {
    /// Adds a step with the total counts `now`. Forgets sources that are no longer counted.
    fn keep(&mut self, now: impl Iterator<Item = (LatencySource, Counts)>) {
        let mut before = mem::take(&mut self.counts);
        for (source, counts) in now {
            // Several routes may have one name: only the first of them is kept.
            if self.counts.len() >= MAX_KEPT || self.counts.contains_key(&source) {
                continue;
            }
            let mut steps = before.remove(&source).unwrap_or_default();
            steps.push_back(counts);
            if steps.len() > STEPS {
                steps.pop_front();
            }
            self.counts.insert(source, steps);
        }
    }
}

/// Source of latencies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LatencySource {
    /// The store with this URL.
    Store(String),
    /// Server of an origin: the name of the origin, and the URL of the server.
    Server(String, String),
    /// Route with this name.
    Route(String),
}

impl LatencySource {
    /// Source of the latencies of a server.
    pub(crate) fn server(origin: &str, url: &ServerUrl) -> Self {
        Self::Server(origin.to_owned(), url.to_string())
    }
}

impl Minute {
    fn lock(&self) -> MutexGuard<'_, Steps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles the end of a second: adds a step if its interval is over.
    pub(crate) fn tick(&self, gateway: &Gateway) {
        let mut steps = self.lock();
        if steps.seconds.is_multiple_of(INTERVAL) {
            steps.keep(all_counts(gateway));
        }
        steps.seconds += 1;
    }

    /// Returns the counts of the last minute. `now`: the total counts.
    pub(crate) fn counts(&self, source: &LatencySource, now: &Counts) -> Counts {
        let kept = self.lock();
        match kept.counts.get(source).and_then(VecDeque::front) {
            Some(before) => now.since(before),
            // A source without a step began after the last step, less than 10 s ago. So all its
            // counts are of the last minute. If the table is full, the source may be older, and has
            // no latency.
            None if kept.counts.len() < MAX_KEPT => now.clone(),
            None => Counts::default(),
        }
    }

    /// Returns the latency of the last minute. `now`: the total counts.
    pub(crate) fn latency(&self, source: &LatencySource, now: &Counts) -> Latency {
        latency(&self.counts(source, now))
    }
}

/// Returns the total counts of all sources of a gateway.
fn all_counts(gateway: &Gateway) -> impl Iterator<Item = (LatencySource, Counts)> {
    let store = gateway.store_health().map(|store| {
        let url = store.settings().url.to_string();
        (LatencySource::Store(url), store.round_trips().counts())
    });
    let servers = gateway.origins().iter().flat_map(|origin| {
        let name = &origin.settings().name;
        let servers = origin.servers();
        servers.map(move |server| {
            let source = LatencySource::server(name, server.url());
            (source, server.metrics.latencies())
        })
    });
    let routes = gateway.counted_routes();
    let routes =
        routes.map(|(name, metrics)| (LatencySource::Route(name), metrics.durations.counts()));
    store.into_iter().chain(servers).chain(routes)
}

/// Quantiles of durations, in seconds; `None` without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

/// Returns the quantiles of these durations.
pub(crate) fn latency(counts: &Counts) -> Latency {
    let quantile = |q| counts.quantile(q).map(|duration| duration.as_secs_f64());
    Latency {
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::observe::metrics::AtomicHistogram;

    /// Returns the total counts of one route.
    fn counts_of_route(
        latencies: &AtomicHistogram,
    ) -> impl Iterator<Item = (LatencySource, Counts)> {
        std::iter::once((LatencySource::Route("/".to_owned()), latencies.counts()))
    }

    #[test]
    fn latencies_older_than_a_minute_are_left_out() {
        let (minute, histogram) = (Minute::default(), AtomicHistogram::default());
        let route = LatencySource::Route("/".to_owned());
        histogram.record(Duration::from_secs(1));
        for step in 0..8 {
            let counts = minute.counts(&route, &histogram.counts());
            let found = counts.quantile(0.5).is_some();
            // The first step is kept before anything was counted.
            if step == 0 {
                let nothing = AtomicHistogram::default();
                minute.lock().keep(counts_of_route(&nothing));
            } else {
                minute.lock().keep(counts_of_route(&histogram));
            }
            assert_eq!(found, step < 7, "step {step}");
        }
    }

    #[test]
    fn at_most_the_maximum_number_of_sources_is_kept() {
        let minute = Minute::default();
        let route = |nth: usize| LatencySource::Route(nth.to_string());
        let sources = (0..2 * MAX_KEPT).map(|nth| (route(nth), Counts::default()));
        minute.lock().keep(sources);
        assert_eq!(minute.lock().counts.len(), MAX_KEPT);
        let histogram = AtomicHistogram::default();
        histogram.record(Duration::from_secs(1));
        let p99 = |nth| minute.latency(&route(nth), &histogram.counts()).p99;
        assert!(p99(0).is_some() && p99(MAX_KEPT).is_none());
    }
}
