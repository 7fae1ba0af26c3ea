use ::metrics::counter;

use super::PLAN_REQUESTS;
use super::limit_status::LimitStatus;
use super::tally::Tally;

/// Metrics of one plan of a zone.
#[derive(Debug)]
pub struct PlanMetrics {
    /// A request without a key has no plan.
    statuses: [Tally; LimitStatus::OF_KEYS.len()],
}

impl PlanMetrics {
    /// The metrics of the plan called `plan` of the zone called `zone`.
    pub(super) fn of(zone: &str, plan: &str) -> Self {
        Self {
            statuses: LimitStatus::OF_KEYS.map(|status| {
                let labels = [
                    ("zone", zone.to_owned()),
                    ("plan", plan.to_owned()),
                    ("status", status.label().to_owned()),
                ];
                Tally::into_series(counter!(PLAN_REQUESTS, &labels))
            }),
        }
    }

    pub(super) fn count(&self, status: LimitStatus) {
        if let Some(tally) = self.statuses.get(status as usize) {
            tally.add(1);
        }
    }

    /// Reports the counts to Prometheus.
    pub(super) fn show(&self) {
        self.statuses.iter().for_each(Tally::show);
    }
}

/// Reports the last counts, so that they are not lost.
impl Drop for PlanMetrics {
    fn drop(&mut self) {
        self.show();
    }
}
