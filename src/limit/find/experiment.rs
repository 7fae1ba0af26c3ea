//! Experiment that raises the level of an origin step by step. Entry point of `find`.
//!
//! A *level* is a rate, or a number of permits. A *step* tries one level: `trial` measures it, and
//! `search` chooses the next one. *Closeness* says how close a step came to the edge of the
//! objective, which is 1.

use std::time::Duration;

use super::answer::AnswerEvent;
use super::observed::Observed;
use super::report::{
    AbortReason, FindReport, Found, HeldBack, Level, Levels, Outcome, Purpose, StepRecord,
    StepVerdict,
};
use super::scale;
use super::search::{Next, Search};
use super::settings::{FindSettings, MAX_STEP, MIN_STEP, Target};
use super::silence::Silence;
use super::trial::Trial;
use crate::Moment;

/// Upper bound of an experiment's steps.
const MAX_STEPS: usize = 2000;

/// Experiment that raises the level of an origin until its objective breaks.
///
/// The caller keeps the override of the origin at [`Experiment::levels`], which only
/// [`Experiment::tick`] changes. It calls `tick` at least four times a second, and
/// [`Experiment::record`] for each event of requests that were sent meanwhile. Instants passed to
/// `tick` must not decrease. Events may come in any order.
///
/// ```
/// # use std::time::Duration;
/// use drip_limit::Moment;
/// use drip_limit::find::{AnswerEvent, Experiment, FindSettings, Observed, Target, Timing};
///
/// let settings = FindSettings {
///     target: Target::Rate { from: "50r/s".parse()?, to: "400r/s".parse()? },
///     objective: "p95<400ms, errors<0.5%".parse()?,
///     step: "5%".parse()?,
///     timing: Timing::default(),
/// };
/// let start = Moment::from_nanos(0);
/// let mut experiment = Experiment::new(settings, Observed::default(), start);
/// assert_eq!(experiment.levels().rate, Some("50r/s".parse()?));
/// let answer = AnswerEvent::Head { took: Duration::from_millis(80), status: 200 };
/// experiment.record(start, answer);
/// let now = start + Duration::from_millis(250);
/// let seen = Observed { departed: 12, has_waited: true, ..Observed::default() };
/// let step = experiment.tick(&seen, now);
/// assert!(step.is_none() && !experiment.is_over());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Experiment {
    settings: FindSettings,
    /// Observation at the start of the experiment.
    first: Observed,
    /// Last observation.
    last: Observed,
    began: Moment,
    search: Search,
    trial: Trial,
    silence: Silence,
    /// Smallest value of each percentile of the objective at any good level, in seconds.
    fastest: Vec<f64>,
    /// Closeness of the last step to the edge.
    closeness: f64,
    /// Largest number of concurrent requests in a step that broke.
    at_edge: Option<u32>,
    steps: Vec<StepRecord>,
    /// Outcome, and the instant of the end.
    ended: Option<(Outcome, Moment)>,
}

impl Experiment {
    /// Starts with the lower bound.
    pub fn new(settings: FindSettings, first: Observed, now: Moment) -> Self {
        let step = settings.step.clamp(MIN_STEP, MAX_STEP).part();
        Self {
            first,
            last: first,
            began: now,
            search: Search::new(settings.target, step),
            trial: Trial::new(&settings, (Purpose::Climb, false), first.departed, now),
            silence: Silence::new(first.departed, now),
            fastest: Vec::new(),
            closeness: 0.0,
            at_edge: None,
            steps: Vec::new(),
            ended: None,
            settings,
        }
    }

    /// Records an event of a request that was sent to the origin at `sent`.
    pub fn record(&mut self, sent: Moment, event: AnswerEvent) {
        if self.ended.is_none() {
            self.silence.record(event);
            self.trial.record(sent, event);
        }
    }

    /// Advances to `now`. Returns the step, if one ended.
    pub fn tick(&mut self, seen: &Observed, now: Moment) -> Option<StepRecord> {
        if self.ended.is_some() {
            return None;
        }
        self.last = *seen;
        if let Some(reason) = self.reason_to_abort(seen) {
            return self.abort(reason, now);
        }
        let silent = self.silence.tick(seen, now);
        let verdict = self.trial.tick(&self.settings, seen, silent, now)?;
        if verdict == StepVerdict::Broke && self.search.purpose != Purpose::Recover {
            self.at_edge = self.at_edge.max(Some(self.trial.measurements.at_once));
        }
        let mut record = self.describe(verdict, now);
        self.closeness = self.trial.closeness(&self.fastest, now);
        if verdict == StepVerdict::Good {
            self.note_percentiles();
        }
        let next = self.search.next(verdict, self.closeness);
        if let (Next::Try(level, _), StepVerdict::Broke) = (next, verdict) {
            record.back_to = Some(self.settings.target.level(level));
        }
        self.steps.push(record.clone());
        self.follow(next, verdict, now);
        Some(record)
    }

    /// Ends the experiment. Returns the step that was under way, or `None` if it was over.
    pub fn abort(&mut self, reason: AbortReason, now: Moment) -> Option<StepRecord> {
        if self.ended.is_some() {
            return None;
        }
        let record = self.describe(StepVerdict::Undecided, now);
        self.steps.push(record.clone());
        self.ended = Some((Outcome::Aborted(reason, self.good()), now));
        Some(record)
    }

