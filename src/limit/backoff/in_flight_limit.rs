//! The limit of requests in flight, which slow answers lower.
//!
//! A *permit* is the right to run one request at the origin. A *cut* lowers the limit after a
//! *window* of time with too many slow answers. [`trial`](super::trial) measures whether cuts make
//! answers faster. If they do not, the permits are *given back*, and the limit is *kept* (not cut)
//! for a time. A *generation* is the group of requests sent between two cuts. [`Closed`] is a
//! window that has ended.

use std::time::Duration;

use super::saved::SavedInFlight;
use super::tally::{KeyTally, WHOLE};
use super::tick::INSTANT_TOLERANCE;
use super::trial::{EndedGeneration, Trial, Unhelpful};
use super::window::Closed;
use super::{Cut, GivenBack, LearnedInFlight, Moment};
use crate::Percent;

/// One permit, in the unit of a limit: millionths of a permit.
const PERMIT: u64 = WHOLE;

/// Lower bound of the permits that a cut leaves.
const MIN_PERMITS: u64 = 2;

/// Share of slow answers in a window from which the limit is cut: 10 %.
const CUT_SHARE: u64 = WHOLE / 10;

/// Share of slow answers in a window up to which the limit grows: 5 %.
const GROWTH_SHARE: u64 = WHOLE / 20;

/// Time for which the limit is kept after fewer requests in flight did not make answers faster.
///
/// Doubles each time up to [`MAX_KEPT_DURATION`].
const MIN_KEPT_DURATION: Duration = Duration::from_secs(30);
const MAX_KEPT_DURATION: Duration = Duration::from_secs(300);

/// Duration of answers at which a cut aims, in tenths of `slow` (the threshold of slow answers).
const TARGET_TENTHS: u128 = 8;

/// Limit of the number of requests in flight.
#[derive(Debug)]
pub(super) struct InFlightLimit {
    /// Configured limit, in permits. `None`: no limit.
    configured: Option<u64>,
    /// Lower bound of the limit after a cut, as a share of `configured`.
    floor: Percent,
    /// Limit in force after a cut. `None`: the configured limit applies.
    lowered: Option<LoweredLimit>,
    /// Comparison of answers before and after the cuts.
    pub trial: Trial,
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
    since: Moment,
    until: Moment,
    /// Mean duration of answers with fewer requests in flight.
    ///
    /// If it doubles, the additional requests did harm.
    mean: Duration,
    /// Whether answers are still slow.
    is_slow: bool,
}

/// Limit that is lower than configured.
#[derive(Debug)]
struct LoweredLimit {
    /// Current limit, in millionths of a permit.
    limit: u64,
    /// Number of permits at which the limit has grown back and is no longer lowered.
    original: u64,
    last_cut: Cut,
}

impl LoweredLimit {
    /// Returns the current share of `original`.
    fn share(&self) -> Percent {
        // A limit is in millionths of a permit.
        Percent::nearest(self.limit / self.original.max(1))
    }
}

impl InFlightLimit {
    /// Returns the configured limit. `floor` bounds its cuts, as a share of it.
    pub fn new(configured: Option<usize>, floor: Percent) -> Self {
        Self {
            configured: configured.map(|limit| limit as u64),
            floor,
            lowered: None,
            trial: Trial::default(),
            keeping: None,
            next_kept_duration: MIN_KEPT_DURATION,
            may_grow: false,
        }
    }

