//! The configuration file.

use ::metrics::{Counter, Gauge, counter, gauge};

use super::{RELOAD_SUCCESSFUL, RELOAD_TIME, RELOADS, RESTART_NEEDED};
use crate::time::clock;

/// Metrics of the configuration file.
#[derive(Debug)]
pub struct ConfigMetrics {
    succeeded: Counter,
    failed: Counter,
    successful: Gauge,
    time: Gauge,
    restart_needed: Gauge,
}

impl ConfigMetrics {
    /// The metrics of this process's file.
    pub fn of_this_process() -> Self {
        Self {
            succeeded: counter!(RELOADS, "result" => "success"),
            failed: counter!(RELOADS, "result" => "failure"),
            successful: gauge!(RELOAD_SUCCESSFUL),
            time: gauge!(RELOAD_TIME),
            restart_needed: gauge!(RESTART_NEEDED),
        }
    }

    /// Records that the file was read when the process started.
    pub fn loaded(&self) {
        self.successful.set(1.0);
        #[allow(clippy::cast_precision_loss)]
        self.time.set(clock::wall().as_nanos() as f64 / 1e9);
    }

    /// Records that the changed file was read and is in force. `need_restart`: how many of its settings take effect only
    /// after a restart.
    #[allow(clippy::cast_precision_loss)]
    pub fn reloaded(&self, need_restart: usize) {
        self.succeeded.increment(1);
        self.restart_needed.set(need_restart as f64);
        self.loaded();
    }

    /// Records that the changed file has an error.
    pub fn failed(&self) {
        self.failed.increment(1);
        self.successful.set(0.0);
    }
}
