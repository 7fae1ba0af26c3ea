//! Takes a sample of the gateway each second.

mod disconnects;
mod gate;
mod growth;
mod lately;
mod login;
mod origins;
mod process;
mod rooms;
mod routes;
mod shared;
pub(crate) mod shared_key;
mod store;
mod unanswered;

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use config::{self, FileState, Route};
use limit::{Measure, Window};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use self::disconnects::Disconnects;
use self::growth::Before;
use self::lately::RecentRequestsByZone;
use self::login::is_login;
use self::origins::Origins;
use self::process::Process;
use self::process::certificates;
use self::routes::{Answers, Routes};
use self::shared_key::full_key;
use self::shared_key::untrusted_proxy;
use self::store::Store;
use super::RecentStatus;
use super::advisor::Advisor;
use super::counts::{self, Labelled};
use super::exposition::{TOP_KEYS, stats};
use super::headline::Editor;
use super::overridden;
use super::timestamp::timestamp;
use super::views::{
    HeavyKey, KeySample, Keyless, MaintenanceSample, Plain, Problem, Sample, ZoneSample,
};
use crate::http::gateway::{Gateway, Maintenances};
use crate::observe::connections::ClientConnections;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::{Count, Counts, LimitStatus};
use crate::time::clock;
use crate::zone::{HeavyKeys, Zone};

/// Interval of samples.
const EVERY: Duration = Duration::from_secs(1);
/// Number of keys with rejections in a sample, for each zone.
const REJECTED_KEYS: usize = 3;

/// Number of routes with a limit in a zone in a sample.
const KEYLESS_ROUTES: usize = 4;

/// Takes a sample each second, even if no client is connected.
pub(crate) struct Sampler {
    gateway: watch::Receiver<Option<Arc<Gateway>>>,
    file_state: watch::Receiver<FileState>,
    recent: RecentStatus,
    editor: Editor,
    advisor: Advisor,
    seq: u64,
    zones: Before<String, Counted>,
    lately: RecentRequestsByZone,
    origins: Origins,
    routes: Routes,
    store: Store,
    process: Process,
}

/// Counts of a zone.
///
/// Requests by outcome; new, evicted and flooded keys; rejections by reason; waits, and waits of
/// disconnected clients.
type Counted = (
    [u64; LimitStatus::ALL.len()],
    [u64; 3],
    Labelled,
    Counts,
    Counts,
);

impl Sampler {
    pub(crate) fn new(
        gateway: watch::Receiver<Option<Arc<Gateway>>>,
        file_state: watch::Receiver<FileState>,
        recent: RecentStatus,
        connections: ClientConnections,
    ) -> Self {
        Self {
            gateway,
            file_state,
            editor: Editor::new(recent.headlines.clone()),
            recent,
            advisor: Advisor::default(),
            seq: 0,
            zones: Before::default(),
            lately: RecentRequestsByZone::default(),
            origins: Origins::default(),
            routes: Routes::default(),
            store: Store::default(),
            process: Process::new(connections),
        }
    }

