//! The share of the configured rate that a back-off allows.

use std::time::Duration;

use super::tally::WHOLE;
use super::tick::TICK;
use super::window::Closed;
use super::{BackoffLimits, Cut, LearnedRate, SavedBackoff};
use crate::{Moment, Percent, Rate};

/// The whole configured rate, in millionths.
const ALL: u64 = Percent::ALL.millionths() as u64;

/// Time without growth after a cut of the rate.
const MIN_STEADY: Duration = Duration::from_secs(5);
const MAX_STEADY: Duration = Duration::from_secs(30);

/// Growth in a tick: 5 % of the configured rate a second, and 1 % near the point of trouble.
const GROWTH: u64 = ALL / 20 / 10;
const CAREFUL_GROWTH: u64 = ALL / 100 / 10;

/// Share of the configured rate that the origin can take.
///
/// All shares are in millionths of the configured rate, so that a reload keeps them.
#[derive(Debug, Default)]
pub(super) struct RateShare {
    now: u64,
    /// Share of the rate that the origin answered without trouble when it was last in trouble.
    ///
    /// `None`: unknown, or too long ago.
    trouble_at: Option<u64>,
    /// Time without growth after the last cut.
    steady: Duration,
    /// Instant until which the rate does not grow.
    steady_until: Moment,
    /// Whether the rate has grown since the last cut.
    has_grown: bool,
    /// Whether the last window had nearly enough trouble for a cut.
    was_near_trip: bool,
    /// Whether the last window allows growth.
    may_grow: bool,
    /// Instant at which the rate was last below the configured rate.
    below_all_at: Moment,
    last_cut: Option<Cut>,
}

impl RateShare {
    pub fn new(now: Moment) -> Self {
        Self {
            now: ALL,
            steady: MIN_STEADY,
            steady_until: now,
            below_all_at: now,
            ..Self::default()
        }
    }

    /// Returns the effective share of the configured rate.
    pub fn share(&self) -> Percent {
        Percent::nearest(self.now)
    }

    /// Returns the last cut, while the rate is below the configured rate.
    pub fn last_cut(&self) -> Option<Cut> {
        let cut = self.last_cut.filter(|_| self.now < ALL)?;
        let steady_until = Some(self.steady_until).filter(|until| *until > cut.at);
        Some(Cut {
            steady_until,
            ..cut
        })
    }

    /// Raises the rate to a new floor.
    pub fn raise_to(&mut self, floor: Percent) {
        self.now = self.now.max(floor.millionths().into());
    }

    /// Restores a cut that was saved at `at`.
    pub fn restore(&mut self, saved: &SavedBackoff, at: Moment, now: Moment) {
        self.now = saved.share.millionths().into();
        self.steady_until = at + saved.steady.min(MAX_STEADY);
        self.below_all_at = now;
        // No request has been sent that could be in trouble.
        self.may_grow = true;
        self.last_cut = Some(Cut::of(saved.bad, saved.answers, at));
    }

    /// Returns the state to send to other gateways at `now`.
    pub fn learned(&self, now: Moment) -> LearnedRate {
        let cut = self.last_cut();
        LearnedRate {
            share: self.share(),
            steady: self.steady_until.since(now),
            steady_time: self.steady,
            trouble_at: self.trouble_at.map(Percent::nearest),
            answers: cut.map_or(0, |cut| cut.answers),
            bad: cut.map_or(0, |cut| cut.bad),
        }
    }

    /// Creates the share from the state that other gateways had at `at`.
    pub fn learned_at(learned: &LearnedRate, at: Moment) -> Self {
        let cut = Cut {
            is_elsewhere: true,
            ..Cut::of(learned.bad, learned.answers, at)
        };
        Self {
            now: u64::from(learned.share.millionths()).min(ALL),
            trouble_at: learned.trouble_at.map(|at| at.millionths().into()),
            steady: learned.steady_time.clamp(MIN_STEADY, MAX_STEADY),
            // A pause may delay growth further.
            steady_until: at + learned.steady,
            may_grow: true,
            last_cut: Some(cut),
            ..Self::new(at)
        }
    }

    /// Returns the instant from which the rate may grow.
    pub fn steady_until(&self) -> Moment {
        self.steady_until
    }

