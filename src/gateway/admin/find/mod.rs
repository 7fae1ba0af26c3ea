//! Experiments that find the limits of origins: one at a time for each origin.
//!
//! An experiment tries one level (a rate, or a number of requests at once) after the other.
//! [`limit::find`](limit::find) decides which levels are tried, and for how long. The code here
//! sets the override of the origin's gate to the level, and reports what the gate observes to that
//! logic.

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
const INTERVAL: Duration = Duration::from_millis(200);

/// Last experiment of each origin.
#[derive(Default)]
pub struct Experiments(Mutex<ByOrigin>);

/// Experiments by the names of their origins.
type ByOrigin = BTreeMap<String, Arc<Mutex<Running>>>;

impl Experiments {
    /// Locks the list of experiments.
    fn lock(&self) -> MutexGuard<'_, ByOrigin> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the experiment of an origin.
    pub(super) fn of(&self, origin: &str) -> Option<Arc<Mutex<Running>>> {
        self.lock().get(origin).map(Arc::clone)
    }

    /// Returns all experiments, sorted by the names of the origins.
    pub(super) fn list(&self) -> Vec<Arc<Mutex<Running>>> {
        self.lock().values().map(Arc::clone).collect()
    }
}

/// Locks an experiment.
pub(super) fn lock(running: &Mutex<Running>) -> MutexGuard<'_, Running> {
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
    let mut all = admin.experiments.lock();
    let name = &origin.settings().name;
    let before = all.get(name);
    if before.is_some_and(|running| !lock(running).experiment.is_over()) {
        return None;
    }
    let id = next_id(before.map(|running| lock(running).id), now);
    let gateway = admin.gateway();
    let is_in_file = |name: &String| {
        let mut origins = gateway.iter().flat_map(|gateway| gateway.origins());
        origins.any(|origin| origin.settings().name == *name)
    };
    // Forgets ended experiments of origins that are no longer in the file.
    all.retain(|name, running| is_in_file(name) || !lock(running).experiment.is_over());
    let running = Running::begin(id, (settings, by), (origin, gate), admin, now);
    let running = Arc::new(Mutex::new(running));
    all.insert(name.clone(), Arc::clone(&running));
    drop(all);
    actix_rt::spawn(run(Data::clone(admin), Arc::clone(&running)));
    Some(running)
}

/// Creates the id of a new experiment. `before`: the previous id.
///
/// The id is the time in microseconds since the Unix epoch. So a restarted gateway gives no id
/// twice, and an owner cannot renew another experiment than its own. The id is below 2^53, because
/// the page reads numbers as doubles.
fn next_id(before: Option<u64>, now: Moment) -> u64 {
    let id = now.as_nanos() / 1000 % (1 << 53);
    before.map_or(id, |before| id.max(before + 1))
}

/// Ends an experiment at once: the configured values are effective again.
pub(super) fn stop(running: &mut Running) {
    if let Some(step) = running.end(AbortReason::Stopped, clock::now()) {
        log_step(&running.origin, &step);
    }
}

/// Runs an experiment to its end.
async fn run(admin: Data<Admin>, running: Arc<Mutex<Running>>) {
    loop {
        sleep(INTERVAL).await;
        let now = clock::now();
        let mut locked = lock(&running);
        let step = locked.tick(&admin, now);
        let origin = locked.origin.clone();
        let outcome = locked.experiment.report(now).outcome;
        let ended = outcome.map(|outcome| ending(&outcome, &locked.objective));
        drop(locked);
        if let Some(step) = step {
            log_step(&origin, &step);
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
fn log_step(origin: &str, step: &StepRecord) {
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
