//! Takes a sample of the gateway each second.

mod gate;
mod lefts;
mod origins;
mod process;
mod routes;
pub(super) mod shared_key;
mod store;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use self::gate::grown;
use self::lefts::Lefts;
use self::origins::Origins;
use self::process::Process;
use self::routes::{Answers, Routes};
use self::shared_key::untrusted_proxy;
use self::store::Store;
use super::Live;
use super::advisor::Advisor;
use super::exposition::{TOP_KEYS, stats};
use super::headline::{Editor, Headlines};
use super::minute::Minute;
use super::outcomes::Outcomes;
use super::overridden;
use super::views::{HeavyKey, KeySample, Keyless, Plain, Problem, Sample, ZoneSample};
use crate::actors::{HeavyKeys, Zone};
use crate::config::{self, FileState, Route};
use crate::http::gateway::Gateway;
use crate::limit::{Measure, Window};
use crate::observe::connections::ClientConnections;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::{Counts, LimitStatus, Rejected};
use crate::time::clock;

const EVERY: Duration = Duration::from_secs(1);
/// How many keys with rejections a sample names, of each zone.
const REJECTED_KEYS: usize = 3;

/// How many routes with a limit in a zone a sample names.
const KEYLESS_ROUTES: usize = 4;

/// Takes a sample each second, even if no client listens.
pub(super) struct Sampler {
    gateway: watch::Receiver<Option<Arc<Gateway>>>,
    file_state: watch::Receiver<FileState>,
    live: Live,
    editor: Editor,
    advisor: Advisor,
    seq: u64,
    /// The counts of each zone one second ago.
    before: HashMap<String, Counted>,
    origins: Origins,
    routes: Routes,
    store: Store,
    minute: Minute,
    outcomes: Outcomes,
    process: Process,
}

/// The counts of a zone.
#[derive(Clone, Default)]
struct Counted {
    passed: u64,
    delayed: u64,
    rejected: u64,
    cancelled: u64,
    rejected_elsewhere: u64,
    no_key: u64,
    dry_run: u64,
    new_keys: u64,
    evicted: u64,
    flooded: u64,
    rejections: BTreeMap<Plain, u64>,
    waits: Counts,
    lefts: Counts,
}

impl Sampler {
    pub(super) fn new(
        gateway: watch::Receiver<Option<Arc<Gateway>>>,
        file_state: watch::Receiver<FileState>,
        live: Live,
        headlines: Headlines,
        minute: Minute,
        outcomes: Outcomes,
        connections: ClientConnections,
    ) -> Self {
        Self {
            gateway,
            file_state,
            live,
            editor: Editor::new(headlines),
            advisor: Advisor::default(),
            seq: 0,
            before: HashMap::new(),
            origins: Origins::default(),
            routes: Routes::default(),
            store: Store::default(),
            minute,
            outcomes,
            process: Process::new(connections),
        }
    }

