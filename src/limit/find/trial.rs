//! Trial of one level: measures the responses to the requests that were sent at it.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::answer::AnswerEvent;
use super::blocks::{Block, Blocks};
use super::evidence::{Sample, SequentialTest, TestVerdict};
use super::measurements::Measurements;
use super::objective::{Criterion, Objective};
use super::observed::Observed;
use super::report::{Measured, StepVerdict};
use super::settings::{FindSettings, Target, Timing};
use crate::{Moment, to_float};

/// Upper bound of a step's duration, as a multiple of `max_step`.
const MAX_EXTENSION: u32 = 5;

/// Upper bound of the measured duration of a step. Blocks are kept for twice as long.
const MAX_TIME: Duration = Duration::from_secs(2 * 3600);

/// Number of good blocks (of a second) after which an origin has recovered.
const LAST: usize = 5;
/// `LAST` blocks as a duration.
const RECOVERED: Duration = Duration::from_secs(LAST as u64);

/// Duration without any response, beyond the longest allowed one, after which an origin hangs.
const HANGS: Duration = Duration::from_secs(3);

/// Range of closeness in which a minute is too short to decide.
const EDGE: RangeInclusive<f64> = 0.8..=1.25;

/// Rule by which a trial ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// As soon as the test decides.
    Decided,
    /// Near the edge, where queues grow and drain slowly: after at least twice the duration.
    DecidedNear,
    /// After [`Timing::confirm`], or when it breaks.
    Confirm,
    /// When all earlier requests have a response, and the responses are good again.
    Recover,
}

/// Level under trial.
#[derive(Debug)]
pub(super) struct Trial {
    objective: Objective,
    length: Length,
    /// Instant at which the level was set.
    pub began: Moment,
    blocks: Blocks,
    tests: Vec<SequentialTest>,
    /// Measurements apart from the verdict.
    pub measurements: Measurements,
    /// Instant since which requests do not always wait at the gate, or wait for the other limit.
    idle_since: Option<Moment>,
    departed_before: u64,
    /// Number of closed blocks at the last verdict.
    decided: usize,
    /// Index of the condition that the test called bad.
    broken: Option<usize>,
    /// Time since the last response from the origin, while requests are in flight.
    silent: Duration,
}

impl Trial {
    pub fn new(settings: &FindSettings, length: Length, departed: u64, now: Moment) -> Self {
        let objective = &settings.objective;
        let conditions = objective.conditions();
        let test = |it: &Criterion| SequentialTest::new(it.allowed(), conditions.len());
        Self {
            objective: objective.clone(),
            length,
            began: now,
            blocks: Blocks::new(objective, departed, now),
            tests: conditions.iter().map(test).collect(),
            measurements: Measurements::default(),
            idle_since: None,
            departed_before: departed,
            decided: 0,
            broken: None,
            silent: Duration::ZERO,
        }
    }

    /// Records an event of a request. Ignores requests sent at an earlier level.
    pub fn record(&mut self, sent: Moment, event: AnswerEvent) {
        if self.blocks.record(&self.objective, sent, event) {
            self.measurements.record(event);
        }
    }

    /// Updates the trial since the last tick. Returns the verdict, if there is one.
    pub fn tick(
        &mut self,
        timing: &Timing,
        (target, seen, silent): (Target, &Observed, Duration),
        now: Moment,
    ) -> Option<StepVerdict> {
        self.silent = silent;
        self.measurements.note(seen);
        self.blocks.tick(target, seen, now);
        let is_idle = !seen.has_waited || self.blocks.is_held_back();
        self.idle_since = is_idle.then(|| self.idle_since.unwrap_or(now));
        match self.verdict(timing, now) {
            None if self.length != Length::Recover => self.give_up_waiting(timing, now),
            verdict => verdict,
        }
    }

