//! The limit of requests in flight, which slow answers lower.

use std::time::Duration;

use super::saved::SavedInFlight;
use super::tally::{KeyTally, WHOLE};
use super::trial::{Ended, Trial};
use super::window::Closed;
use super::{Cut, GivenBack, Kept, LearnedInFlight, Moment};
use crate::Percent;

/// One permit, in the unit of a limit.
const ONE: u64 = 1_000_000;

/// Lower bound of the permits that a cut leaves.
const MIN_PERMITS: u64 = 2;

/// Time without cuts after fewer requests in flight did not make answers faster.
///
/// Doubles each time up to [`MAX_KEPT_DURATION`].
const MIN_KEPT_DURATION: Duration = Duration::from_secs(30);
const MAX_KEPT_DURATION: Duration = Duration::from_secs(300);

/// Duration of answers at which a cut aims, in tenths of `slow`.
const TARGET_TENTHS: u128 = 8;

/// Tolerance of an instant that another gateway estimated: closer instants are the same.
const INSTANT_TOLERANCE: Duration = Duration::from_millis(300);

/// Limit of the number of requests in flight.
#[derive(Debug)]
pub(super) struct InFlightLimit {
    /// Configured limit, in permits. `None`: no limit.
    file: Option<u64>,
    /// Lower bound of the limit after a cut, as a share of `file`.
    floor: Percent,
    /// Limit in force after a cut. `None`: the configured limit applies.
    lowered: Option<LoweredLimit>,
    /// Comparison of answers before and after the cuts.
    trial: Trial,
    /// Set while the limit is not cut, because fewer requests in flight did not help.
    keeping: Option<Keeping>,
    /// Duration for which the limit is kept the next time.
    next_kept_duration: Duration,
    /// Whether the last window allows growth.
    may_grow: bool,
}

/// Span of time in which the limit is not cut.
#[derive(Debug)]
struct Keeping {
    kept: Kept,
    /// Mean duration of answers with fewer requests in flight.
    ///
    /// If it doubles, more requests did harm.
    mean: Duration,
    /// Whether answers are still slow.
    is_slow: bool,
}

impl Keeping {
    fn new(kept: Kept, mean: Duration) -> Self {
        Self {
            kept,
            mean,
            is_slow: true,
        }
    }
}

#[derive(Debug)]
struct LoweredLimit {
    /// Current limit, in millionths of a permit.
    limit: u64,
    /// Number of permits at which the limit has grown back and is no longer lowered.
    until: u64,
    last_cut: Cut,
}

impl LoweredLimit {
    /// Returns the current share of `until`.
    fn share(&self) -> Percent {
        // A limit is in millionths of a permit.
        Percent::nearest(self.limit / self.until.max(1))
    }
}

impl InFlightLimit {
    pub fn new(file: Option<usize>, floor: Percent) -> Self {
        Self {
            file: file.map(|it| it as u64),
            floor,
            lowered: None,
            trial: Trial::default(),
            keeping: None,
            next_kept_duration: MIN_KEPT_DURATION,
            may_grow: false,
        }
    }

    /// Returns the effective limit.
    pub fn now(&self) -> Option<usize> {
        let lowered = self.lowered.as_ref().map(|it| it.limit / ONE);
        let now = lowered.or(self.file);
        now.map(|now| usize::try_from(now).unwrap_or(usize::MAX))
    }

    /// Returns the last cut, while the limit is lowered.
    pub fn last_cut(&self) -> Option<Cut> {
        self.lowered.as_ref().map(|lowered| lowered.last_cut)
    }

    /// Returns whether the limit is lowered, and grows because answers come in time.
    pub fn grows(&self) -> bool {
        self.lowered.is_some() && self.may_grow
    }

    /// Returns why the limit is not cut although answers are slow.
    pub fn kept(&self) -> Option<Kept> {
        let keeping = self.keeping.as_ref().filter(|keeping| keeping.is_slow);
        keeping.map(|keeping| keeping.kept)
    }