    pub(super) async fn run(mut self) {
        // Before a gateway is in force there is nothing to sample.
        if self.gateway.wait_for(Option::is_some).await.is_err() {
            return;
        }
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let gateway = self.gateway.borrow().as_ref().map(Arc::clone);
            if let Some(gateway) = gateway {
                let mut sample = self.sample(&gateway).await;
                let now = clock::now();
                self.advisor.advise(&mut sample, &gateway, now);
                self.editor.edit(&mut sample);
                self.advisor.ask(&sample, &gateway, now);
                // Strings, numbers and lists of them always have a JSON form.
                let json = serde_json::to_string(&sample).unwrap_or_default();
                self.live.publish(sample.seq, &json);
            }
        }
    }

    async fn sample(&mut self, gateway: &Gateway) -> Sample {
        self.seq += 1;
        let (mut zones, mut deepest) = (Vec::new(), Vec::new());
        let mut counted = HashMap::new();
        for index in 0..gateway.zones().len() {
            if let Some((sample, keys)) = self.zone(gateway, index, &mut counted).await {
                zones.push(sample);
                deepest.extend(keys);
            }
        }
        self.before = counted;
        deepest.sort_by_key(|key| std::cmp::Reverse(key.depth));
        deepest.truncate(TOP_KEYS);
        self.minute.tick(gateway);
        self.outcomes.tick(gateway);
        let Answers {
            codes,
            left,
            routes,
        } = self.routes.sample(gateway);
        let state = self.file_state.borrow().clone();
        let first = state.broken.and_then(|it| it.problems.into_iter().next());
        Sample {
            seq: self.seq,
            time: seconds(Duration::from_nanos(clock::now().as_nanos())),
            zones,
            origins: self.origins.sample(gateway),
            deepest,
            reload: state.reloads,
            error: first.map(|first| Problem {
                file: first
                    .file
                    .map(|file| Plain::new(&file.display().to_string())),
                line: Some(first.line as u64),
                column: None,
                message: Plain::new(&first.message),
            }),
            stopping: gateway.is_stopping(),
            codes,
            left,
            routes,
            store: self.store.sample(gateway),
            connections: self.process.connections(),
            descriptors: self.process.descriptors(),
            log: self.process.log(),
            ..Sample::default()
        }
    }

    async fn zone(
        &self,
        gateway: &Gateway,
        index: usize,
        counted: &mut HashMap<String, Counted>,
    ) -> Option<(ZoneSample, Vec<KeySample>)> {
        let zone = gateway.zone(index);
        let settings = zone.settings();
        let now = Counted::of(zone);
        let past = self.before.get(&settings.name).cloned().unwrap_or_default();
        let passed = now.since(&past);
        counted.insert(settings.name.clone(), now);
        let stats = stats(zone).await?;
        let Lefts { left, left_after } = Lefts::of(&passed.lefts);
        let wait = |q| passed.waits.quantile(q).map(seconds);
        let overrides = zone.overrides();
        let other = overrides.zone.as_ref();
        let rate = other.and_then(|it| it.rate).unwrap_or(settings.rate);
        let names = KeyNames::of(settings);
        let rejected = rejected_keys(zone, Window::Minute).await?;
        // Without a rejection there is nobody to name, and nobody need be asked.
        let rejected_now = match passed.rejected {
            0 => HeavyKeys::default(),
            _ => rejected_keys(zone, Window::Seconds).await?,
        };
        let mut all = rejected_now.keys.iter().chain(&rejected.keys);
        let limited = all.next().map(|heavy| heavy.name.begin());
        let deepest = stats.deepest.first();
        let limited = limited.or(deepest.map(|state| &state.key[..]));
        let is_limited = passed.rejected > 0 || passed.delayed > 0 || stats.depth > 0;
        let limited = limited.filter(|_| is_limited);
        let only_key = match limited {
            Some(_) => shared_key::only_key(zone).await,
            None => None,
        };
        let sample = ZoneSample {
            name: Plain::new(&settings.name),
            rate: (!rate.is_unlimited()).then(|| rate.per_second()),
            passed: passed.passed,
            delayed: passed.delayed,
            rejected: passed.rejected,
            cancelled: passed.cancelled,
            left,
            left_after,
            rejected_elsewhere: passed.rejected_elsewhere,
            no_key: passed.no_key,
            keyless: (passed.no_key > 0).then(|| keyless(gateway, index)),
            dry_run: passed.dry_run,
            rejections: passed.rejections,
            depth: stats.depth as u64,
            depth_max: stats.depth_max as u64,
            burst: gateway.least_burst(index).map(u64::from),
            oldest_wait: seconds(stats.oldest_wait),
            wait_p50: wait(0.5),
            wait_p95: wait(0.95),
            keys: (stats.active + stats.parked) as u64,
            max_keys: settings.max_keys.get() as u64,
            new_keys: passed.new_keys,
            evicted: passed.evicted,
            flooded: passed.flooded,
            only_key,
            untrusted_proxy: limited.and_then(|key| untrusted_proxy(gateway, index, key)),
            rejected_keys: heavy_keys(&rejected, settings),
            rejected_now: heavy_keys(&rejected_now, settings),
            overridden: other.map(overridden::view),
            overridden_keys: overrides.keys.len() as u64,
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

/// The key of a zone, and the first routes with a limit there.
fn keyless(gateway: &Gateway, zone: usize) -> Keyless {
    let settings = gateway.settings();
    let is_here = |route: &&Route| route.limits.iter().any(|limit| limit.zone == zone);
    let routes = settings.routes.iter().filter(is_here).take(KEYLESS_ROUTES);
    Keyless {
        key: Plain::new(&settings.zones[zone].key.to_string()),
        routes: routes.map(|route| Plain::new(&route.name())).collect(),
    }
}

/// The keys with the most rejections in this window.
///
/// `None` if a worker does not answer in time.
async fn rejected_keys(zone: &Zone, window: Window) -> Option<HeavyKeys> {
    let found = zone.heavy_keys(Measure::Rejections, window, REJECTED_KEYS);
    timeout(EVERY, found).await.ok()
}

#[allow(clippy::cast_precision_loss)]
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

impl Counted {
    fn of(zone: &Zone) -> Self {
        let metrics = zone.metrics();
        let count = |status| metrics.counted(status);
        Self {
            passed: count(LimitStatus::Passed),
            delayed: count(LimitStatus::Delayed),
            rejected: count(LimitStatus::Rejected),
            cancelled: count(LimitStatus::Cancelled),
            rejected_elsewhere: count(LimitStatus::RejectedElsewhere),
            no_key: count(LimitStatus::NoKey),
            dry_run: count(LimitStatus::DelayedDryRun) + count(LimitStatus::RejectedDryRun),
            new_keys: metrics.new_keys.get(),
            evicted: metrics.evicted_lru.get(),
            flooded: metrics.flooded.get(),
            rejections: Rejected::ALL
                .into_iter()
                .map(|why| (why.label().into(), metrics.rejected(why)))
                .collect(),
            waits: metrics.waits(),
            lefts: metrics.lefts(),
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        // A zone that left the file and came back counts from zero again.
        let since = |now: u64, then: u64| now.checked_sub(then).unwrap_or(now);
        Self {
            passed: since(self.passed, earlier.passed),
            delayed: since(self.delayed, earlier.delayed),
            rejected: since(self.rejected, earlier.rejected),
            cancelled: since(self.cancelled, earlier.cancelled),
            rejected_elsewhere: since(self.rejected_elsewhere, earlier.rejected_elsewhere),
            no_key: since(self.no_key, earlier.no_key),
            dry_run: since(self.dry_run, earlier.dry_run),
            new_keys: since(self.new_keys, earlier.new_keys),
            evicted: since(self.evicted, earlier.evicted),
            flooded: since(self.flooded, earlier.flooded),
            rejections: grown(&self.rejections, &earlier.rejections),
            waits: self.waits.since(&earlier.waits),
            lefts: self.lefts.since(&earlier.lefts),
        }
    }
}

/// Seconds, rounded down to microseconds: more digits only make each sample larger.
#[allow(clippy::cast_precision_loss)]
fn seconds(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e6
}