    /// Ends a trial that lacks demand, or that the other limit holds back.
    fn give_up_waiting(&self, timing: &Timing, now: Moment) -> Option<StepVerdict> {
        let is_idle_for = self.idle_since.map_or(Duration::ZERO, |it| now.since(it));
        let (idle, held_back) = (self.blocks.idle(), self.blocks.held_back());
        if held_back >= timing.idle.min(timing.max_step) {
            // More requests would not change it, however long the trial continued.
            return Some(StepVerdict::HeldBack);
        }
        let is_long = is_idle_for >= timing.idle
            || idle > timing.idle.saturating_mul(2)
            || self.blocks.is_full();
        is_long.then(|| {
            if held_back * 2 > idle {
                StepVerdict::HeldBack
            } else {
                StepVerdict::Idle
            }
        })
    }

    fn verdict(&mut self, timing: &Timing, now: Moment) -> Option<StepVerdict> {
        if self.hangs() && self.length != Length::Recover {
            return Some(StepVerdict::Broke);
        }
        let closed = self.blocks.closed(now);
        if std::mem::replace(&mut self.decided, closed) == closed {
            return None;
        }
        let mut verdicts = Vec::with_capacity(self.tests.len());
        for (nth, test) in self.tests.iter().enumerate() {
            let all = self.blocks.samples(nth, closed, |_| true);
            let settled = self.blocks.samples(nth, closed, |block| !block.is_settling);
            let is_bad = || test.is_spell(&all) || test.decide(&settled) == TestVerdict::Bad;
            if self.length != Length::Recover && is_bad() {
                self.broken = Some(nth);
                return Some(StepVerdict::Broke);
            }
            verdicts.push(test.decide(&self.busy(nth, closed)));
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
                if verdicts.iter().all(|it| *it == TestVerdict::Good) =>
            {
                Some(StepVerdict::Good)
            }
            Length::Decided | Length::DecidedNear => {
                let longest = timing.max_step * self.lengths(closed);
                let is_over = took >= longest && self.has_enough(closed)
                    || took >= (timing.max_step * MAX_EXTENSION).min(MAX_TIME);
                is_over.then(|| self.by_figures(closed))
            }
        }
    }

    /// Returns the factor of the duration of a trial that is decided by its figures.
    ///
    /// It is 2 near the edge: in a minute, one pause of the origin more or less than usual would
    /// decide.
    fn lengths(&self, closed: usize) -> u32 {
        1 + u32::from(EDGE.contains(&self.closeness_of(closed)))
    }

    fn has_enough(&self, closed: usize) -> bool {
        let mut tests = self.tests.iter().enumerate();
        tests.all(|(nth, test)| test.has_enough(&self.busy(nth, closed)))
    }

    /// Returns whether enough responses show that the objective holds, even without waiters.
    pub fn holds_so_far(&self, now: Moment) -> bool {
        let closed = self.blocks.closed(now);
        self.tests.iter().enumerate().all(|(nth, test)| {
            let all = self.blocks.samples(nth, closed, |block| !block.is_settling);
            test.has_enough(&all) && test.closeness(&all) <= 1.0
        })
    }

    fn busy(&self, nth: usize, closed: usize) -> Vec<Sample> {
        self.blocks.samples(nth, closed, Block::is_proof)
    }

    fn by_figures(&self, closed: usize) -> StepVerdict {
        if self.closeness_of(closed) > 1.0 {
            StepVerdict::Broke
        } else {
            StepVerdict::Good
        }
    }

    /// Returns good if the last five blocks are good and no earlier response is missing.
    fn has_recovered(&self, timing: &Timing, closed: usize, now: Moment) -> Option<StepVerdict> {
        let is_good = closed >= LAST
            // If the origin does not respond at all, a lack of bad responses proves nothing.
            && self.silent <= self.blocks.longest.max(RECOVERED)
            && (0..).zip(&self.tests).all(|(nth, test)| {
                test.closeness(&self.last(nth, closed)) <= 1.0
            });
        if is_good {
            return Some(StepVerdict::Good);
        }
        let is_late = now.since(self.began) >= timing.recover;
        is_late.then_some(StepVerdict::Broke)
    }