    /// Records an answer without trouble to a request that was in flight at an earlier cut.
    pub fn answered(&mut self, generation: u64, took: Duration) {
        self.trial.answered(generation, took);
    }

    /// Returns the state to save for the next process, if the limit is lowered.
    pub fn save(&self) -> Option<SavedInFlight> {
        let lowered = self.lowered.as_ref()?;
        Some(SavedInFlight {
            limit: lowered.limit,
            of: lowered.until,
            answers: lowered.last_cut.answers,
            bad: lowered.last_cut.bad,
        })
    }

    /// Restores what was saved at `at`, as a share of the configured limit.
    pub fn restore(&mut self, saved: &SavedInFlight, at: Moment) {
        let until = saved.of.clamp(1, u32::MAX.into());
        let limit = saved
            .limit
            .clamp(MIN_PERMITS * ONE, until.max(MIN_PERMITS) * ONE);
        self.lowered = Some(LoweredLimit {
            limit,
            until,
            last_cut: Cut::of(saved.bad, saved.answers, at),
        });
        // No request has been sent that could be slow.
        self.may_grow = true;
        self.scale_to_configured();
    }

    /// Changes the configured limit. A lowered limit keeps its share of it.
    pub fn set_file(&mut self, file: Option<usize>, floor: Percent) {
        if file.map(|it| it as u64) != self.file {
            // The measurements were made with other limits.
            self.trial = Trial::default();
        }
        (self.file, self.floor) = (file.map(|it| it as u64), floor);
        self.scale_to_configured();
    }

    /// Scales a lowered limit to the new configured limit.
    fn scale_to_configured(&mut self) {
        let (Some(lowered), Some(file)) = (&mut self.lowered, self.file) else {
            return self.end_growth();
        };
        let limit = u128::from(lowered.limit) * u128::from(file) / u128::from(lowered.until.max(1));
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        let min_permits = min_permits(file, self.floor);
        (lowered.limit, lowered.until) = (limit.max(min_permits * ONE), file);
        self.end_growth();
    }

    /// Removes a lowered limit, because `slow` is no longer configured.
    pub fn reset(&mut self) {
        self.lowered = None;
        (self.trial, self.keeping) = (Trial::default(), None);
    }

    /// Returns the state to send to other gateways at `now`, in shares of the configured limit.
    pub fn learned(&self, now: Moment) -> LearnedInFlight {
        if self.file.is_none() {
            return LearnedInFlight::ALL;
        }
        let given_back = self.keeping.as_ref().map(|keeping| GivenBack {
            ago: now.since(keeping.kept.since),
            kept: keeping.kept.until.since(now),
            mean: keeping.mean,
        });
        let Some(lowered) = &self.lowered else {
            return LearnedInFlight {
                given_back,
                ..LearnedInFlight::ALL
            };
        };
        LearnedInFlight {
            share: lowered.share(),
            cut_ago: now.since(lowered.last_cut.at),
            answers: lowered.last_cut.answers,
            bad: lowered.last_cut.bad,
            given_back,
        }
    }

    /// Returns a share of the configured limit after one more tick of growth, which is 1 %.
    pub fn grown(share: Percent) -> Percent {
        let share = share.millionths();
        Percent::from_millionths(share.saturating_add(share / 100)).min(Percent::ALL)
    }

