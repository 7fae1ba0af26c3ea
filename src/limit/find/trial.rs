//! One level, measured: the answers to the requests that were sent at it.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::answer::{AnswerEvent, Part};
use super::blocks::Blocks;
use super::evidence::{Leaning, Sample, SequentialTest};
use super::objective::{Criterion, Objective};
use super::observed::Observed;
use super::report::{Figure, Measured, StepVerdict};
use super::settings::Timing;
use super::times::Times;
use crate::limit::Moment;

/// A step ends after so many times its longest time, however few answers there are.
const MAX_EXTENSION: u32 = 5;

/// Answers that are faster than this part of their bound are far from it, whatever they were before.
const MIN_QUEUEING: f64 = 0.15;

/// Shares of bad answers against the allowed one that a minute does not tell apart.
const EDGE: RangeInclusive<f64> = 0.8..=1.25;

/// Ticks on end at which a watched figure may be beyond its bound.
const MAX_FIGURE_BROKEN: u32 = 7;

/// How a trial ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// As soon as the test decides.
    Decided,
    /// Near the edge, where queues grow and drain slowly: in not less than twice the time.
    DecidedNear,
    /// After [`Timing::confirm`], or when it breaks.
    Confirm,
    /// When all that was sent before is answered, and the answers are good again.
    Recover,
}

/// A percentile's bound in seconds.
#[derive(Clone, Copy, Debug)]
struct Bound {
    part: Part,
    quantile: f64,
    below: f64,
}

fn bound(condition: &Criterion) -> Option<Bound> {
    match condition {
        Criterion::Percentile {
            quantile,
            part,
            below,
        } => Some(Bound {
            part: *part,
            quantile: f64::from(quantile.millionths()) / 1e6,
            below: below.as_secs_f64(),
        }),
        Criterion::Errors { .. } => None,
    }
}

/// A level under trial.
#[derive(Debug)]
pub(super) struct Trial {
    length: Length,
    began: Moment,
    blocks: Blocks,
    tests: Vec<SequentialTest>,
    bounds: Vec<Bound>,
    heads: Times,
    wholes: Times,
    answers: u64,
    waits: (Duration, u32),
    at_once: u32,
    /// Since when a request did not always wait at the gate.
    idle_since: Option<Moment>,
    departed_before: u64,
    /// Ticks on end at which a watched figure was beyond its bound.
    figure_broken: u32,
    /// Closed blocks that were judged last.
    judged: usize,
}

impl Trial {
    pub fn new(objective: &Objective, length: Length, departed: u64, now: Moment) -> Self {
        let conditions = objective.conditions();
        let test = |it: &Criterion| SequentialTest::new(it.allowed(), conditions.len());
        Self {
            length,
            began: now,
            blocks: Blocks::new(objective, departed, now),
            tests: conditions.iter().map(test).collect(),
            bounds: conditions.iter().filter_map(bound).collect(),
            heads: Times::new(),
            wholes: Times::new(),
            answers: 0,
            waits: (Duration::ZERO, 0),
            at_once: 0,
            idle_since: None,
            departed_before: departed,
            figure_broken: 0,
            judged: 0,
        }
    }

    pub fn began(&self) -> Moment {
        self.began
    }

