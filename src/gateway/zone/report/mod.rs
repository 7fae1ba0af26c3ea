//! Samples of zones, their metrics, and the rules of the headline about them.
//!
//! A *sample* has the numbers of one second. The *headline* is the most urgent finding of all
//! rules. This file takes the samples; `sample` has their types. `metrics` writes the metrics.
//! `rules` and `key_rules` are the rules; `advice`, `login` and `shared_key` find facts for them.

pub(crate) mod advice;
pub(crate) mod key_rules;
pub(crate) mod login;
pub(crate) mod metrics;
pub(crate) mod recent_seconds;
pub(crate) mod rules;
pub(crate) mod sample;
pub(crate) mod shared_key;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use config::Route;
use limit::{Measure, Window};
use tokio::time::timeout;

use self::login::is_login;
use self::recent_seconds::RecentSeconds;
use self::sample::{HeavyKey, KeySample, Keyless, Totals, ZoneSample};
use self::shared_key::{full_key, untrusted_proxy};
use super::{HeavyKeys, Zone, ZoneStats};
use crate::http::gateway::Gateway;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::{Count, Counts};
use crate::status::counts::{self, Labelled};
use crate::status::disconnects::Disconnects;
use crate::status::growth::{Before, growing_fields};
use crate::status::plain::Plain;
use crate::status::timestamp::seconds;

/// Number of keys of a zone that have series of their own.
pub(crate) const TOP_KEYS: usize = 10;
/// Time limit for the workers to report the state of their zones.
pub(crate) const STATS_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of keys with rejections in a sample, for each zone.
const REJECTED_KEYS: usize = 3;
/// Number of routes with a limit in a zone in a sample.
const KEYLESS_ROUTES: usize = 4;

/// State of the zones one second ago, by name.
#[derive(Default)]
pub(crate) struct Zones {
    /// Total counts. A sample has their growth since then.
    before: Before<String, Counted>,
    /// Requests of the last seconds, with and without a key.
    recent: HashMap<String, RecentSeconds>,
}

/// Total counts of a zone since the start.
///
/// Requests by outcome; new, evicted and flooded keys; rejections by reason; waits, and waits of
/// disconnected clients.
type Counted = (Totals, [u64; 3], Labelled, Counts, Counts);

growing_fields!(Totals: passed, delayed, rejected, cancelled, rejected_elsewhere, no_key,
    delayed_dry_run, rejected_dry_run);

impl Zones {
    /// Samples of all zones for the last second, and the keys with the most waiters.
    pub(crate) async fn sample(&mut self, gateway: &Gateway) -> (Vec<ZoneSample>, Vec<KeySample>) {
        let (mut zones, mut deepest) = (Vec::new(), Vec::new());
        self.before.begin();
        let mut recent = std::mem::take(&mut self.recent);
        for (index, zone) in gateway.zones().iter().enumerate() {
            let recent = recent.remove(&zone.settings().name);
            let recent = RecentSeconds::resume(recent, zone.started());
            if let Some((sample, keys)) = self.sample_zone(gateway, index, recent).await {
                zones.push(sample);
                deepest.extend(keys);
            }
        }
        deepest.sort_by_key(|key: &KeySample| Reverse(key.depth));
        deepest.truncate(TOP_KEYS);
        (zones, deepest)
    }