    /// Adopts the limit of other gateways where it is lower.
    ///
    /// `present` is the generation that ends with it, and its number of requests without an answer.
    /// `is_untroubled`: no request can be in trouble at this gateway. Permits that other gateways
    /// gave back are given back here, too, if no cut was made since.
    pub fn adopt(
        &mut self,
        learned: &LearnedInFlight,
        now: Moment,
        is_untroubled: bool,
        present: (u64, u64),
    ) {
        let Some(file) = self.file else {
            return;
        };
        self.may_grow |= is_untroubled;
        let kept_since = self.keeping.as_ref().map(|keeping| keeping.kept.since);
        if let Some(it) = learned.given_back {
            let since = now.before(it.ago);
            let is_newer = kept_since.is_none_or(|known| since > known + INSTANT_TOLERANCE);
            let cut_at = self.lowered.as_ref().map(|lowered| lowered.last_cut.at);
            if is_newer && cut_at.is_none_or(|at| at < since) && !it.kept.is_zero() {
                self.lowered = None;
                self.trial = Trial::default();
                let until = now + it.kept.min(MAX_KEPT_DURATION);
                self.keeping = Some(Keeping::new(Kept { since, until }, it.mean));
            }
        }
        let cut_at = now.before(learned.cut_ago);
        let own = self.lowered.as_ref().map(LoweredLimit::share);
        let is_taken_back = kept_since.is_some_and(|since| cut_at < since);
        if learned.share >= own.unwrap_or(Percent::ALL) || is_taken_back {
            return;
        }
        let min_permits = min_permits(file, self.floor);
        let limit = u128::from(file) * u128::from(learned.share.millionths());
        let limit = u64::try_from(limit)
            .unwrap_or(u64::MAX)
            .max(min_permits * ONE);
        let is_cut = self
            .last_cut()
            .is_none_or(|own| own.at + INSTANT_TOLERANCE < cut_at);
        if is_cut {
            let (generation, in_flight) = present;
            self.trial.ended(&Ended {
                generation,
                in_flight,
                limit: self.lowered.as_ref().map_or(file * ONE, |it| it.limit),
                is_lowest: limit <= min_permits * ONE,
                at: now,
            });
        }
        let learned_cut = Cut {
            is_elsewhere: true,
            ..Cut::of(learned.bad, learned.answers, cut_at)
        };
        let own_cut = self.last_cut().filter(|_| !is_cut);
        self.lowered = Some(LoweredLimit {
            limit,
            until: file,
            last_cut: own_cut.unwrap_or(learned_cut),
        });
        self.end_growth();
    }

    /// Cuts the limit after slow answers, or gives permits back if cuts made no answer faster.
    ///
    /// Returns whether it did either. A cut counts even if the limit is at its lower bound already.
    ///
    /// `part` is the share of the origin's answers that arrive at this gateway. A configured limit
    /// applies to all gateways, so the counts of this gateway are divided by `part`.
    pub fn judge(&mut self, closed: &Closed, part: Percent, slow: Duration) -> bool {
        let window = &closed.window;
        let bad = window.slow + closed.overdue;
        let all = window.answers + closed.overdue;
        if all == 0 {
            self.may_grow = closed.unanswered == 0;
            self.note_slow(!self.may_grow, closed.at);
            return false;
        }
        let share = window.by_key.share(KeyTally::slow);
        // The share of slow answers is at most 5 %.
        self.may_grow = share * 20 <= WHOLE;
        // The share of slow answers is at least 10 %.
        let is_slow = share * 10 >= WHOLE;
        self.note_slow(is_slow, closed.at);
        if !is_slow || self.is_still_kept(closed) {
            return false;
        }
        if let Some((limit, mean)) = self.trial.no_faster() {
            self.give_back(limit, mean, closed.at);
            return true;
        }
        let at_origin = closed.unanswered + closed.answering;
        let part = self.file.map_or(Percent::ALL, |_| part);
        let answering = of_all_gateways(closed.answering.into(), part, 1);
        let lowered = self.lowered.as_ref();
        let until = lowered.map_or(self.file.unwrap_or(at_origin), |it| it.until);
        let before = lowered.map_or(until, |it| it.limit.div_ceil(ONE));
        let min_permits = min_permits(self.file.unwrap_or_default(), self.floor);
        self.trial.ended(&Ended {
            generation: closed.generation,
            in_flight: closed.unanswered,
            limit: lowered.map_or(until.saturating_mul(ONE), |it| it.limit),
            is_lowest: before <= min_permits + answering,
            at: closed.at,
        });
        // Requests whose answer has begun keep their permits. The cut applies to the rest.
        let after = lower(before.saturating_sub(answering), closed, part, slow);
        let after = after.max(min_permits);
        let after = after.saturating_add(answering).min(before);
        if after < until {
            self.lowered = Some(LoweredLimit {
                limit: after * ONE,
                until,
                last_cut: Cut::of(bad, all, closed.at),
            });
        }
        true
    }

