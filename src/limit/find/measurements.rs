//! Measurements at one level, apart from the blocks that decide.

use std::time::Duration;

use super::answer::{AnswerEvent, Part};
use super::evidence::{Sample, sum};
use super::objective::{Criterion, Objective};
use super::observed::Observed;
use super::report::{Figure, Measured};
use super::times::Times;

/// Share of its bound below which a percentile is far from it, whatever it was before.
const MIN_QUEUEING: f64 = 0.15;

/// Durations of responses, and observations at the gate.
#[derive(Debug, Default)]
pub(super) struct Measurements {
    heads: Times,
    wholes: Times,
    /// Number of responses.
    pub answers: u64,
    waits: (Duration, u32),
    /// Largest number of requests in flight.
    pub at_once: u32,
}

impl Measurements {
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

    pub fn note(&mut self, seen: &Observed) {
        if let Some(wait) = seen.wait {
            self.waits = (self.waits.0.saturating_add(wait), self.waits.1 + 1);
        }
        self.at_once = self.at_once.max(seen.in_flight);
    }

    /// Returns each percentile of the objective and its bound in seconds; 0 without a response.
    pub fn percentiles(&self, objective: &Objective) -> Vec<(f64, f64)> {
        let of = |condition: &Criterion| match condition {
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
        };
        objective.conditions().iter().filter_map(of).collect()
    }

    /// Returns how close the percentiles are to the edge, which is 1.
    ///
    /// A percentile is at the edge at its bound, or at three times its `fastest` so far.
    ///
    /// Durations that responses take at any rate do not indicate the edge. So a percentile counts
    /// in full only from a third of the distance between `fastest` and its bound. With many
    /// servers, responses take little longer until shortly before the edge.
    pub fn closeness(&self, objective: &Objective, fastest: &[f64]) -> f64 {
        let mut most = 0.0_f64;
        for ((percentile, below), fastest) in self.percentiles(objective).into_iter().zip(fastest) {
            let part = percentile / below;
            let way = (percentile - fastest) / (below - fastest).max(f64::MIN_POSITIVE);
            most = most.max(part.min(3.0 * way));
            if part > MIN_QUEUEING {
                most = most.max(percentile / fastest / 3.0);
            }
        }
        most
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
        let of = |(nth, condition): (usize, &Criterion)| {
            let value = match condition {
                Criterion::Percentile { quantile, part, .. } => self
                    .times(*part)
                    .quantile(quantile.part())
                    .map(Figure::Time),
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
        (0..).zip(objective.conditions()).map(of).collect()
    }

    /// Returns the mean of the observed waits at the gate.
    pub fn waited(&self) -> Option<Duration> {
        self.waits.0.checked_div(self.waits.1)
    }
}
