//! Measurements at one level of an experiment: percentiles, waits, and the requests in flight.
//!
//! They are shown, and tell how close the level is to the edge of the objective (its *closeness*).
//! Whether the objective holds is decided by `blocks` and `evidence`.

use std::time::Duration;

use super::answer::{AnswerEvent, Part};
use super::evidence::{Sample, sum};
use super::objective::{Criterion, Objective};
use super::observed::Observed;
use super::report::{Figure, Measured};
use super::times::Times;

/// Up to this share of its bound, a percentile is far from the edge, even if it was faster before.
const MIN_QUEUEING: f64 = 0.15;

/// A percentile is at the edge at this multiple of its fastest value: requests queue at the origin.
const EDGE_FACTOR: f64 = 3.0;

/// Durations of responses, and observations at the gate.
#[derive(Debug, Default)]
pub(super) struct Measurements {
    /// Durations to the head of a response.
    heads: Times,
    /// Durations to the last byte of a response.
    wholes: Times,
    /// Number of responses.
    pub answers: u64,
    /// Sum of the observed waits at the gate.
    wait_sum: Duration,
    /// Number of observed waits.
    wait_count: u32,
    /// Largest number of requests in flight.
    pub at_once: u32,
}

impl Measurements {
    /// Records an event of a request. Durations of error responses are not measured.
    pub fn record(&mut self, event: AnswerEvent) {
        match event {
            AnswerEvent::Head { took, status } => {
                self.answers += 1;
                if status < 500 {
                    self.heads.add(took);
                }
            }
            AnswerEvent::Whole { took, status } if status < 500 => self.wholes.add(took),
            _ => {}
        }
    }

    /// Records what was observed at the gate since the last tick.
    pub fn note(&mut self, seen: &Observed) {
        if let Some(wait) = seen.wait {
            self.wait_sum = self.wait_sum.saturating_add(wait);
            self.wait_count += 1;
        }
        self.at_once = self.at_once.max(seen.in_flight);
    }

    /// Returns the measured value and the bound of each percentile of the objective, in seconds.
    ///
    /// The value is zero without a response.
    pub fn percentiles(&self, objective: &Objective) -> Vec<(f64, f64)> {
        let conditions = objective.conditions().iter();
        let percentiles = conditions.filter_map(|condition| match condition {
            Criterion::Percentile {
                quantile,
                part,
                below,
            } => {
                let found = self.times(*part).quantile(quantile.part());
                let found = found.unwrap_or_default();
                Some((found.as_secs_f64(), below.as_secs_f64()))
            }
            Criterion::Errors { .. } => None,
        });
        percentiles.collect()
    }

    /// Returns how close the percentiles are to the edge, which is 1.
    ///
    /// A percentile is at the edge at its bound, or at [`EDGE_FACTOR`] times its `fastest` so far.
    ///
    /// Durations that responses take at any rate do not indicate the edge. So a percentile counts
    /// in full only from a third of the distance between `fastest` and its bound. With many
    /// servers, responses take little longer until shortly before the edge.
    pub fn closeness(&self, objective: &Objective, fastest: &[f64]) -> f64 {
        let mut closest = 0.0_f64;
        for ((percentile, below), fastest) in self.percentiles(objective).into_iter().zip(fastest) {
            let share = percentile / below;
            // Part of the way from the fastest value to the bound.
            let way = (percentile - fastest) / (below - fastest).max(f64::MIN_POSITIVE);
            closest = closest.max(share.min(3.0 * way));
            if share > MIN_QUEUEING {
                closest = closest.max(percentile / fastest / EDGE_FACTOR);
            }
        }
        closest
    }

    fn times(&self, part: Part) -> &Times {
        match part {
            Part::Head => &self.heads,
            Part::Whole => &self.wholes,
        }
    }

    /// Returns the measured figure of each condition. `samples` returns the blocks of a condition.
    pub fn figures(
        &self,
        objective: &Objective,
        samples: impl Fn(usize) -> Vec<Sample>,
    ) -> Vec<Measured> {
        let measure = |(nth, condition): (usize, &Criterion)| {
            let value = match condition {
                Criterion::Percentile { quantile, part, .. } => {
                    let found = self.times(*part).quantile(quantile.part());
                    found.map(Figure::Time)
                }
                Criterion::Errors { .. } => {
                    let all = sum(&samples(nth));
                    (all.count > 0.0).then(|| Figure::Share(all.bad / all.count))
                }
            };
            Measured {
                condition: *condition,
                value,
            }
        };
        (0..).zip(objective.conditions()).map(measure).collect()
    }

    /// Returns the mean of the observed waits at the gate.
    pub fn waited(&self) -> Option<Duration> {
        self.wait_sum.checked_div(self.wait_count)
    }
}