    /// Returns whether the limit is kept in spite of the slow answers of a window.
    ///
    /// Ends the time in which it is kept if that is over, or if answers became much slower.
    fn is_still_kept(&mut self, closed: &Closed) -> bool {
        let Some(keeping) = &self.keeping else {
            return false;
        };
        let mean = closed.window.mean();
        if mean.is_some_and(|mean| mean > keeping.mean * 2) {
            // More requests in flight did make answers slower.
            (self.keeping, self.next_kept_duration) = (None, MIN_KEPT_DURATION);
            return false;
        }
        if closed.at >= keeping.kept.until {
            self.keeping = None;
            return false;
        }
        true
    }

    /// Records whether answers are slow at present, for a limit that is not cut.
    fn note_slow(&mut self, is_slow: bool, at: Moment) {
        let Some(keeping) = &mut self.keeping else {
            return;
        };
        keeping.is_slow = is_slow;
        if !is_slow && at >= keeping.kept.until {
            (self.keeping, self.next_kept_duration) = (None, MIN_KEPT_DURATION);
        }
    }

    /// Sets the limit to its value before the cuts that made no answer faster.
    fn give_back(&mut self, limit: u64, mean: Duration, at: Moment) {
        if let Some(lowered) = &mut self.lowered {
            lowered.limit = lowered.limit.max(limit);
        }
        self.end_growth();
        self.trial = Trial::default();
        let (since, until) = (at, at + self.next_kept_duration);
        self.keeping = Some(Keeping::new(Kept { since, until }, mean));
        self.next_kept_duration = (self.next_kept_duration * 2).min(MAX_KEPT_DURATION);
    }

    /// Grows the limit by 1 % for a tick. Returns whether the limit has changed.
    pub fn grow(&mut self) -> bool {
        let before = self.now();
        if let Some(lowered) = self.lowered.as_mut().filter(|_| self.may_grow) {
            lowered.limit += lowered.limit / 100;
            self.end_growth();
        }
        self.now() != before
    }

    /// Ends a lowered limit that has grown back.
    fn end_growth(&mut self) {
        let is_over = |lowered: &LoweredLimit| lowered.limit >= lowered.until.saturating_mul(ONE);
        if self.lowered.as_ref().is_some_and(is_over) {
            self.lowered = None;
            self.trial = Trial::default();
        }
    }
}

/// Returns the limit after a cut: at least half, and enough for the good answers.
fn lower(limit: u64, closed: &Closed, part: Percent, slow: Duration) -> u64 {
    let (window, span) = (&closed.window, closed.span());
    let busy = of_all_gateways(window.good_nanos, part, span);
    // Mean number in flight at which answers take the target duration.
    let slow_total = slow.as_nanos().saturating_mul(window.completions.into());
    let on_target = of_all_gateways(slow_total.saturating_mul(TARGET_TENTHS), part, span * 10);
    let lower = limit.saturating_sub(1).min(on_target);
    lower.max(limit.div_ceil(2)).max(busy)
}

/// Returns the lower bound of the permits that a cut leaves, for a configured limit of `file`.
fn min_permits(file: u64, floor: Percent) -> u64 {
    let millionths = u128::from(file) * u128::from(floor.millionths());
    round_up(millionths, u128::from(Percent::ALL.millionths())).max(MIN_PERMITS)
}

/// Returns `number` / `by` of all gateways, if `part` of it is counted here. Rounds up.
fn of_all_gateways(number: u128, part: Percent, by: u128) -> u64 {
    let all = number.saturating_mul(Percent::ALL.millionths().into());
    let by = by.saturating_mul(part.millionths().max(1).into());
    round_up(all, by)
}

fn round_up(number: u128, by: u128) -> u64 {
    u64::try_from(number.div_ceil(by)).unwrap_or(u64::MAX)
}
