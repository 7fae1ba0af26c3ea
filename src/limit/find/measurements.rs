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

/// Bound of a percentile, in seconds.
#[derive(Clone, Copy, Debug)]
struct Bound {
    part: Part,
    quantile: f64,
    below: f64,
}

fn bound(condition: &Criterion) -> Option<Bound> {
    let Criterion::Percentile {
        quantile,
        part,
        below,
    } = *condition
    else {
        return None;
    };
    Some(Bound {
        part,
        quantile: quantile.part(),
        below: below.as_secs_f64(),
    })
}

/// Durations of responses, and observations at the gate.
#[derive(Debug)]
pub(super) struct Measurements {
    bounds: Vec<Bound>,
    heads: Times,
    wholes: Times,
    answers: u64,
    waits: (Duration, u32),
    at_once: u32,
}

impl Measurements {
    pub fn new(objective: &Objective) -> Self {
        Self {
            bounds: objective.conditions().iter().filter_map(bound).collect(),
            heads: Times::new(),
            wholes: Times::new(),
            answers: 0,
            waits: (Duration::ZERO, 0),
            at_once: 0,
        }
    }

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

    /// Returns each percentile of the objective in seconds; 0 without a response.
    pub fn percentiles(&self) -> Vec<f64> {
        let of = |bound: &Bound| self.times(bound.part).quantile(bound.quantile);
        let found = self.bounds.iter().map(of).map(Option::unwrap_or_default);
        found.map(|it| it.as_secs_f64()).collect()
    }

    /// Returns how close the percentiles are to the edge, which is 1.
    ///
    /// A percentile is at the edge at its bound, or at three times its `fastest` so far.
    ///
    /// Durations that responses take at any rate do not indicate the edge. So a percentile counts
    /// in full only from a third of the distance between `fastest` and its bound. With many
    /// servers, responses take little longer until shortly before the edge.
    pub fn closeness(&self, fastest: &[f64]) -> f64 {
        let mut most = 0.0_f64;
        for ((bound, percentile), fastest) in
            self.bounds.iter().zip(self.percentiles()).zip(fastest)
        {
            let part = percentile / bound.below;
            let way = (percentile - fastest) / (bound.below - fastest).max(f64::MIN_POSITIVE);
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

    pub fn answers(&self) -> u64 {
        self.answers
    }

    pub fn at_once(&self) -> u32 {
        self.at_once
    }

    /// Returns the mean of the observed waits at the gate.
    pub fn waited(&self) -> Option<Duration> {
        self.waits.0.checked_div(self.waits.1)
    }
}
