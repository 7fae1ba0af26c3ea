//! Experiments that find the limits of origins: one at a time for each origin.
//!
//! [`limit::find`](limit::find) decides which levels are tried, and for how long. An experiment
//! here sets the override of the origin's gate, and reports the gate's observations to that logic.

mod json;
mod running;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::web::Data;
use config::ChangedBy;
use limit::Moment;
use limit::find::{AbortReason, FindSettings, StepRecord};
use tokio::time::sleep;

use super::Admin;
use crate::gate::OriginGate;
use crate::gate::report::subject;
use crate::origin::Origin;
use crate::status::find::{ending, line};
use crate::time::clock;
pub(super) use json::experiment_json;
pub(crate) use running::OWNER;
pub(super) use running::Running;

/// Interval at which an experiment observes its gate.
const EVERY: Duration = Duration::from_millis(200);

/// Last experiment of each origin.
#[derive(Default)]
pub struct Experiments(Mutex<ByOrigin>);

/// Sorted by the names of the origins.
type ByOrigin = BTreeMap<String, Arc<Mutex<Running>>>;

impl Experiments {
    /// Locks the list of experiments.
    fn all(&self) -> MutexGuard<'_, ByOrigin> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the experiment of an origin.
    pub(super) fn of(&self, origin: &str) -> Option<Arc<Mutex<Running>>> {
        self.all().get(origin).map(Arc::clone)
    }

    /// Returns all experiments, sorted by the names of the origins.
    pub(super) fn list(&self) -> Vec<Arc<Mutex<Running>>> {
        self.all().values().map(Arc::clone).collect()
    }
}

/// Locks an experiment.
pub(super) fn locked(running: &Mutex<Running>) -> MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts an experiment; `None` if one runs for this origin.
pub(super) fn start(
    admin: &Data<Admin>,
    settings: FindSettings,
    by: Arc<str>,
    (origin, gate): (&Origin, &Arc<OriginGate>),
) -> Option<Arc<Mutex<Running>>> {
    let now = clock::now();
    let mut all = admin.experiments.all();
    let name = &origin.settings().name;
    let before = all.get(name);
    if before.is_some_and(|it| !locked(it).experiment.is_over()) {
        return None;
    }
    let id = next_id(before.map(|it| locked(it).id), now);
    let gateway = admin.gateway();
    let is_in_file = |name: &String| {
        let mut origins = gateway.iter().flat_map(|it| it.origins());
        origins.any(|it| it.settings().name == *name)
    };
    // At most as many as origins.
    all.retain(|name, it| is_in_file(name) || !locked(it).experiment.is_over());
    let running = Running::begin(id, (settings, by), (origin, gate), admin, now);
    let running = Arc::new(Mutex::new(running));
    all.insert(name.clone(), Arc::clone(&running));
    drop(all);
    actix_rt::spawn(run(Data::clone(admin), Arc::clone(&running)));
    Some(running)
}

/// Creates the id of a new experiment. `before`: the previous id.
///
/// The id is in microseconds since the Unix epoch. So a restarted gateway gives no id twice, and an
/// owner that renews an experiment of before the restart does not get another one. It is below
/// 2^53, because the page reads numbers as doubles.
fn next_id(before: Option<u64>, now: Moment) -> u64 {
    let id = now.as_nanos() / 1000 % (1 << 53);
    before.map_or(id, |before| id.max(before + 1))
}

/// Ends an experiment at once: the configured values are effective again.
pub(super) fn stop(running: &mut Running) {
    if let Some(step) = running.end(AbortReason::Stopped, clock::now()) {
        log(&running.origin, &step);
    }
}

/// Runs an experiment to its end.
async fn run(admin: Data<Admin>, running: Arc<Mutex<Running>>) {
    loop {
        sleep(EVERY).await;
        let now = clock::now();
        let mut locked = locked(&running);
        let step = locked.tick(&admin, now);
        let origin = locked.origin.clone();
        let outcome = locked.experiment.report(now).outcome;
        let ended = outcome.map(|outcome| ending(&outcome, &locked.objective));
        drop(locked);
        if let Some(step) = step {
            log(&origin, &step);
        }
        if let Some(ended) = ended {
            let subject = subject(&origin);
            tracing::warn!(what = subject, "experiment ended: {ended}");
            let text = format!("{subject}: experiment ended: {ended}");
            admin.history.add(now, ChangedBy::Expiry, vec![text]);
            return;
        }
    }
}

/// Logs a step.
fn log(origin: &str, step: &StepRecord) {
    let line = line(step);
    tracing::info!(origin, "experiment: {}", line.trim());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_also_over_a_restart_and_are_exact_as_doubles() {
        let at = |micros: u64| Moment::from_nanos(micros * 1000);
        let first = next_id(None, at(1_764_000_000_000_000));
        assert_eq!(next_id(Some(first), at(1_764_000_000_000_000)), first + 1);
        assert_eq!(next_id(Some(first), at(1_763_000_000_000_000)), first + 1);
        assert!(next_id(None, at(1_764_000_000_000_001)) > first);
        assert!(next_id(None, at(u64::MAX / 1000)) < 1 << 53);
    }
}