    /// Adopts the share of other gateways, where it is lower. Returns whether it is.
    ///
    /// `is_cut`: the other gateways made a new cut. Else they have only grown less.
    /// `is_untroubled`: no request can be in trouble at this gateway.
    pub fn adopt(&mut self, learned: &Self, is_cut: bool, is_untroubled: bool) -> bool {
        if is_cut && learned.now < ALL {
            (self.trouble_at, self.steady) = (learned.trouble_at, learned.steady);
            self.has_grown = learned.has_grown;
            self.steady_until = self.steady_until.max(learned.steady_until);
        }
        self.may_grow |= is_untroubled;
        if learned.now >= self.now {
            return false;
        }
        self.now = learned.now;
        self.steady_until = self.steady_until.max(learned.steady_until);
        self.below_all_at = learned.below_all_at;
        if is_cut || self.last_cut().is_none() {
            self.last_cut = learned.last_cut;
        }
        true
    }

    /// Judges a window. Returns whether it is a cut, even if the rate cannot be lower.
    ///
    /// `rate` is the configured rate. `part` is the share of the origin's answers that arrive at
    /// this gateway. `resumes` is the instant at which departures resume: in a pause, later than
    /// the window's end.
    pub fn judge(
        &mut self,
        closed: &Closed,
        (rate, part): (Rate, Percent),
        limits: &BackoffLimits,
        resumes: Moment,
    ) -> bool {
        let (answers, trouble) = (closed.window.answers, closed.window.trouble);
        if answers == 0 {
            self.may_grow = closed.unanswered == 0;
            return false;
        }
        let share = closed.window.by_key.share(|it| (it.trouble, it.answers));
        let trip = u64::from(limits.trip.millionths()) * (WHOLE / ALL);
        self.may_grow = share * 2 < trip;
        let was_near_trip = std::mem::replace(&mut self.was_near_trip, false);
        if self.may_grow {
            return false;
        }
        let lower = if share >= trip {
            let good = good(closed, rate, part);
            self.stay_steady(good, resumes);
            (self.now * 9 / 10).min((good * 95 / 100).max(self.now / 2))
        } else if was_near_trip {
            self.now * 95 / 100
        } else {
            self.was_near_trip = true;
            return false;
        };
        let floor = u64::from(limits.floor.millionths()).min(self.now);
        self.now = lower.max(floor);
        self.below_all_at = closed.at;
        self.last_cut = Some(Cut::of(trouble, answers, closed.at));
        true
    }

    /// Stops growth after a cut. The time doubles each time growth meets the same trouble.
    ///
    /// A window without a good answer is an outage. It does not show what the origin can take.
    fn stay_steady(&mut self, good: u64, resumes: Moment) {
        let good = good.min(self.now);
        if good == 0 {
            self.steady = MIN_STEADY;
        } else {
            let is_same = self.trouble_at.is_some_and(|point| is_near(good, point));
            if !is_same {
                self.steady = MIN_STEADY;
            } else if self.has_grown {
                self.steady = (self.steady * 2).min(MAX_STEADY);
            }
            self.trouble_at = Some(good);
        }
        self.has_grown = false;
        self.steady_until = resumes + self.steady;
    }

    /// Shortens the time without growth after a pause has ended early.
    pub fn resume(&mut self, now: Moment) {
        self.steady_until = self.steady_until.min(now + self.steady);
    }

    /// Grows for the tick that ends at `now`. Returns whether the rate has changed.
    pub fn grow(&mut self, now: Moment) -> bool {
        if self.now == ALL {
            if now.since(self.below_all_at) > MAX_STEADY {
                self.trouble_at = None;
            }
            return false;
        }
        self.below_all_at = now;
        if !self.may_grow || now < self.steady_until + TICK {
            return false;
        }
        let is_close = self.trouble_at.is_some_and(|at| is_near(self.now, at));
        let growth = if is_close { CAREFUL_GROWTH } else { GROWTH };
        self.now = (self.now + growth).min(ALL);
        self.has_grown = true;
        true
    }
}

/// Returns the charge a second of answers without trouble, in millionths of the rate, at most all.
///
/// `part` of the answers arrive at this gateway: the count is divided by it.
fn good(closed: &Closed, rate: Rate, part: Percent) -> u64 {
    let at_rate = rate.time_for(closed.window.cost).as_nanos();
    let good = at_rate * u128::from(ALL) / closed.span();
    let good = good.saturating_mul(u128::from(ALL)) / u128::from(part.millionths().max(1));
    u64::try_from(good).unwrap_or(ALL).min(ALL)
}

/// Returns whether a share is within 15 % of a point.
fn is_near(share: u64, point: u64) -> bool {
    share.abs_diff(point) * 100 <= point * 15
}