    /// Takes samples. Never ends.
    pub(crate) async fn run(mut self) {
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
                self.recent.live.publish(sample.seq, &json);
            }
        }
    }

    /// Takes one sample.
    async fn sample(&mut self, gateway: &Gateway) -> Sample {
        self.seq += 1;
        let (mut zones, mut deepest) = (Vec::new(), Vec::new());
        self.zones.begin();
        let zones_now = gateway.zones();
        if self.lately.len() > zones_now.len() {
            let is_zone = |name: &str| zones_now.iter().any(|it| it.settings().name == name);
            self.lately.keep(is_zone);
        }
        for index in 0..gateway.zones().len() {
            if let Some((sample, keys)) = self.zone(gateway, index).await {
                zones.push(sample);
                deepest.extend(keys);
            }
        }
        deepest.sort_by_key(|key: &KeySample| Reverse(key.depth));
        deepest.truncate(TOP_KEYS);
        self.recent.minute.tick(gateway);
        let Answers {
            codes,
            left,
            routes,
        } = self.routes.sample(gateway);
        let state = self.file_state.borrow().clone();
        let now = clock::now();
        let (change, lost_keys) = (
            process::change(&state, now),
            process::lost_keys(&state, now),
        );
        let needs_restart = state.needs_restart.iter();
        let needs_restart = needs_restart.map(|name| Plain::new(name)).collect();
        let origins = self.origins.sample(gateway);
        let first = state.broken.and_then(|it| it.problems.into_iter().next());
        let mut sample = Sample {
            seq: self.seq,
            time: seconds(Duration::from_nanos(clock::to_wall(now).as_nanos())),
            change,
            lost_keys,
            needs_restart,
            zones,
            certificates: certificates(&origins),
            origins,
            deepest,
            reload: state.reloads,
            error: first.map(|first| Problem {
                column: None,
                ..Problem::from(first)
            }),
            stopping: gateway.is_stopping(),
            codes,
            left,
            routes,
            maintenance: maintenance(gateway.maintenances()),
            store: self.store.sample(gateway),
            shared_answers: self.origins.shared_answers(gateway),
            ..Sample::default()
        };
        self.process.sample(&mut sample);
        sample
    }

    /// Sample of a zone for the last second.
    async fn zone(
        &mut self,
        gateway: &Gateway,
        index: usize,
    ) -> Option<(ZoneSample, Vec<KeySample>)> {
        let zone = gateway.zone(index);
        let settings = zone.settings();
        let metrics = zone.metrics();
        let now = (
            LimitStatus::ALL.map(|status| metrics.statuses.get(status)),
            [&metrics.new_keys, &metrics.evicted_lru, &metrics.flooded].map(Count::get),
            counts::rejections(metrics),
            metrics.waits.counts(),
            metrics.disconnects.counts(),
        );
        let (requests, [new_keys, evicted, flooded], rejections, waits, disconnects) =
            self.zones.since(settings.name.clone(), now);
        let totals = counts::totals(|status| requests[status as usize]);
        let ended = totals.passed + totals.delayed + totals.rejected + totals.cancelled;
        let ended = ended + totals.rejected_elsewhere + totals.no_key;
        let ended = ended + totals.delayed_dry_run + totals.rejected_dry_run;
        let lately = self
            .lately
            .add(&settings.name, zone.started(), totals.no_key, ended);
        let stats = stats(zone).await?;
        let Disconnects { left, left_after } = Disconnects::of(&disconnects);
        let wait = |q| waits.quantile(q).map(seconds);
        let overrides = zone.overrides();
        let other = overrides.zone.as_ref();
        let rate = other.and_then(|it| it.rate).unwrap_or(settings.rate);
        let names = KeyNames::of(settings);
        let rejected = rejected_keys(zone, Window::Minute).await?;
        // Without a rejection there is no key to name, and no need to ask the workers.
        let rejected_now = match totals.rejected {
            0 => HeavyKeys::default(),
            _ => rejected_keys(zone, Window::Seconds).await?,
        };
        let rejected_states = rejected_now.keys.iter().filter_map(|it| it.state.as_ref());
        let full_key = full_key(gateway, index, rejected_states.chain(&stats.deepest));
        let mut all = rejected_now.keys.iter().chain(&rejected.keys);
        let limited = all.next().map(|heavy| heavy.name.begin());
        let deepest = stats.deepest.first();
        let limited = limited.or(deepest.map(|state| &state.key[..]));
        let is_limited = totals.rejected > 0 || totals.delayed > 0 || stats.depth > 0;
        let limited = limited.filter(|_| is_limited);
        let only_key = match limited {
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

/// Routes in maintenance: all of them, or else the one that lasts longest.
fn maintenance(all: &Maintenances) -> Option<MaintenanceSample> {
    let longest = all.routes.iter().max_by_key(|(_, it)| it.until);
    let (route, it) = match &all.all {
        Some(it) => (None, it),
        None => longest.map(|(name, it)| (Some(Plain::new(name)), it))?,
    };
    let routes = route.as_ref().map_or(0, |_| all.routes.len() as u64);
    Some(MaintenanceSample {
        route,
        routes,
        until: timestamp(it.until),
        by: Plain::new(&it.by),
    })
}

/// Key definition of a zone, and the first routes with a limit there.
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

/// Seconds, rounded down to microseconds: more digits only make each sample larger.
fn seconds(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e6
}
