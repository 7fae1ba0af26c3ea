//! Log events for frequent incidents, at a bounded rate.
//!
//! They are enough to see that an incident happens, but never so many that a flood of requests
//! fills a disk.

use crate::limit::{Excess, Moment};
use crate::observe::escape::short_name;
use crate::observe::metrics::LimitStatus;
use crate::observe::throttle::Throttle;

/// The target of these events in the log.
pub(crate) const TARGET: &str = module_path!();

/// The log events of one zone: at most one a second for rejections, and one for delays.
#[derive(Debug, Default)]
pub struct Events {
    rejections: Throttle,
    delays: Throttle,
}

impl Events {
    /// Logs a request that was rejected or delayed, or would have been in a dry run.
    ///
    /// As in nginx, rejections are errors and delays are one level lower.
    pub fn tell(&self, zone: &str, key: &[u8], status: LimitStatus, excess: Excess, now: Moment) {
        let what = status.label();
        match status {
            LimitStatus::Rejected | LimitStatus::RejectedDryRun => {
                if let Some(hidden) = self.rejections.show(now) {
                    tracing::error!(
                        zone,
                        key = short_name(key),
                        what,
                        excess = excess.requests(),
                        hidden,
                        "limiting requests"
                    );
                }
            }
            LimitStatus::Delayed | LimitStatus::DelayedDryRun => {
                if let Some(hidden) = self.delays.show(now) {
                    tracing::warn!(
                        zone,
                        key = short_name(key),
                        what,
                        excess = excess.requests(),
                        hidden,
                        "delaying requests"
                    );
                }
            }
            LimitStatus::Passed | LimitStatus::Cancelled | LimitStatus::RejectedElsewhere => {}
        }
    }
}
