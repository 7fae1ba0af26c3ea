use std::time::Duration;

use super::answer::AnswerEvent;
use super::observed::Observed;
use super::report::{
    AbortReason, Contradiction, FindReport, Found, HeldBack, Level, Levels, Outcome, Purpose,
    StepRecord, StepVerdict,
};
use super::scale::{self, Scale};
use super::search::{Next, Search};
use super::settings::{FindSettings, Target};
use super::silence::Silence;
use super::trial::{Length, Trial};
use crate::limit::Moment;

/// Most steps of an experiment.
const MAX_STEPS: usize = 2000;

/// An experiment that raises the level of an origin until its objective breaks.
///
/// The caller keeps the override of the origin at [`Experiment::levels`], which changes with
/// [`Experiment::tick`] alone. It calls `tick` at least four times a second, and
/// [`Experiment::record`] with all that happens to requests that were sent meanwhile. Times that it is
/// told must not go back, but answers may come in any order.
///
/// ```
/// # use std::time::Duration;
/// use drip::limit::Moment;
/// use drip::limit::find::{AnswerEvent, Experiment, FindSettings, Observed, Target, Timing};
///
/// let settings = FindSettings {
///     targets: vec![Target::Rate { from: "50r/s".parse()?, to: "400r/s".parse()? }],
///     objective: "p95<400ms, errors<0.5%".parse()?,
///     step: "5%".parse()?,
///     until: None,
///     only: None,
///     figures: Vec::new(),
///     timing: Timing::default(),
/// };
/// let start = Moment::from_nanos(0);
/// let mut it = Experiment::new(settings, Observed::default(), start);
/// assert_eq!(it.levels().rate, Some("50r/s".parse()?));
/// let answer = AnswerEvent::Head { took: Duration::from_millis(80), status: 200 };
/// it.record(start, answer);
/// let now = start + Duration::from_millis(250);
/// let step = it.tick(&Observed { departed: 12, has_waited: true, ..Observed::default() }, now);
/// assert!(step.is_none() && !it.is_over());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Experiment {
    settings: FindSettings,
    /// What was observed at the start.
    first: Observed,
    /// What was observed last.
    last: Observed,
    began: Moment,
    /// The number of the current target.
    nth: usize,
    scale: Scale,
    search: Search,
    trial: Trial,
    silence: Silence,
    /// The shortest percentiles of good levels of this target, in seconds.
    fastest: Vec<f64>,
    /// How near the edge the last step was.
    closeness: f64,
    /// Most requests at once in a step of this target that broke.
    at_edge: Option<u32>,
    steps: Vec<StepRecord>,
    outcomes: Vec<Outcome>,
    ended: Option<Moment>,
}

impl Experiment {
    /// Starts with the lower bound of the first target. Without a target, it is over at once.
    #[must_use]
    pub fn new(settings: FindSettings, first: Observed, now: Moment) -> Self {
        let nothing = Target::Places { from: 1, to: 1 };
        let target = settings.targets.first().copied();
        let scale = Scale::new(target.unwrap_or(nothing));
        let length = Length::Decided;
        Self {
            first,
            last: first,
            began: now,
            nth: 0,
            scale,
            search: Search::new(scale, settings.step_part()),
            trial: Trial::new(&settings, length, first.departed, now),
            silence: Silence::new(first.departed, now),
            fastest: Vec::new(),
            closeness: 0.0,
            at_edge: None,
            steps: Vec::new(),
            outcomes: Vec::new(),
            ended: target.is_none().then_some(now),
            settings,
        }
    }

    /// Takes in what happened to a request that was sent to the origin at `sent`.
    pub fn record(&mut self, sent: Moment, event: AnswerEvent) {
        if self.ended.is_none() {
            self.silence.record(event);
            self.trial.record(&self.settings.objective, sent, event);
        }
    }

