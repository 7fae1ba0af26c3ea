//! The share of the configured rate that a back-off allows.
//!
//! A *cut* lowers the share after a *window* of time with too much *trouble* (answers that count as
//! failures). After a cut the share is *steady*: it does not grow for a time. Then it grows a
//! little at each *tick*, ten a second, and more slowly near the point at which trouble began last.

use std::time::Duration;

use super::tally::WHOLE;
use super::tick::TICK;
use super::window::Closed;
use super::{BackoffLimits, Cut, LearnedRate, SavedBackoff};
use crate::{Moment, Percent, Rate};

/// Time without growth after a cut of the rate.
///
/// Doubles up to [`MAX_STEADY`] if growth meets the same trouble again.
const MIN_STEADY: Duration = Duration::from_secs(5);
const MAX_STEADY: Duration = Duration::from_secs(30);

/// Growth in a tick: 5 % of the configured rate a second.
const GROWTH: u64 = WHOLE / 20 / 10;
/// Growth in a tick near the point of trouble: 1 % of the configured rate a second.
const CAREFUL_GROWTH: u64 = WHOLE / 100 / 10;

/// Distance from the point of trouble that is near, in percent of that point.
const NEAR_PERCENT: u64 = 15;

/// Share of the configured rate that the origin can take.
///
/// All shares are in millionths of the configured rate, so that a reload keeps them.
#[derive(Debug, Default)]
pub(super) struct RateShare {
    /// Effective share.
    share: u64,
    /// Point of trouble: share of the rate that the origin answered well when it was last in
    /// trouble.
    ///
    /// `None`: unknown, or too long ago.
    trouble_at: Option<u64>,
    /// Time without growth after the last cut.
    steady: Duration,
    /// Instant until which the rate does not grow.
    steady_until: Moment,
    /// Whether the rate has grown since the last cut.
    has_grown: bool,
    /// Whether the last window had at least half of the trouble for a cut.
    was_near_trip: bool,
    /// Whether the last window allows growth.
    may_grow: bool,
    /// Instant at which the rate was last below the configured rate.
    lowered_at: Moment,
    last_cut: Option<Cut>,
}

impl RateShare {
    /// Returns the whole rate.
    pub fn new(now: Moment) -> Self {
        Self {
            share: WHOLE,
            steady: MIN_STEADY,
            steady_until: now,
            lowered_at: now,
            ..Self::default()
        }
    }

    /// Returns the effective share of the configured rate.
    pub fn share(&self) -> Percent {
        Percent::nearest(self.share)
    }

    /// Returns the last cut, while the rate is below the configured rate.
    pub fn last_cut(&self) -> Option<Cut> {
        let cut = self.last_cut.filter(|_| self.share < WHOLE)?;
        let steady_until = Some(self.steady_until).filter(|until| *until > cut.at);
        Some(Cut {
            steady_until,
            ..cut
        })
    }

    /// Raises the rate to a new floor.
    pub fn raise_to(&mut self, floor: Percent) {
        self.share = self.share.max(floor.millionths().into());
    }

