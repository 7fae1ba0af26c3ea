//! Checks of all servers of the file in force, each as a task.

use std::cell::RefCell;

use actix_rt::task::JoinHandle;

use super::probe::Check;
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
    /// Checks that stay the same continue undisturbed.
    pub fn follow(&self, origins: &[Origin]) {
        let mut before = self.0.take();
        let after = origins.iter().flat_map(Origin::checks).map(|check| {
            if let Some(index) = before.iter().position(|it| it.check.is_same(&check)) {
                return before.swap_remove(index);
            }
            let task = actix_rt::spawn(check.clone().run());
            RunningCheck { check, task }
        });
        let after = after.collect();
        self.0.replace(after);
    }
}

impl Drop for RunningCheck {
    fn drop(&mut self) {
        self.task.abort();
    }
}
