//! Takes a sample of the gateway each second: the status of its zones, origins, routes and more.
//!
//! The sample gets its headline and advice here, and is published to live pages.

use std::sync::Arc;
use std::time::Duration;

use config::FileState;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::RecentStatus;
use super::advisor::Advisor;
use super::headline::Editor;
use super::plain::Plain;
use super::process::{self, Process, certificates};
use super::route::Routes;
use super::sample::{MaintenanceSample, Problem, Sample};
use super::timestamp::{seconds, timestamp};
use crate::http::gateway::{Gateway, Maintenances};
use crate::observe::connections::ClientConnections;
use crate::origin::report::Origins;
use crate::store::report::Store;
use crate::time::clock;
use crate::zone::report::Zones;

/// Interval of samples.
const INTERVAL: Duration = Duration::from_secs(1);

/// Takes a sample each second, even if no client is connected.
pub(crate) struct Sampler {
    gateway: watch::Receiver<Option<Arc<Gateway>>>,
    file_state: watch::Receiver<FileState>,
    recent: RecentStatus,
    /// Chooses the headline.
    editor: Editor,
    /// Finds a rate that the headline may advise.
    advisor: Advisor,
    /// Number of the last sample.
    seq: u64,
    zones: Zones,
    origins: Origins,
    routes: Routes,
    store: Store,
    process: Process,
}

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
            zones: Zones::default(),
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
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let gateway = self.gateway.borrow().as_ref().map(Arc::clone);
            if let Some(gateway) = gateway {
                let mut sample = self.sample(&gateway).await;
                let now = clock::now();
                self.advisor.advise(&mut sample, &gateway, now);
                self.editor.edit(&mut sample);
                self.advisor.search_if_needed(&sample, &gateway, now);
                // Strings, numbers and lists of them always have a JSON form.
                let json = serde_json::to_string(&sample).unwrap_or_default();
                self.recent.live.publish(sample.seq, &json);
            }
        }
    }

    /// Takes one sample.
    async fn sample(&mut self, gateway: &Gateway) -> Sample {
        self.seq += 1;
        let (zones, deepest) = self.zones.sample(gateway).await;
        self.recent.minute.tick(gateway);
        let state = self.file_state.borrow().clone();
        let now = clock::now();
        let needs_restart = state.needs_restart.iter();
        let needs_restart = needs_restart.map(|name| Plain::new(name)).collect();
        let origins = self.origins.sample(gateway);
        let broken = state.broken.as_ref();
        let first_problem = broken.and_then(|broken| broken.problems.first()).cloned();
        let mut sample = Sample {
            seq: self.seq,
            time: seconds(Duration::from_nanos(clock::to_wall(now).as_nanos())),
            change: process::change(&state, now),
            lost_keys: process::lost_keys(&state, now),
            needs_restart,
            zones,
            certificates: certificates(&origins),
            origins,
            deepest,
            reload: state.reloads,
            error: first_problem.map(|first| Problem {
                column: None,
                ..Problem::from(first)
            }),
            stopping: gateway.is_stopping(),
            maintenance: maintenance(gateway.maintenances()),
            store: self.store.sample(gateway),
            shared_answers: self.origins.shared_answers(gateway),
            ..Sample::default()
        };
        self.routes.sample(gateway, &mut sample);
        self.process.sample(&mut sample);
        sample
    }
}

/// Routes in maintenance: all of them, or else the one that lasts longest.
fn maintenance(maintenances: &Maintenances) -> Option<MaintenanceSample> {
    let longest = maintenances.routes.iter().max_by_key(|(_, it)| it.until);
    let (route, shown) = match &maintenances.all {
        Some(of_all_routes) => (None, of_all_routes),
        None => longest.map(|(name, maintenance)| (Some(Plain::new(name)), maintenance))?,
    };
    let routes = maintenances.routes.len() as u64;
    let routes = route.as_ref().map_or(0, |_| routes);
    Some(MaintenanceSample {
        route,
        routes,
        until: timestamp(shown.until),
        by: Plain::new(&shown.by),
    })
}