    /// Returns the effective limit.
    pub fn effective(&self) -> Option<usize> {
        let lowered = self.lowered.as_ref().map(|lowered| lowered.limit / PERMIT);
        let limit = lowered.or(self.configured);
        limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// Returns the last cut, while the limit is lowered.
    pub fn last_cut(&self) -> Option<Cut> {
        self.lowered.as_ref().map(|lowered| lowered.last_cut)
    }

    /// Returns whether the limit is lowered, and grows because answers are fast enough.
    pub fn grows(&self) -> bool {
        self.lowered.is_some() && self.may_grow
    }

    /// Returns whether the limit is not cut although answers are slow, because cuts did not help.
    pub fn is_kept(&self) -> bool {
        self.keeping.as_ref().is_some_and(|keeping| keeping.is_slow)
    }

    /// Returns the state to save for the next process, if the limit is lowered.
    pub fn save(&self) -> Option<SavedInFlight> {
        let lowered = self.lowered.as_ref()?;
        Some(SavedInFlight {
            limit: lowered.limit,
            of: lowered.original,
            answers: lowered.last_cut.answers,
            bad: lowered.last_cut.bad,
        })
    }

    /// Restores a limit that was saved at `saved_at`, as a share of the configured limit.
    pub fn restore(&mut self, saved: &SavedInFlight, saved_at: Moment) {
        let original = saved.of.clamp(1, u32::MAX.into());
        let highest = original.max(MIN_PERMITS) * PERMIT;
        self.lowered = Some(LoweredLimit {
            limit: saved.limit.clamp(MIN_PERMITS * PERMIT, highest),
            original,
            last_cut: Cut::new(saved.bad, saved.answers, saved_at),
        });
        // No request has been sent that could be slow.
        self.may_grow = true;
        self.scale_to_configured();
    }

    /// Changes the configured limit. A lowered limit keeps its share of it.
    pub fn configure(&mut self, configured: Option<usize>, floor: Percent) {
        let configured = configured.map(|limit| limit as u64);
        if configured != self.configured {
            // The measurements were made with other limits.
            self.trial = Trial::default();
        }
        (self.configured, self.floor) = (configured, floor);
        self.scale_to_configured();
    }

    /// Scales a lowered limit to the new configured limit.
    fn scale_to_configured(&mut self) {
        if let (Some(lowered), Some(configured)) = (&mut self.lowered, self.configured) {
            let scaled = u128::from(lowered.limit) * u128::from(configured);
            let limit = scaled / u128::from(lowered.original.max(1));
            let limit = u64::try_from(limit).unwrap_or(u64::MAX);
            lowered.limit = limit.max(min_permits(configured, self.floor) * PERMIT);
            lowered.original = configured;
        }
        self.end_growth();
    }

    /// Removes a lowered limit, because `slow` is no longer configured.
    pub fn reset(&mut self) {
        self.lowered = None;
        (self.trial, self.keeping) = (Trial::default(), None);
    }

    /// Returns the state to send to other gateways at `now`, in shares of the configured limit.
    pub fn learned(&self, now: Moment) -> LearnedInFlight {
        if self.configured.is_none() {
            return LearnedInFlight::ALL;
        }
        let given_back = self.keeping.as_ref().map(|keeping| GivenBack {
            ago: now.since(keeping.since),
            kept: keeping.until.since(now),
            mean: keeping.mean,
        });
        let lowered = self.lowered.as_ref().map(|lowered| LearnedInFlight {
            share: lowered.share(),
            cut_ago: now.since(lowered.last_cut.at),
            answers: lowered.last_cut.answers,
            bad: lowered.last_cut.bad,
            given_back: None,
        });
        LearnedInFlight {
            given_back,
            ..lowered.unwrap_or(LearnedInFlight::ALL)
        }
    }

    /// Returns a share of the configured limit after one more tick of growth, which is 1 %.
    pub fn grown(share: Percent) -> Percent {
        Percent::nearest(grown(share.millionths().into()))
    }

    /// Adopts the limit of other gateways where it is lower.
    ///
    /// Permits that other gateways gave back are given back here, too, if no cut was made since.
    /// `is_untroubled`: no request can be in trouble at this gateway. The cut of the other gateways
    /// ends the current `generation`, which has `unanswered` requests without an answer.
    pub fn adopt(
        &mut self,
        learned: &LearnedInFlight,
        now: Moment,
        is_untroubled: bool,
        (generation, unanswered): (u64, u64),
    ) {
        let Some(configured) = self.configured else {
            return;
        };
        self.may_grow |= is_untroubled;
        let kept_since = self.keeping.as_ref().map(|keeping| keeping.since);
        if let Some(given_back) = learned.given_back {
            self.adopt_given_back(&given_back, now);
        }
        let cut_at = now.before(learned.cut_ago);
        // This gateway has given permits back after that cut.
        let is_undone_here = kept_since.is_some_and(|since| cut_at < since);
        let share = self
            .lowered
            .as_ref()
            .map_or(Percent::ALL, LoweredLimit::share);
        if learned.share >= share || is_undone_here {
            return;
        }
        let lowest = min_permits(configured, self.floor) * PERMIT;
        let limit = configured.saturating_mul(learned.share.millionths().into());
        let limit = limit.max(lowest);
        let known_cut = self.last_cut();
        let known_cut = known_cut.filter(|known| known.at + INSTANT_TOLERANCE >= cut_at);
        // If this gateway knows the cut, only its limit has grown faster than those of the others.
        if known_cut.is_none() {
            self.trial.end_generation(&EndedGeneration {
                generation,
                unanswered,
                limit: self
                    .lowered
                    .as_ref()
                    .map_or(configured * PERMIT, |it| it.limit),
                is_lowest: limit <= lowest,
                at: now,
            });
        }
        let learned_cut = Cut {
            is_elsewhere: true,
            ..Cut::new(learned.bad, learned.answers, cut_at)
        };
        self.lowered = Some(LoweredLimit {
            limit,
            original: configured,
            last_cut: known_cut.unwrap_or(learned_cut),
        });
        self.end_growth();
    }

    /// Gives permits back as other gateways did, unless this gateway has cut its limit since.
    fn adopt_given_back(&mut self, given_back: &GivenBack, now: Moment) {
        let since = now.before(given_back.ago);
        let known = self.keeping.as_ref();
        let is_newer = known.is_none_or(|known| since > known.since + INSTANT_TOLERANCE);
        let is_cut_since = self.last_cut().is_some_and(|cut| cut.at >= since);
        if !is_newer || is_cut_since || given_back.kept.is_zero() {
            return;
        }
        self.lowered = None;
        self.trial = Trial::default();
        self.keep(
            since,
            now + given_back.kept.min(MAX_KEPT_DURATION),
            given_back.mean,
        );
    }

    /// Cuts the limit after slow answers, or gives permits back if cuts made no answer faster.
    ///
    /// Returns whether it did either. A cut counts even if the limit is at its lower bound already.
    ///
    /// `part` is the share of the origin's answers that arrive at this gateway. A configured limit
    /// applies to all gateways, so the counts of this gateway are divided by `part`.
    pub fn judge(&mut self, closed: &Closed, part: Percent, slow: Duration) -> bool {
        if closed.window.answers + closed.overdue == 0 {
            self.may_grow = closed.unanswered == 0;
            self.note_slow(!self.may_grow, closed.at);
            return false;
        }
        let slow_share = closed.window.by_key.share(KeyTally::slow);
        self.may_grow = slow_share <= GROWTH_SHARE;
        let is_slow = slow_share >= CUT_SHARE;
        self.note_slow(is_slow, closed.at);
        if !is_slow || self.keep_longer(closed) {
            return false;
        }
        match self.trial.take_unhelpful() {
            Some(unhelpful) => self.give_back(&unhelpful, closed.at),
            None => self.cut(closed, part, slow),
        }
        true
    }

    /// Cuts the limit, at most down to its lower bound.
    fn cut(&mut self, closed: &Closed, part: Percent, slow: Duration) {
        // Without a configured limit, each gateway limits its own requests.
        let part = self.configured.map_or(Percent::ALL, |_| part);
        // Requests whose answer has begun, and uploads, keep their permits. The rest is cut.
        let answering = of_all_gateways(closed.answering.into(), part, 1);
        let lowered = self.lowered.as_ref();
        let original = lowered.map(|lowered| lowered.original).or(self.configured);
        let original = original.unwrap_or(closed.unanswered + closed.answering);
        let limit = lowered.map_or(original.saturating_mul(PERMIT), |lowered| lowered.limit);
        let before = limit.div_ceil(PERMIT);
        let lowest = min_permits(self.configured.unwrap_or_default(), self.floor);
        self.trial.end_generation(&EndedGeneration {
            generation: closed.generation,
            unanswered: closed.unanswered,
            limit,
            is_lowest: before <= lowest + answering,
            at: closed.at,
        });
        let rest = lower(before.saturating_sub(answering), closed, part, slow);
        let after = rest.max(lowest).saturating_add(answering).min(before);
        if after < original {
            let bad = closed.window.slow + closed.overdue;
            let answers = closed.window.answers + closed.overdue;
            self.lowered = Some(LoweredLimit {
                limit: after * PERMIT,
                original,
                last_cut: Cut::new(bad, answers, closed.at),
            });
        }
    }

    /// Returns whether the limit is kept in spite of the slow answers of a window.
    ///
    /// Ends the time in which it is kept if that is over, or if answers became much slower.
    fn keep_longer(&mut self, closed: &Closed) -> bool {
        let Some(keeping) = &self.keeping else {
            return false;
        };
        let mean = closed.window.mean();
        if mean.is_some_and(|mean| mean > keeping.mean * 2) {
            // More requests in flight did make answers slower.
            (self.keeping, self.next_kept_duration) = (None, MIN_KEPT_DURATION);
            return false;
        }
        if closed.at >= keeping.until {
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
        if !is_slow && at >= keeping.until {
            (self.keeping, self.next_kept_duration) = (None, MIN_KEPT_DURATION);
        }
    }

    /// Sets the limit to its value before the cuts that made no answer faster.
    fn give_back(&mut self, unhelpful: &Unhelpful, at: Moment) {
        if let Some(lowered) = &mut self.lowered {
            lowered.limit = lowered.limit.max(unhelpful.limit);
        }
        self.end_growth();
        self.trial = Trial::default();
        self.keep(at, at + self.next_kept_duration, unhelpful.mean);
        self.next_kept_duration = (self.next_kept_duration * 2).min(MAX_KEPT_DURATION);
    }

    /// Starts a span of time in which the limit is not cut.
    fn keep(&mut self, since: Moment, until: Moment, mean: Duration) {
        self.keeping = Some(Keeping {
            since,
            until,
            mean,
            is_slow: true,
        });
    }

    /// Grows the limit by 1 % for a tick. Returns whether the limit has changed.
    pub fn grow(&mut self) -> bool {
        let before = self.effective();
        if let Some(lowered) = self.lowered.as_mut().filter(|_| self.may_grow) {
            lowered.limit = grown(lowered.limit);
            self.end_growth();
        }
        self.effective() != before
    }

    /// Ends a lowered limit that has grown back.
    fn end_growth(&mut self) {
        let is_over = |it: &LoweredLimit| it.limit >= it.original.saturating_mul(PERMIT);
        if self.lowered.as_ref().is_some_and(is_over) {
            self.lowered = None;
            self.trial = Trial::default();
        }
    }
}

/// Returns a limit or a share after one more tick of growth, which is 1 %.
fn grown(limit: u64) -> u64 {
    limit + limit / 100
}

/// Returns the limit after a cut: at least half, and enough for the answers that were not slow.
///
/// By Little's law, the mean number in flight is the sum of durations divided by the window's time.
fn lower(limit: u64, closed: &Closed, part: Percent, slow: Duration) -> u64 {
    let (window, span) = (&closed.window, closed.span());
    // Mean number in flight of the requests whose answers were not slow.
    let needed_by_fast = of_all_gateways(window.good_nanos, part, span);
    // Mean number in flight if each answer took the target duration.
    let slow_total = slow.as_nanos().saturating_mul(window.completions.into());
    let on_target = of_all_gateways(slow_total.saturating_mul(TARGET_TENTHS), part, span * 10);
    let target = limit.saturating_sub(1).min(on_target);
    target.max(limit.div_ceil(2)).max(needed_by_fast)
}

/// Returns the lower bound of the permits that a cut leaves.
fn min_permits(configured: u64, floor: Percent) -> u64 {
    let floor = configured.saturating_mul(floor.millionths().into());
    floor.div_ceil(WHOLE).max(MIN_PERMITS)
}

/// Returns `number / divisor / part`, rounded up: a mean of this gateway, extrapolated to all.
///
/// `part` is the share of the origin's answers that arrive at this gateway.
fn of_all_gateways(number: u128, part: Percent, divisor: u128) -> u64 {
    let number = number.saturating_mul(WHOLE.into());
    let divisor = divisor.saturating_mul(part.millionths().into());
    u64::try_from(number.div_ceil(divisor)).unwrap_or(u64::MAX)
}