    /// Goes on to `now`. Returns the step that ended, if one did.
    pub fn tick(&mut self, seen: &Observed, now: Moment) -> Option<StepRecord> {
        if self.ended.is_some() {
            return None;
        }
        self.last = *seen;
        if let Some(reason) = self.reason_to_abort(seen) {
            return self.abort(reason, now);
        }
        let (timing, until) = (self.settings.timing, self.settings.until);
        let silent = self.silence.tick(seen, now);
        let target = self.scale.target();
        let verdict = (self.trial).tick(&timing, until, (target, seen, silent), now)?;
        if verdict == StepVerdict::Broke && self.search.purpose != Purpose::Recover {
            self.at_edge = self.at_edge.max(Some(self.trial.measurements().at_once()));
        }
        let mut record = self.describe(verdict, now);
        self.closeness = self.trial.closeness(&self.fastest, now);
        if verdict == StepVerdict::Good {
            self.note_times();
        }
        let next = self.search.next(verdict, self.closeness);
        if let (Next::Try(level, _), StepVerdict::Broke) = (next, verdict) {
            record.back_to = Some(self.scale.level(level));
        }
        self.steps.push(record.clone());
        self.go_on(next, verdict, now);
        Some(record)
    }

    /// Ends it; returns the step that was under way. Nothing happens if it is over.
    pub fn abort(&mut self, reason: AbortReason, now: Moment) -> Option<StepRecord> {
        if self.ended.is_some() {
            return None;
        }
        let record = self.describe(StepVerdict::Undecided, now);
        self.steps.push(record.clone());
        self.end_target(Outcome::Aborted(reason, self.good()));
        self.ended = Some(now);
        Some(record)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// What the override of the origin must be now: none once it is over.
    #[must_use]
    pub fn levels(&self) -> Levels {
        if self.ended.is_some() {
            return Levels::default();
        }
        let mut levels = Levels::default();
        match self.scale.level(self.search.level) {
            Level::Rate(rate) => {
                levels.rate = Some(rate);
                // Nor a rate while the places do. Where the file has no places, none are set.
                levels.places = self.last.limits.places.and_then(|file| {
                    self.settings.targets.iter().find_map(|it| match it {
                        Target::Places { to, .. } => Some(file.max(*to)),
                        Target::Rate { .. } => None,
                    })
                });
            }
            Level::Places(places) => {
                levels.places = Some(places);
                // Places show their end only while the pace does not hold requests back.
                levels.rate = self.settings.targets.iter().find_map(|it| match it {
                    Target::Rate { to, .. } => Some(*to),
                    Target::Places { .. } => None,
                });
            }
        }
        levels
    }

    /// The current level, and why it is tried.
    #[must_use]
    pub fn current(&self) -> (Level, Purpose) {
        (self.scale.level(self.search.level), self.search.purpose)
    }

    /// What was found so far: all, once it is over.
    #[must_use]
    pub fn report(&self, now: Moment) -> FindReport {
        FindReport {
            outcomes: self.outcomes.clone(),
            steps: self.steps.clone(),
            requests: self.last.departed.saturating_sub(self.first.departed),
            took: self.ended.unwrap_or(now).since(self.began),
        }
    }

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

    fn note_times(&mut self) {
        let percentiles = self.trial.measurements().percentiles();
        if self.fastest.is_empty() {
            self.fastest = percentiles;
            return;
        }
        for (fastest, percentile) in self.fastest.iter_mut().zip(percentiles) {
            *fastest = fastest.min(percentile);
        }
    }

    fn go_on(&mut self, next: Next, verdict: StepVerdict, now: Moment) {
        match next {
            Next::Try(_, purpose) => self.begin_trial(purpose, now),
            Next::Found => {
                let found = Outcome::Found(self.found());
                self.end_target(found);
                self.begin_next_target(now);
            }
            Next::AtLeast if verdict == StepVerdict::HeldBack => {
                let held_back = HeldBack {
                    level: self.what_left(now),
                    by: self.other_limit(),
                    of_both: self.settings.targets.len() > 1,
                };
                self.end_target(Outcome::HeldBack(held_back));
                self.begin_next_target(now);
            }
            Next::AtLeast => {
                self.end_target(self.without_demand(now));
                self.begin_next_target(now);
            }
            Next::Abort(reason) => {
                self.end_target(Outcome::Aborted(reason, self.good()));
                self.ended = Some(now);
            }
        }
    }

    fn begin_trial(&mut self, purpose: Purpose, now: Moment) {
        let length = match purpose {
            Purpose::Confirm => Length::Confirm,
            Purpose::Recover => Length::Recover,
            Purpose::Climb if !Search::is_near(self.closeness) => Length::Decided,
            Purpose::Climb | Purpose::Refine | Purpose::Retry => Length::DecidedNear,
        };
        let departed = self.last.departed;
        self.trial = Trial::new(&self.settings, length, departed, now);
    }

    fn begin_next_target(&mut self, now: Moment) {
        self.nth += 1;
        let Some(target) = self.settings.targets.get(self.nth) else {
            self.ended = Some(now);
            return;
        };
        self.scale = Scale::new(*target);
        self.search = Search::new(self.scale, self.settings.step_part());
        self.at_edge = None;
        self.fastest.clear();
        self.closeness = 0.0;
        self.begin_trial(Purpose::Climb, now);
    }

    fn end_target(&mut self, outcome: Outcome) {
        self.outcomes.push(outcome);
    }

    fn good(&self) -> Option<Level> {
        self.search.good().map(|number| self.scale.level(number))
    }

    fn without_demand(&self, now: Moment) -> Outcome {
        match self.good() {
            Some(level) => Outcome::AtLeast(level),
            None if self.trial.holds_so_far(now) => Outcome::AtLeast(self.what_came(now)),
            None => Outcome::Unknown(self.scale.level(self.search.level)),
        }
    }

    /// What was asked for at the first level, where nobody asked for more.
    fn what_came(&self, now: Moment) -> Level {
        let rate = self.trial.departures_a_second(self.last.departed, now);
        match self.scale.level(self.search.level) {
            Level::Rate(level) if rate < level.per_second() => {
                Level::Rate(scale::rate((rate * 100.0).round() / 100.0).unwrap_or(level))
            }
            Level::Places(level) => Level::Places(level.min(self.trial.measurements().at_once())),
            level @ Level::Rate(_) => level,
        }
    }

    /// The highest level that was reached, where the other limit held requests back.
    fn what_left(&self, now: Moment) -> Level {
        let came = self.what_came(now);
        match (self.good(), came) {
            (Some(Level::Rate(good)), Level::Rate(it)) if good.per_second() > it.per_second() => {
                Level::Rate(good)
            }
            (Some(Level::Places(good)), Level::Places(it)) => Level::Places(good.max(it)),
            _ => came,
        }
    }

    /// The limit in force that is not searched.
    fn other_limit(&self) -> Option<Level> {
        let (set, file) = (self.levels(), self.last.limits);
        match self.scale.target() {
            Target::Rate { .. } => set.places.or(file.places).map(Level::Places),
            Target::Places { .. } => set.rate.or(file.rate).map(Level::Rate),
        }
    }

    fn found(&self) -> Found {
        let (low, high) = self.search.range();
        let contradiction = self.search.contradiction();
        let level = |it| self.scale.level(it);
        let contradiction = contradiction.map(|(broke, held)| Contradiction {
            broke: level(broke),
            held: level(held),
        });
        Found {
            level: level(self.search.level),
            low: level(low),
            high: level(high),
            contradiction,
            at_once: self.trial.measurements().at_once(),
            at_edge: self.at_edge,
            is_upper_bound: self.search.is_at_top(),
        }
    }

    fn describe(&self, verdict: StepVerdict, now: Moment) -> StepRecord {
        let took = now.since(self.trial.began());
        StepRecord {
            level: self.scale.level(self.search.level),
            purpose: self.search.purpose,
            verdict,
            broken: (verdict == StepVerdict::Broke)
                .then(|| self.trial.broken(&self.settings.objective, now))
                .flatten(),
            hung: verdict == StepVerdict::Broke && self.trial.hangs(),
            figures: self.trial.figures(&self.settings.objective, now),
            watched: self.trial.readings(),
            waited: self.trial.measurements().waited(),
            at_once: self.trial.measurements().at_once(),
            answers: self.trial.measurements().answers(),
            took: took.max(Duration::from_millis(1)),
            back_to: None,
        }
    }
}

#[cfg(test)]
mod tests;
