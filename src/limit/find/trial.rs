//! Trial of one level: measures the responses to the requests that were sent at it.
//!
//! A *level* is a rate, or a number of permits. Responses are counted in *blocks* of a second. A
//! block is *closed* when no more responses to its requests are expected: `closed` is the number of
//! closed blocks. A *sequential test* decides on each condition of the objective (see `evidence`).
//! *Closeness* says how close the level is to the edge of the objective, which is 1.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::answer::AnswerEvent;
use super::blocks::{Block, Blocks};
use super::evidence::{Sample, SequentialTest, TestVerdict};
use super::measurements::Measurements;
use super::objective::{Criterion, Objective};
use super::observed::Observed;
use super::report::{Measured, Purpose, StepVerdict};
use super::settings::{FindSettings, Timing};
use crate::{Moment, to_float};

/// Upper bound of a step's duration, as a multiple of `max_step`.
const MAX_EXTENSION: u32 = 5;

/// Upper bound of the measured duration of a step. Blocks are kept for twice as long.
const MAX_MEASURED: Duration = Duration::from_secs(2 * 3600);

/// Number of good blocks (of a second) after which an origin has recovered.
const RECOVERY_BLOCKS: usize = 5;
/// Duration of [`RECOVERY_BLOCKS`].
const RECOVERY: Duration = Duration::from_secs(RECOVERY_BLOCKS as u64);

/// Duration without any response, beyond the longest allowed one, after which an origin hangs.
const HANGS_AFTER: Duration = Duration::from_secs(3);

/// Range of closeness in which a trial takes twice as long.
///
/// So near the edge, one pause of the origin more or less in a minute would decide.
const EDGE: RangeInclusive<f64> = 0.8..=1.25;

/// Level under trial.
#[derive(Debug)]
pub(super) struct Trial {
    objective: Objective,
    /// Rule by which the trial ends.
    ///
    /// - `Climb`: as soon as the test decides.
    /// - `Confirm`: after [`Timing::confirm`], or when the objective breaks.
    /// - `Recover`: when responses are good again.
    purpose: Purpose,
    /// Whether the level is near the edge. There queues grow and drain slowly, so the trial takes
    /// at least twice as long.
    is_near: bool,
    /// Instant at which the level was set.
    pub began: Moment,
    blocks: Blocks,
    tests: Vec<SequentialTest>,
    /// Measurements apart from the verdict.
    pub measurements: Measurements,
    /// Instant since which requests do not always wait at the gate, or wait for the other limit.
    idle_since: Option<Moment>,
    /// Departures before the trial.
    departed_before: u64,
    /// Number of closed blocks when the verdict was last computed.
    closed_before: usize,
    /// Index of the condition that the test called bad.
    broken: Option<usize>,
    /// Time since the last response from the origin, while requests are in flight.
    silent: Duration,
}