    /// Returns the closed blocks that decide whether the origin has recovered.
    fn last(&self, nth: usize, closed: usize) -> Vec<Sample> {
        let mut all = self.blocks.samples(nth, closed, |_| true);
        all.split_off(closed.saturating_sub(LAST))
    }

    /// Returns the closeness to the edge, which is 1.
    ///
    /// It is the largest share of bad responses divided by the allowed one, or the closeness of a
    /// percentile to its bound, by its `fastest` so far.
    ///
    /// The share is nearly zero until a percentile is close to its bound, so it warns late.
    /// Responses that take longer than at lower levels show that requests queue at the origin.
    pub fn closeness(&self, fastest: &[f64], now: Moment) -> f64 {
        let share = self.closeness_of(self.blocks.closed(now));
        share.max(self.measurements.closeness(&self.objective, fastest))
    }

    fn closeness_of(&self, closed: usize) -> f64 {
        let of = |(nth, test): (usize, &SequentialTest)| test.closeness(&self.busy(nth, closed));
        (0..).zip(&self.tests).map(of).fold(0.0, f64::max)
    }

    /// Returns whether requests are at the origin, and responses stopped for far too long.
    pub fn hangs(&self) -> bool {
        self.silent >= self.blocks.longest.saturating_add(HANGS)
    }

    /// Returns the condition that broke, as written; `None` if it is not known.
    pub fn broken(&self, now: Moment) -> Option<String> {
        let shown = |nth: usize| Some(self.objective.conditions().get(nth)?.to_string());
        let named = self.broken_by_errors(now);
        if let Some(nth) = named.or_else(|| self.hangs().then_some(0)) {
            return shown(nth);
        }
        let closed = self.blocks.closed(now);
        let answers = |nth| match self.length {
            Length::Recover => self.last(nth, closed),
            _ => self.busy(nth, closed),
        };
        let all = self.tests.iter().enumerate();
        let all = all.map(|(nth, test)| (nth, test.closeness(&answers(nth))));
        let worst = all.max_by(|(_, one), (_, other)| one.total_cmp(other));
        let worst = worst.filter(|(_, closeness)| *closeness > 1.0);
        shown(self.broken.or(worst.map(|(nth, _)| nth))?)
    }

    /// Returns the condition on errors that broke, where errors made responses count as slow.
    fn broken_by_errors(&self, now: Moment) -> Option<usize> {
        let broken = self.broken?;
        let measured = self.figures(now);
        let is_of_errors = |it: &Measured| matches!(it.condition, Criterion::Errors { .. });
        let broken = measured.get(broken)?;
        if is_of_errors(broken) || broken.is_beyond() {
            return None;
        }
        let closed = self.blocks.closed(now);
        let is_broken = |nth: usize| {
            let all = self.blocks.samples(nth, closed, |_| true);
            is_of_errors(&measured[nth]) && self.tests[nth].closeness(&all) > 1.0
        };
        (0..measured.len()).find(|nth| is_broken(*nth))
    }

    /// Returns the measured figure of each condition.
    pub fn figures(&self, now: Moment) -> Vec<Measured> {
        let closed = self.blocks.closed(now);
        let samples = |nth| self.blocks.samples(nth, closed, |_| true);
        self.measurements.figures(&self.objective, samples)
    }

    /// Returns each percentile of the objective and its bound, in seconds.
    pub fn percentiles(&self) -> Vec<(f64, f64)> {
        self.measurements.percentiles(&self.objective)
    }

    /// Returns the departures per second since the level was set.
    pub fn departures_a_second(&self, departed: u64, now: Moment) -> f64 {
        let count = departed.saturating_sub(self.departed_before);
        to_float(count) / now.since(self.began).as_secs_f64().max(1.0)
    }
}