    /// Takes in what happened to a request; not if it was sent before the level was set.
    pub fn record(&mut self, objective: &Objective, sent: Moment, event: AnswerEvent) {
        if !self.blocks.record(objective, sent, event) {
            return;
        }
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

    /// Takes in the state since the tick before; what came out, if it is decided.
    pub fn tick(
        &mut self,
        timing: &Timing,
        until: Option<Moment>,
        seen: &Observed,
        now: Moment,
    ) -> Option<StepVerdict> {
        if let Some(wait) = seen.wait {
            self.waits = (self.waits.0.saturating_add(wait), self.waits.1 + 1);
        }
        self.at_once = self.at_once.max(seen.in_flight);
        self.figure_broken = if seen.is_figure_broken {
            self.figure_broken + 1
        } else {
            0
        };
        if seen.has_waited {
            self.idle_since = None;
        } else if self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
        self.blocks.tick(seen.departed, seen.has_waited, now);
        let verdict = self.verdict(timing, now);
        if verdict.is_some() || self.length == Length::Recover {
            return verdict;
        }
        self.give_up_waiting(timing, until, seen, now)
    }

    /// Ends a trial for which nobody asks for enough, or measures anew when it is asked for again.
    fn give_up_waiting(
        &mut self,
        timing: &Timing,
        until: Option<Moment>,
        seen: &Observed,
        now: Moment,
    ) -> Option<StepVerdict> {
        let is_idle_for = self
            .idle_since
            .map_or(Duration::ZERO, |since| now.since(since));
        let idle = self.blocks.idle();
        let is_long = is_idle_for >= timing.idle || idle > timing.idle.saturating_mul(2);
        match until {
            Some(until) if now < until => {
                if idle >= timing.idle || self.blocks.is_full() {
                    self.blocks.restart(seen.departed, now);
                }
                None
            }
            _ if is_long || until.is_some() && is_idle_for > timing.min_step => {
                Some(StepVerdict::Idle)
            }
            _ => None,
        }
    }

    fn verdict(&mut self, timing: &Timing, now: Moment) -> Option<StepVerdict> {
        if self.figure_broken > MAX_FIGURE_BROKEN {
            return Some(StepVerdict::Broke);
        }
        let closed = self.blocks.closed(now);
        if std::mem::replace(&mut self.judged, closed) == closed {
            return None;
        }
        let mut leanings = Vec::with_capacity(self.tests.len());
        for (nth, test) in self.tests.iter().enumerate() {
            if test.is_spell(&self.blocks.samples(nth, closed, |_| true))
                && self.length != Length::Recover
            {
                return Some(StepVerdict::Broke);
            }
            let all = self.blocks.samples(nth, closed, |block| !block.is_settling);
            if self.length != Length::Recover && test.decide(&all) == Leaning::Bad {
                return Some(StepVerdict::Broke);
            }
            leanings.push(test.decide(&self.busy(nth, closed)));
        }
        let took = self.blocks.busy(closed);
        match self.length {
            Length::Recover => self.has_recovered(timing, closed, now),
            Length::Confirm => {
                let is_over = took >= timing.confirm * self.lengths(closed);
                is_over.then(|| self.by_figures(closed))
            }
            Length::Decided if took < timing.min_step => None,
            Length::DecidedNear if took < timing.min_step * 2 => None,
            Length::Decided | Length::DecidedNear
                if leanings.iter().all(|it| *it == Leaning::Good)
                    && !self.is_growing(timing, closed) =>
            {
                Some(StepVerdict::Good)
            }
            Length::Decided | Length::DecidedNear => {
                let longest = timing.max_step * self.lengths(closed);
                let is_over = took >= longest && self.has_enough(closed)
                    || took >= timing.max_step * MAX_EXTENSION;
                is_over.then(|| self.by_figures(closed))
            }
        }
    }

    /// How many times its time a trial takes that nothing but its figures decides.
    ///
    /// Twice where they are near the edge: a minute with one pause of the origin more or less than
    /// usual would decide it.
    fn lengths(&self, closed: usize) -> u32 {
        if EDGE.contains(&self.closeness_of(closed)) {
            2
        } else {
            1
        }
    }

    fn has_enough(&self, closed: usize) -> bool {
        let mut tests = self.tests.iter().enumerate();
        tests.all(|(nth, test)| test.has_enough(&self.busy(nth, closed)))
    }

    fn busy(&self, nth: usize, closed: usize) -> Vec<Sample> {
        let is_busy = |block: &super::blocks::Block| !block.is_settling && block.is_busy;
        self.blocks.samples(nth, closed, is_busy)
    }

    fn by_figures(&self, closed: usize) -> StepVerdict {
        if self.closeness_of(closed) > 1.0 {
            StepVerdict::Broke
        } else {
            StepVerdict::Good
        }
    }

    /// Good if the last five blocks are, and nothing of before is unanswered.
    fn has_recovered(&self, timing: &Timing, closed: usize, now: Moment) -> Option<StepVerdict> {
        let from = closed.saturating_sub(5);
        let is_good = closed >= 5
            && (0..).zip(&self.tests).all(|(nth, test)| {
                let last = self.blocks.samples(nth, closed, |_| true);
                test.closeness(&last[from..]) <= 1.0
            });
        if is_good {
            return Some(StepVerdict::Good);
        }
        (now.since(self.began) >= timing.recover).then_some(StepVerdict::Broke)
    }

    /// How near the edge it is, which is 1: the largest share of bad answers against what is allowed,
    /// of a percentile against its bound, or of a third of a percentile against its `fastest` so far.
    ///
    /// The share is nearly zero until a percentile is close to its bound, so it warns late. Answers
    /// that take longer than at lower levels say that requests queue at the origin.
    pub fn closeness(&self, fastest: &[f64], now: Moment) -> f64 {
        let mut most = self.closeness_of(self.blocks.closed(now));
        for ((bound, percentile), fastest) in
            self.bounds.iter().zip(self.percentiles()).zip(fastest)
        {
            let part = percentile / bound.below;
            let longer = percentile / fastest / 3.0;
            most = most
                .max(part)
                .max(if part > MIN_QUEUEING { longer } else { 0.0 });
        }
        most
    }

    /// Each percentile of the objective in seconds; 0 without an answer.
    pub fn percentiles(&self) -> Vec<f64> {
        let of = |bound: &Bound| self.times(bound.part).quantile(bound.quantile);
        let found = self.bounds.iter().map(of);
        found
            .map(|it| it.map_or(0.0, |it| it.as_secs_f64()))
            .collect()
    }

    /// Whether answers become slower, so that a bound would not hold for as long as a confirmation.
    ///
    /// A queue that grows slowly at the origin shows nothing else for a while.
    fn is_growing(&self, timing: &Timing, closed: usize) -> bool {
        self.bounds.iter().any(|bound| {
            let halves = self.blocks.halves(bound.part, closed);
            halves.is_some_and(|(one, other, apart)| {
                let slope = (other - one) / apart.max(1.0);
                other + slope * timing.confirm.as_secs_f64() >= bound.below
            })
        })
    }

    fn times(&self, part: Part) -> &Times {
        match part {
            Part::Head => &self.heads,
            Part::Whole => &self.wholes,
        }
    }

    fn closeness_of(&self, closed: usize) -> f64 {
        let of = |(nth, test): (usize, &SequentialTest)| test.closeness(&self.busy(nth, closed));
        (0..).zip(&self.tests).map(of).fold(0.0, f64::max)
    }

    /// What was measured of each condition.
    pub fn figures(&self, objective: &Objective, now: Moment) -> Vec<Measured> {
        let closed = self.blocks.closed(now);
        let of = |(nth, condition): (usize, &Criterion)| {
            let value = match condition {
                Criterion::Percentile { quantile, part, .. } => {
                    let quantile = f64::from(quantile.millionths()) / 1e6;
                    self.times(*part).quantile(quantile).map(Figure::Time)
                }
                Criterion::Errors { .. } => {
                    let all = self.blocks.samples(nth, closed, |_| true);
                    let count: f64 = all.iter().map(|it| it.count).sum();
                    let bad: f64 = all.iter().map(|it| it.bad).sum();
                    (count > 0.0).then(|| Figure::Share(bad / count))
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

    /// Mean of the waits at the gate that were observed.
    pub fn waited(&self) -> Option<Duration> {
        self.waits.0.checked_div(self.waits.1)
    }

    /// Departures a second since the level was set.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of requests are far below 2^52"
    )]
    pub fn departures_a_second(&self, departed: u64, now: Moment) -> f64 {
        let count = departed.saturating_sub(self.departed_before);
        count as f64 / now.since(self.began).as_secs_f64().max(1.0)
    }
}
