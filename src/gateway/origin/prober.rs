//! Runs the health checks of all servers of the file in force, each as a task.
//!
//! `health_check` is one of them.

use std::cell::RefCell;

use actix_rt::task::JoinHandle;

use super::health_check::Check;
use super::servers::Origin;

/// Checks the servers of origins that have `health`, in one task per server.
///
/// The process has one prober, on the thread that follows the file.
#[derive(Default)]
pub struct Prober(RefCell<Vec<RunningCheck>>);

/// Running check. Dropping it ends the check.
struct RunningCheck {
    check: Check,
    task: JoinHandle<()>,
}

impl Prober {
    /// Checks the servers of `origins` from now on, and no others.
    ///
    /// Checks that stay the same are not interrupted.
    pub fn follow(&self, origins: &[Origin]) {
        let mut running = self.0.take();
        let after = origins.iter().flat_map(Origin::health_checks).map(|check| {
            if let Some(index) = running.iter().position(|it| it.check.is_same(&check)) {
                return running.swap_remove(index);
            }
            let task = actix_rt::spawn(check.clone().run());
            RunningCheck { check, task }
        });
        let after = after.collect();
        // Dropping the rest of `running` ends the other checks.
        self.0.replace(after);
    }
}

impl Drop for RunningCheck {
    fn drop(&mut self) {
        self.task.abort();
    }
}