    /// Restores a cut that was saved at `at`.
    pub fn restore(&mut self, saved: &SavedBackoff, at: Moment, now: Moment) {
        self.share = saved.share.millionths().into();
        self.steady_until = at + saved.steady.min(MAX_STEADY);
        self.lowered_at = now;
        // No request has been sent that could be in trouble.
        self.may_grow = true;
        self.last_cut = Some(Cut::new(saved.bad, saved.answers, at));
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
            ..Cut::new(learned.bad, learned.answers, at)
        };
        Self {
            share: learned.share.millionths().into(),
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

    /// Adopts the share of other gateways, where it is lower. Returns whether it is lower.
    ///
    /// `is_cut`: the other gateways made a new cut. Else they have only grown less.
    /// `is_untroubled`: no request can be in trouble at this gateway.
    pub fn adopt(&mut self, learned: &Self, is_cut: bool, is_untroubled: bool) -> bool {
        if is_cut && learned.share < WHOLE {
            (self.trouble_at, self.steady) = (learned.trouble_at, learned.steady);
            self.has_grown = learned.has_grown;
            self.steady_until = self.steady_until.max(learned.steady_until);
        }
        self.may_grow |= is_untroubled;
        if learned.share >= self.share {
            return false;
        }
        self.share = learned.share;
        self.steady_until = self.steady_until.max(learned.steady_until);
        self.lowered_at = learned.lowered_at;
        if is_cut || self.last_cut().is_none() {
            self.last_cut = learned.last_cut;
        }
        true
    }

    /// Judges a window. Returns whether it caused a cut, even if the rate is at its floor already.
    ///
    /// `good_share` is the [share](good_share) that the origin answered without trouble.
    /// `resumes_at` is the end of the window or, in a pause, the end of the pause.
    pub fn judge(
        &mut self,
        closed: &Closed,
        good_share: u64,
        limits: &BackoffLimits,
        resumes_at: Moment,
    ) -> bool {
        let (answers, trouble) = (closed.window.answers, closed.window.trouble);
        if answers == 0 {
            self.may_grow = closed.unanswered == 0;
            return false;
        }
        let by_key = &closed.window.by_key;
        let trouble_share = by_key.share(|tally| (tally.trouble, tally.answers));
        let trip = u64::from(limits.trip.millionths());
        self.may_grow = trouble_share * 2 < trip;
        let was_near_trip = std::mem::replace(&mut self.was_near_trip, false);
        if self.may_grow {
            return false;
        }
        let lower = if trouble_share >= trip {
            self.stay_steady(good_share, resumes_at);
            // To 95 % of what the origin answered well, but at least by 10 % and at most by half.
            (self.share * 9 / 10).min((good_share * 95 / 100).max(self.share / 2))
        } else if was_near_trip {
            // Half of the trouble for a cut, in two consecutive windows: a cut by 5 %.
            self.share * 95 / 100
        } else {
            self.was_near_trip = true;
            return false;
        };
        let floor = u64::from(limits.floor.millionths()).min(self.share);
        self.share = lower.max(floor);
        self.lowered_at = closed.at;
        self.last_cut = Some(Cut::new(trouble, answers, closed.at));
        true
    }

    /// Stops growth after a cut. The time doubles each time growth meets the same trouble.
    ///
    /// A window without a good answer is an outage. It does not show what the origin can take.
    fn stay_steady(&mut self, good_share: u64, resumes_at: Moment) {
        let good_share = good_share.min(self.share);
        let is_same_trouble = self.is_near_trouble(good_share);
        if good_share == 0 || !is_same_trouble {
            self.steady = MIN_STEADY;
        } else if self.has_grown {
            self.steady = (self.steady * 2).min(MAX_STEADY);
        }
        if good_share > 0 {
            self.trouble_at = Some(good_share);
        }
        self.has_grown = false;
        self.steady_until = resumes_at + self.steady;
    }

    /// Returns whether a share is within [`NEAR_PERCENT`] of the point of trouble.
    fn is_near_trouble(&self, share: u64) -> bool {
        self.trouble_at
            .is_some_and(|point| share.abs_diff(point) * 100 <= point * NEAR_PERCENT)
    }

    /// Shortens the time without growth after a pause has ended early.
    pub fn resume(&mut self, now: Moment) {
        self.steady_until = self.steady_until.min(now + self.steady);
    }

    /// Grows for the tick that ends at `now`. Returns whether the rate has changed.
    pub fn grow(&mut self, now: Moment) -> bool {
        if self.share == WHOLE {
            if now.since(self.lowered_at) > MAX_STEADY {
                self.trouble_at = None;
            }
            return false;
        }
        self.lowered_at = now;
        if !self.may_grow || now < self.steady_until + TICK {
            return false;
        }
        let growth = if self.is_near_trouble(self.share) {
            CAREFUL_GROWTH
        } else {
            GROWTH
        };
        self.share = (self.share + growth).min(WHOLE);
        self.has_grown = true;
        true
    }
}

/// Returns the share of the rate that was answered without trouble in a window.
///
/// It is the cost of these answers a second at all gateways, in millionths of `rate`, at most
/// [`WHOLE`]. `part` is the share of the answers that arrive at this gateway.
pub(super) fn good_share(closed: &Closed, rate: Rate, part: Percent) -> u64 {
    let whole = u128::from(WHOLE);
    // The time that these answers would take at the whole rate, as a share of the window's time.
    let at_rate = rate.time_for(closed.window.cost).as_nanos();
    let here = at_rate * whole / closed.span();
    let everywhere = here.saturating_mul(whole) / u128::from(part.millionths());
    u64::try_from(everywhere).unwrap_or(WHOLE).min(WHOLE)
}