    /// Sample of a zone for the last second, and its keys with the most waiters.
    ///
    /// `None` if a worker does not answer in time.
    async fn sample_zone(
        &mut self,
        gateway: &Gateway,
        index: usize,
        mut recent: RecentSeconds,
    ) -> Option<(ZoneSample, Vec<KeySample>)> {
        let zone = gateway.zone(index);
        let settings = zone.settings();
        let metrics = zone.metrics();
        let now = (
            counts::totals(|status| metrics.statuses.get(status)),
            [&metrics.new_keys, &metrics.evicted_lru, &metrics.flooded].map(Count::get),
            counts::counted(metrics.rejections.each()),
            metrics.waits.counts(),
            metrics.disconnects.counts(),
        );
        let (totals, [new_keys, evicted, flooded], rejections, waits, disconnects) =
            self.before.since(settings.name.clone(), now);
        let lately = recent.add(totals.no_key, totals.all());
        self.recent.insert(settings.name.clone(), recent);
        let stats = stats(zone).await?;
        let Disconnects { left, left_after } = Disconnects::of(&disconnects);
        let wait = |q| waits.quantile(q).map(seconds);
        let overrides = zone.overrides();
        let zone_override = overrides.zone.as_ref();
        let overriding_rate = zone_override.and_then(|zone| zone.values.rate);
        let rate = overriding_rate.unwrap_or(settings.rate);
        let names = KeyNames::of(settings);
        let rejected = rejected_keys(zone, Window::Minute).await?;
        // Without a rejection there is no key to name, and no need to ask the workers.
        let rejected_now = match totals.rejected {
            0 => HeavyKeys::default(),
            _ => rejected_keys(zone, Window::Seconds).await?,
        };
        let rejected_states = rejected_now.keys.iter().filter_map(|it| it.state.as_ref());
        let full_key = full_key(gateway, index, rejected_states.chain(&stats.deepest));
        // Of the last seconds, or else of the last minute.
        let most_rejected = rejected_now.keys.iter().chain(&rejected.keys).next();
        let most_rejected = most_rejected.map(|heavy| heavy.name.beginning());
        let deepest = stats.deepest.first().map(|state| &state.key[..]);
        let is_limiting = totals.rejected > 0 || totals.delayed > 0 || stats.depth > 0;
        let limited_key = most_rejected.or(deepest).filter(|_| is_limiting);
        let only_key = match limited_key {
            Some(_) => shared_key::only_key(zone).await,
            None => None,
        };
        let sample = ZoneSample {
            name: Plain::new(&settings.name),
            rate: (!rate.is_unlimited()).then(|| rate.per_second()),
            passed: totals.passed,
            delayed: totals.delayed,
            rejected: totals.rejected,
            cancelled: totals.cancelled,
            left,
            left_after,
            rejected_elsewhere: totals.rejected_elsewhere,
            no_key: totals.no_key,
            keyless: (lately.no_key > 0).then(|| keyless(gateway, index)),
            lately,
            dry_run: totals.delayed_dry_run + totals.rejected_dry_run,
            rejections,
            depth: stats.depth as u64,
            depth_max: stats.depth_max as u64,
            burst: gateway.least_burst(index).map(u64::from),
            oldest_wait: seconds(stats.oldest_wait),
            wait_p50: wait(0.5),
            wait_p95: wait(0.95),
            keys: (stats.active + stats.parked) as u64,
            max_keys: settings.max_keys.get() as u64,
            new_keys,
            evicted,
            flooded,
            full_key,
            only_key,
            is_login: is_login(gateway.settings(), index),
            untrusted_proxy: limited_key.and_then(|key| untrusted_proxy(gateway, index, key)),
            rejected_keys: heavy_keys(&rejected, settings),
            rejected_now: heavy_keys(&rejected_now, settings),
            overridden: zone_override.cloned(),
            overridden_keys: overrides.keys.len() as u64,
            // The advisor adds it later.
            advice: None,
        };
        let keys = stats.deepest.into_iter().map(|state| KeySample {
            zone: Plain::new(&settings.name),
            key: Plain::new(&names.short(&state.key)),
            plan: settings.plans.name_of(&state.key).map(Plain::new),
            depth: state.depth as u64,
            oldest_wait: seconds(state.oldest_wait),
        });
        Some((sample, keys.collect()))
    }
}

/// Returns the key definition of a zone, and the first routes with a limit there.
fn keyless(gateway: &Gateway, zone: usize) -> Keyless {
    let settings = gateway.settings();
    let is_here = |route: &&Route| route.limits.iter().any(|limit| limit.zone == zone);
    let routes = settings.routes.iter().filter(is_here).take(KEYLESS_ROUTES);
    Keyless {
        key: Plain::new(&settings.zones[zone].key.to_string()),
        routes: routes.map(|route| Plain::new(&route.name())).collect(),
    }
}

/// Returns the keys with the most rejections in this window.
///
/// `None` if a worker does not answer in time.
async fn rejected_keys(zone: &Zone, window: Window) -> Option<HeavyKeys> {
    let found = zone.heavy_keys(Measure::Rejections, window, REJECTED_KEYS);
    timeout(STATS_TIMEOUT, found).await.ok()
}

/// Converts the heaviest keys of a zone for a sample.
fn heavy_keys(found: &HeavyKeys, zone: &config::Zone) -> Vec<HeavyKey> {
    let keys = found.keys.iter().map(|heavy| HeavyKey {
        key: Plain::new(&heavy.name.short(KeyNames::of(zone))),
        plan: heavy.name.plan(&zone.plans).map(Plain::new),
        requests: heavy.requests,
        rejections: heavy.rejections,
        wait_seconds: seconds(heavy.wait),
        share: heavy.rejections.min(found.total) as f64 / found.total.max(1) as f64,
    });
    keys.collect()
}

/// Collects the state of a zone; `None` if a worker does not answer in time.
pub(crate) async fn stats(zone: &Zone) -> Option<ZoneStats> {
    timeout(STATS_TIMEOUT, zone.stats(TOP_KEYS)).await.ok()
}
