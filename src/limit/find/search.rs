//! Search for the next level to try.
//!
//! A *level* is a rate, or a number of permits, here as a number. A *breach* is a level at which
//! the objective did not hold. Steps go up while it holds, and are smaller near its edge. After a
//! breach the level falls at once. Once the origin has recovered, the last level that held is tried
//! for longer (*confirmed*).

use super::report::{AbortReason, Purpose, StepVerdict};
use super::settings::Target;

/// Closeness above which steps are halved. At 1, a trial is at the edge of the objective.
const NEAR: f64 = 0.5;

/// Closeness above which steps are quartered.
const VERY_NEAR: f64 = 0.7;

/// Upper bound of confirmations that may break.
const MAX_CONFIRMATIONS: u32 = 5;

/// Action after a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// Try this level for this purpose.
    Try(f64, Purpose),
    /// The level is confirmed.
    Found,
    /// End the search: there is no demand for more, or the other limit holds requests back.
    AtLeast,
    /// End the search without a result.
    Abort(AbortReason),
}

/// Search for the highest level at which the objective holds.
#[derive(Debug)]
pub(super) struct Search {
    target: Target,
    /// Largest step, as a part of the level.
    step: f64,
    /// Level that is taken for good. After a breach it may be lower than `highest`.
    pub good: Option<f64>,
    /// Last level that broke. Levels that broke while the origin recovered do not count.
    broken: Option<f64>,
    /// Highest level that ever held.
    highest: f64,
    /// Number of confirmations that broke.
    broken_confirmations: u32,
    /// Current level.
    pub level: f64,
    /// Purpose of the current level.
    pub purpose: Purpose,
}

impl Search {
    pub fn new(target: Target, step: f64) -> Self {
        Self {
            target,
            step,
            good: None,
            broken: None,
            highest: 0.0,
            broken_confirmations: 0,
            level: target.bottom(),
            purpose: Purpose::Climb,
        }
    }

    /// Returns whether steps are smaller and longer after a step with this closeness.
    pub fn is_near(closeness: f64) -> bool {
        closeness > NEAR
    }

    /// Returns the range that contains the capacity of the origin.
    ///
    /// It begins a step below the good level, because a level is judged by a sample of responses.
    /// It ends a step above the highest level that ever held, or at a level that broke above that:
    /// a level that held once and broke at another time is near the edge.
    pub fn range(&self) -> (f64, f64) {
        let good = self.good.unwrap_or(self.level);
        let high = self.target.up(good.max(self.highest), self.step);
        let high = self.broken.map_or(high, |broken| broken.max(high));
        (self.target.down(good, self.step), high)
    }

    /// Returns whether the upper bound of the search held.
    pub fn is_at_top(&self) -> bool {
        self.good.is_some_and(|good| good >= self.target.top())
    }

    /// Returns the action after the trial of the current level, and sets the next level.
    ///
    /// `closeness` tells how close the trial came to the edge of the objective, which is 1.
    pub fn next(&mut self, verdict: StepVerdict, closeness: f64) -> Next {
        if verdict == StepVerdict::Good && self.purpose != Purpose::Recover {
            self.highest = self.highest.max(self.level);
        }
        let next = match verdict {
            StepVerdict::Good => self.next_after_good(closeness),
            StepVerdict::Broke => self.next_after_breach(),
            StepVerdict::Idle | StepVerdict::HeldBack | StepVerdict::Undecided => Next::AtLeast,
        };
        if let Next::Try(level, purpose) = next {
            self.level = level;
            self.purpose = purpose;
        }
        next
    }

    fn next_after_good(&mut self, closeness: f64) -> Next {
        match self.purpose {
            Purpose::Confirm => Next::Found,
            Purpose::Recover => Next::Try(self.good.unwrap_or(self.level), Purpose::Confirm),
            Purpose::Climb => {
                self.good = Some(self.level);
                if self.level >= self.target.top() {
                    return Next::Try(self.level, Purpose::Confirm);
                }
                let part = match closeness {
                    near if near > VERY_NEAR => self.step / 4.0,
                    near if Self::is_near(near) => self.step / 2.0,
                    _ => self.step,
                };
                Next::Try(self.target.up(self.level, part), Purpose::Climb)
            }
        }
    }

    fn next_after_breach(&mut self) -> Next {
        let Some(good) = self.good else {
            return Next::Abort(AbortReason::BrokenAtFirst);
        };
        let bottom = self.target.bottom();
        match self.purpose {
            Purpose::Recover if self.level <= bottom => {
                return Next::Abort(AbortReason::NotRecovered);
            }
            Purpose::Confirm if self.level <= bottom => {
                return Next::Abort(AbortReason::BrokenAtFirst);
            }
            Purpose::Recover => {
                self.good = Some(good.min(self.target.down(self.level, self.step)));
            }
            Purpose::Confirm => {
                self.broken_confirmations += 1;
                self.broken = Some(self.level);
                self.good = Some(self.target.down(self.level, self.step / 2.0));
                if self.broken_confirmations >= MAX_CONFIRMATIONS {
                    return Next::Abort(AbortReason::Unsteady);
                }
            }
            Purpose::Climb => self.broken = Some(self.level),
        }
        let from = self.level.min(self.good.unwrap_or(good));
        Next::Try(self.target.down(from, self.step), Purpose::Recover)
    }
}

#[cfg(test)]
mod tests;