    /// Returns whether the experiment has ended.
    pub fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns the values to which the caller must set the origin: none once the experiment is
    /// over.
    pub fn levels(&self) -> Levels {
        if self.ended.is_some() {
            return Levels::default();
        }
        let (rate, permits) = match self.level() {
            Level::Rate(rate) => (Some(rate), None),
            Level::Permits(permits) => (None, Some(permits)),
        };
        Levels { rate, permits }
    }

    /// Returns the current level and its purpose.
    pub fn current(&self) -> (Level, Purpose) {
        (self.level(), self.search.purpose)
    }

    /// Returns the report so far. It is complete once the experiment is over.
    pub fn report(&self, now: Moment) -> FindReport {
        FindReport {
            outcome: self.ended.map(|(outcome, _)| outcome),
            steps: self.steps.clone(),
            requests: self.last.departed.saturating_sub(self.first.departed),
            took: self.ended.map_or(now, |(_, at)| at).since(self.began),
        }
    }

    /// Returns why the experiment cannot continue, if it cannot.
    fn reason_to_abort(&self, seen: &Observed) -> Option<AbortReason> {
        if seen.file != self.first.file {
            Some(AbortReason::FileChanged)
        } else if seen.servers != self.first.servers {
            Some(AbortReason::ServersChanged)
        } else if seen.is_backed_off {
            Some(AbortReason::BackedOff)
        } else {
            (self.steps.len() >= MAX_STEPS).then_some(AbortReason::Unsteady)
        }
    }

    /// Updates the smallest percentiles after a good level.
    fn note_percentiles(&mut self) {
        let percentiles = self.trial.percentiles();
        self.fastest.resize(percentiles.len(), f64::MAX);
        for (fastest, (percentile, _)) in self.fastest.iter_mut().zip(percentiles) {
            *fastest = fastest.min(percentile);
        }
    }

    /// Begins the next trial, or ends the experiment.
    fn follow(&mut self, next: Next, verdict: StepVerdict, now: Moment) {
        let outcome = match next {
            Next::Try(_, purpose) => {
                let rule = (purpose, Search::is_near(self.closeness));
                self.trial = Trial::new(&self.settings, rule, self.last.departed, now);
                return;
            }
            Next::Found => Outcome::Found(self.found()),
            Next::AtLeast if verdict == StepVerdict::HeldBack => Outcome::HeldBack(HeldBack {
                level: self.highest_reached(now),
                by: self.other_limit(),
            }),
            Next::AtLeast => self.outcome_without_demand(now),
            Next::Abort(reason) => Outcome::Aborted(reason, self.good()),
        };
        self.ended = Some((outcome, now));
    }

    /// Returns the highest level that held.
    fn good(&self) -> Option<Level> {
        let good = self.search.good;
        good.map(|number| self.settings.target.level(number))
    }

    /// Returns the current level.
    fn level(&self) -> Level {
        self.settings.target.level(self.search.level)
    }

    /// Returns the outcome if too few requests wait for the current level.
    fn outcome_without_demand(&self, now: Moment) -> Outcome {
        match self.good() {
            Some(level) => Outcome::AtLeast(level),
            None if self.trial.holds_so_far(now) => Outcome::AtLeast(self.demand(now)),
            None => Outcome::Unknown(self.level()),
        }
    }

    /// Returns the actual demand at the current level, at most the level.
    fn demand(&self, now: Moment) -> Level {
        let rate = self.trial.departures_a_second(self.last.departed, now);
        match self.level() {
            Level::Rate(level) if rate < level.per_second() => {
                Level::Rate(scale::rate((rate * 100.0).round() / 100.0).unwrap_or(level))
            }
            Level::Permits(level) => Level::Permits(level.min(self.trial.measurements.at_once)),
            level @ Level::Rate(_) => level,
        }
    }

    /// Returns the highest level that was reached, if the other limit held requests back.
    fn highest_reached(&self, now: Moment) -> Level {
        let demand = self.demand(now);
        let good = self.good().unwrap_or(demand);
        if good.number() > demand.number() {
            good
        } else {
            demand
        }
    }

    /// Returns the effective limit that is not searched: permits, or the rate.
    fn other_limit(&self) -> Option<Level> {
        match self.settings.target {
            Target::Rate { .. } => self.last.limits.permits.map(Level::Permits),
            Target::Permits { .. } => self.last.limits.rate.map(Level::Rate),
        }
    }

    /// Returns the result, after the current level was confirmed.
    fn found(&self) -> Found {
        let (low, high) = self.search.range();
        let level = |number| self.settings.target.level(number);
        Found {
            level: self.level(),
            low: level(low),
            high: level(high),
            at_once: self.trial.measurements.at_once,
            at_edge: self.at_edge,
            is_upper_bound: self.search.is_at_top(),
        }
    }

    /// Returns the record of the current step with this verdict.
    fn describe(&self, verdict: StepVerdict, now: Moment) -> StepRecord {
        let took = now.since(self.trial.began);
        let has_broken = verdict == StepVerdict::Broke;
        let broken = has_broken.then(|| self.trial.broken(now)).flatten();
        StepRecord {
            level: self.level(),
            purpose: self.search.purpose,
            verdict,
            broken,
            hung: has_broken && self.trial.hangs(),
            figures: self.trial.figures(now),
            waited: self.trial.measurements.waited(),
            at_once: self.trial.measurements.at_once,
            answers: self.trial.measurements.answers,
            took: took.max(Duration::from_millis(1)),
            back_to: None,
        }
    }
}

#[cfg(test)]
mod tests;