impl Trial {
    pub fn new(
        settings: &FindSettings,
        (purpose, is_near): (Purpose, bool),
        departed: u64,
        now: Moment,
    ) -> Self {
        let objective = &settings.objective;
        let conditions = objective.conditions();
        let test = |it: &Criterion| SequentialTest::new(it.allowed(), conditions.len());
        Self {
            objective: objective.clone(),
            purpose,
            is_near,
            began: now,
            blocks: Blocks::new(objective, departed, now),
            tests: conditions.iter().map(test).collect(),
            measurements: Measurements::default(),
            idle_since: None,
            departed_before: departed,
            closed_before: 0,
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

    /// Records what was observed since the last tick. Returns the verdict, if there is one.
    ///
    /// `silent` is the time since the last response from the origin, while requests are there.
    pub fn tick(
        &mut self,
        settings: &FindSettings,
        seen: &Observed,
        silent: Duration,
        now: Moment,
    ) -> Option<StepVerdict> {
        self.silent = silent;
        self.measurements.note(seen);
        self.blocks.tick(settings.target, seen, now);
        let is_idle = !seen.has_waited || self.blocks.is_held_back();
        self.idle_since = is_idle.then(|| self.idle_since.unwrap_or(now));
        let timing = &settings.timing;
        match self.verdict(timing, now) {
            None if self.purpose != Purpose::Recover => self.give_up_waiting(timing, now),
            verdict => verdict,
        }
    }

    /// Ends a trial that lacks demand, or that the other limit holds back. `None`: it continues.
    fn give_up_waiting(&self, timing: &Timing, now: Moment) -> Option<StepVerdict> {
        let idle_now = self.idle_since.map_or(Duration::ZERO, |it| now.since(it));
        // In all blocks of this level.
        let (idle, held_back) = (self.blocks.idle(), self.blocks.held_back());
        if held_back >= timing.idle.min(timing.max_step) {
            // More requests would not change the verdict, however long the trial took.
            return Some(StepVerdict::HeldBack);
        }
        let is_long = idle_now >= timing.idle
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

    /// Returns the verdict on the level, if the responses suffice.
    fn verdict(&mut self, timing: &Timing, now: Moment) -> Option<StepVerdict> {
        if self.hangs() && self.purpose != Purpose::Recover {
            return Some(StepVerdict::Broke);
        }
        let closed = self.blocks.closed(now);
        if std::mem::replace(&mut self.closed_before, closed) == closed {
            return None;
        }
        if self.purpose == Purpose::Recover {
            return self.recovery_verdict(timing, closed, now);
        }
        self.broken = self.find_bad(closed);
        if self.broken.is_some() {
            return Some(StepVerdict::Broke);
        }
        let took = self.blocks.proven(closed);
        let is_at_edge = EDGE.contains(&self.closeness_of(closed));
        let factor = if is_at_edge { 2 } else { 1 };
        if self.purpose == Purpose::Confirm {
            let is_over = took >= timing.confirm * factor;
            return is_over.then(|| self.verdict_by_figures(closed));
        }
        if took < timing.min_step * (1 + u32::from(self.is_near)) {
            return None;
        }
        if self.all_tests(|nth, test| test.decide(&self.proof(nth, closed)) == TestVerdict::Good) {
            return Some(StepVerdict::Good);
        }
        let has_enough = || self.all_tests(|nth, test| test.has_enough(&self.proof(nth, closed)));
        let is_over = took >= timing.max_step * factor && has_enough()
            || took >= (timing.max_step * MAX_EXTENSION).min(MAX_MEASURED);
        is_over.then(|| self.verdict_by_figures(closed))
    }

    /// Returns the index of a condition that the responses break at once, if there is one.
    fn find_bad(&self, closed: usize) -> Option<usize> {
        (0..self.tests.len()).find(|nth| {
            let test = &self.tests[*nth];
            let all = self.blocks.samples(*nth, closed, |_| true);
            let settled = self
                .blocks
                .samples(*nth, closed, |block| !block.is_settling);
            test.is_bad_spell(&all) || test.decide(&settled) == TestVerdict::Bad
        })
    }

    /// Returns whether `holds` is true for each condition: its index and its test.
    fn all_tests(&self, holds: impl Fn(usize, &SequentialTest) -> bool) -> bool {
        (0..).zip(&self.tests).all(|(nth, test)| holds(nth, test))
    }

    /// Returns whether enough responses show that the objective holds, even without waiters.
    pub fn holds_so_far(&self, now: Moment) -> bool {
        let closed = self.blocks.closed(now);
        self.all_tests(|nth, test| {
            let all = self.blocks.samples(nth, closed, |block| !block.is_settling);
            test.has_enough(&all) && test.closeness(&all) <= 1.0
        })
    }

    /// Returns the samples of the closed blocks that count towards a good level.
    fn proof(&self, nth: usize, closed: usize) -> Vec<Sample> {
        self.blocks.samples(nth, closed, Block::is_proof)
    }

    /// Returns the verdict by the measured shares alone.
    fn verdict_by_figures(&self, closed: usize) -> StepVerdict {
        if self.closeness_of(closed) > 1.0 {
            StepVerdict::Broke
        } else {
            StepVerdict::Good
        }
    }

    /// Returns `Good` if the last blocks are good, and `Broke` if the origin recovers too slowly.
    fn recovery_verdict(&self, timing: &Timing, closed: usize, now: Moment) -> Option<StepVerdict> {
        // If the origin does not respond at all, a lack of bad responses proves nothing.
        let responds = self.silent <= self.blocks.longest.max(RECOVERY);
        let is_good = || self.all_tests(|nth, test| test.closeness(&self.last(nth, closed)) <= 1.0);
        if closed >= RECOVERY_BLOCKS && responds && is_good() {
            return Some(StepVerdict::Good);
        }
        let is_late = now.since(self.began) >= timing.recover;
        is_late.then_some(StepVerdict::Broke)
    }

    /// Returns the samples of the last [`RECOVERY_BLOCKS`] closed blocks.
    ///
    /// They show whether the origin has recovered.
    fn last(&self, nth: usize, closed: usize) -> Vec<Sample> {
        let mut all = self.blocks.samples(nth, closed, |_| true);
        all.split_off(closed.saturating_sub(RECOVERY_BLOCKS))
    }

    /// Returns the closeness to the edge, which is 1.
    ///
    /// It is the larger of two numbers: the share of bad responses divided by the allowed one, and
    /// the closeness of the percentiles to their bounds, by the `fastest` values so far.
    ///
    /// The share is nearly zero until a percentile is close to its bound, so it warns late.
    /// Percentiles that are larger than at lower levels show earlier that requests queue at the
    /// origin.
    pub fn closeness(&self, fastest: &[f64], now: Moment) -> f64 {
        let share = self.closeness_of(self.blocks.closed(now));
        share.max(self.measurements.closeness(&self.objective, fastest))
    }

    /// Returns the largest share of bad responses of any condition, divided by the allowed one.
    fn closeness_of(&self, closed: usize) -> f64 {
        let tests = (0..).zip(&self.tests);
        let closeness = tests.map(|(nth, test)| test.closeness(&self.proof(nth, closed)));
        closeness.fold(0.0, f64::max)
    }

    /// Returns whether requests are at the origin, and responses stopped for far too long.
    pub fn hangs(&self) -> bool {
        self.silent >= self.blocks.longest.saturating_add(HANGS_AFTER)
    }

    /// Returns the condition that broke, as written; `None` if it is not known.
    pub fn broken(&self, now: Moment) -> Option<String> {
        let shown = |nth: usize| Some(self.objective.conditions().get(nth)?.to_string());
        let by_errors = self.broken_by_errors(now);
        // An origin that hangs breaks the first condition.
        if let Some(nth) = by_errors.or_else(|| self.hangs().then_some(0)) {
            return shown(nth);
        }
        let closed = self.blocks.closed(now);
        let answers = |nth| match self.purpose {
            Purpose::Recover => self.last(nth, closed),
            _ => self.proof(nth, closed),
        };
        let tests = self.tests.iter().enumerate();
        let closeness = tests.map(|(nth, test)| (nth, test.closeness(&answers(nth))));
        let worst = closeness.max_by(|(_, one), (_, other)| one.total_cmp(other));
        let worst = worst.filter(|(_, closeness)| *closeness > 1.0);
        shown(self.broken.or(worst.map(|(nth, _)| nth))?)
    }

    /// Returns the condition on errors that broke, if errors made responses count as slow.
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

    /// Returns the measured value and the bound of each percentile of the objective, in seconds.
    pub fn percentiles(&self) -> Vec<(f64, f64)> {
        self.measurements.percentiles(&self.objective)
    }

    /// Returns the departures per second since the level was set.
    pub fn departures_a_second(&self, departed: u64, now: Moment) -> f64 {
        let count = departed.saturating_sub(self.departed_before);
        to_float(count) / now.since(self.began).as_secs_f64().max(1.0)
    }
}
