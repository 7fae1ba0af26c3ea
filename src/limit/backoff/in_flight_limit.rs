use std::time::Duration;

use super::saved::SavedPlaces;
use super::window::Closed;
use super::{Cut, Moment};

/// One place, in the unit of a limit.
const ONE: u64 = 1_000_000;

/// A cut leaves at least so many places.
const FEWEST: u64 = 2;

/// How many requests may be at the origin at once.
#[derive(Debug)]
pub(super) struct InFlightLimit {
    file: Option<u64>,
    lowered: Option<LoweredLimit>,
    /// Whether the last window allows growth.
    may_grow: bool,
}

#[derive(Debug)]
struct LoweredLimit {
    /// In millionths of a place.
    limit: u64,
    /// When it has grown to so many places, it ends.
    until: u64,
    last_cut: Cut,
}

impl InFlightLimit {
    pub fn new(file: Option<usize>) -> Self {
        Self {
            file: file.map(places),
            lowered: None,
            may_grow: false,
        }
    }

    pub fn now(&self) -> Option<usize> {
        let lowered = self.lowered.as_ref().map(|it| it.limit / ONE);
        let now = lowered.or(self.file);
        now.map(|now| usize::try_from(now).unwrap_or(usize::MAX))
    }

    pub fn last_cut(&self) -> Option<Cut> {
        self.lowered.as_ref().map(|lowered| lowered.last_cut)
    }

    /// What the next process continues from, if it is lower than in the file.
    pub fn save(&self) -> Option<SavedPlaces> {
        let lowered = self.lowered.as_ref()?;
        Some(SavedPlaces {
            limit: lowered.limit,
            of: lowered.until,
            answers: lowered.last_cut.answers,
            bad: lowered.last_cut.bad,
        })
    }

    /// Continues from what was saved at `at`, as its part of what the file says now.
    pub fn restore(&mut self, saved: &SavedPlaces, at: Moment) {
        let until = saved.of.clamp(1, u32::MAX.into());
        let limit = saved.limit.clamp(FEWEST * ONE, until.max(FEWEST) * ONE);
        self.lowered = Some(LoweredLimit {
            limit,
            until,
            last_cut: Cut::of(saved.bad, saved.answers, at),
        });
        // Nothing has been sent that could be slow.
        self.may_grow = true;
        self.keep_part();
    }

    /// Changes what the file says. A lowered limit keeps its part of it.
    pub fn set_file(&mut self, file: Option<usize>) {
        self.file = file.map(places);
        self.keep_part();
    }

    /// Gives a lowered limit the part of what the file says that it had before.
    fn keep_part(&mut self) {
        let (Some(lowered), Some(file)) = (&mut self.lowered, self.file) else {
            return self.end_growth();
        };
        let limit = u128::from(lowered.limit) * u128::from(file) / u128::from(lowered.until.max(1));
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        (lowered.limit, lowered.until) = (limit.max(FEWEST * ONE), file);
        self.end_growth();
    }

    /// Ends a limit that the file gave no reason for any more.
    pub fn reset(&mut self) {
        self.lowered = None;
    }

    /// Judges a window. Returns whether it is a cut, even if the limit cannot be lower.
    pub fn judge(&mut self, closed: &Closed, slow: Duration) -> bool {
        let window = &closed.window;
        let (bad, all) = (
            window.slow + closed.overdue,
            window.answers + closed.overdue,
        );
        if all == 0 {
            self.may_grow = closed.unanswered == 0;
            return false;
        }
        self.may_grow = bad * 20 <= all;
        if bad * 10 < all {
            return false;
        }
        let at_origin = closed.unanswered + closed.answering;
        let lowered = self.lowered.as_ref();
        let until = lowered.map_or(self.file.unwrap_or(at_origin), |it| it.until);
        let before = lowered.map_or(until, |it| it.limit.div_ceil(ONE));
        // Those that are being answered keep their places: the rest is for the others.
        let after = lower(before.saturating_sub(closed.answering), closed, slow);
        let after = (after + closed.answering).min(before);
        if after < until {
            self.lowered = Some(LoweredLimit {
                limit: after * ONE,
                until,
                last_cut: Cut::of(bad, all, closed.at),
            });
        }
        true
    }

    /// Grows by 1 % for a tick. Returns whether the limit has changed.
    pub fn grow(&mut self) -> bool {
        let before = self.now();
        if let Some(lowered) = self.lowered.as_mut().filter(|_| self.may_grow) {
            lowered.limit += lowered.limit / 100;
            self.end_growth();
        }
        self.now() != before
    }

    fn end_growth(&mut self) {
        let is_over = |lowered: &LoweredLimit| lowered.limit >= lowered.until.saturating_mul(ONE);
        if self.lowered.as_ref().is_some_and(is_over) {
            self.lowered = None;
        }
    }
}

/// What a cut leaves of a limit: at least half, and as many as good answers need.
fn lower(limit: u64, closed: &Closed, slow: Duration) -> u64 {
    let (window, span) = (&closed.window, closed.span());
    let busy = round_up(window.good_nanos, span);
    let slow = slow.as_nanos().saturating_mul(window.completions.into());
    let in_time = round_up(slow.saturating_mul(8), span * 10);
    let lower = limit.saturating_sub(1).min(in_time);
    lower.max(limit.div_ceil(2)).max(busy).max(FEWEST)
}

fn places(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn round_up(number: u128, by: u128) -> u64 {
    u64::try_from(number.div_ceil(by)).unwrap_or(u64::MAX)
}
