use std::num::NonZeroU32;
use std::time::Duration;

use super::crowd::VisitorCrowd;
use super::visit::SimulatedVisit;
use crate::limit::{Moment, RoomCounts, RoomState};
use crate::replay::{Join, Spread, Timeline};

/// Width of a column of the timeline at first: a second, in nanoseconds.
const FINEST: u64 = 1_000_000_000;

/// Of a shorter wait, an error counts as if it were so long: nobody is told to ask again earlier.
const MIN_WAIT: Duration = Duration::from_secs(2);

/// Rows of the timeline.
pub(super) const CAME: usize = 0;
pub(super) const LET_IN: usize = 1;
pub(super) const LOST: usize = 2;
pub(super) const POLLS: usize = 3;
/// Whether anything has happened in the column.
pub(super) const SEEN: usize = 4;
/// The most at once.
pub(super) const WAITING: usize = 5;
pub(super) const INSIDE: usize = 6;
pub(super) const ROWS: usize = 7;

/// Counts of a run.
#[derive(Debug)]
pub(super) struct RoomTally {
    sessions: Option<NonZeroU32>,
    /// Up to when places are counted.
    until: Moment,
    state: RoomState,
    /// Visitors inside who will ask once more.
    present: u64,
    pub(super) counts: RoomCounts,
    pub(super) places: PlaceTime,
    /// Turns that were lost although the visitor came back.
    pub(super) late: u64,
    pub(super) max_waiting: u64,
    /// Of those who waited, from coming to entering, in nanoseconds.
    pub(super) waits: Spread,
    told: ToldWaits,
    polls: PollRate,
    entered: Option<(Moment, Moment)>,
    pub(super) timeline: Timeline<ROWS>,
}

/// How places were used while somebody waited, in seconds of places.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlaceTime {
    /// Of visitors who ask once more.
    pub(super) used: f64,
    /// Of visitors who have asked for the last time, until `idle` has passed.
    pub(super) idle: f64,
    /// Of visitors who were called and have not come.
    pub(super) kept: f64,
    pub(super) all: f64,
}

/// How many of the waits that were told came true.
#[derive(Clone, Copy, Debug, Default)]
struct ToldWaits {
    all: u64,
    within_a_quarter: u64,
}

/// Polls in each second.
#[derive(Clone, Copy, Debug, Default)]
struct PollRate {
    second: u64,
    count: u64,
    max: u64,
}

impl RoomTally {
    pub(super) fn new(sessions: Option<NonZeroU32>) -> Self {
        use Join::{Peak, Sum};
        Self {
            sessions,
            until: VisitorCrowd::BEGIN,
            state: RoomState::default(),
            present: 0,
            counts: RoomCounts::default(),
            places: PlaceTime::default(),
            late: 0,
            max_waiting: 0,
            waits: Spread::default(),
            told: ToldWaits::default(),
            polls: PollRate::default(),
            entered: None,
            timeline: Timeline::new(FINEST, [Sum, Sum, Sum, Sum, Sum, Peak, Peak]),
        }
    }

    /// Counts the places up to `now`.
    #[expect(clippy::cast_precision_loss, reason = "shares are for people")]
    pub(super) fn pass(&mut self, now: Moment) {
        let passed = now.since(self.until).as_secs_f64();
        self.until = now;
        let Some(sessions) = self.sessions.filter(|_| self.state.is_open) else {
            return;
        };
        if self.state.waiting > 0 {
            let idle = self.state.inside.saturating_sub(self.present);
            self.places.used += passed * self.present as f64;
            self.places.idle += passed * idle as f64;
            self.places.kept += passed * self.state.called as f64;
            self.places.all += passed * f64::from(sessions.get());
        }
    }

    /// Takes over the state after something has happened.
    pub(super) fn observe(&mut self, now: Moment, state: RoomState, counts: RoomCounts) {
        let before = std::mem::replace(&mut self.counts, counts);
        self.state = state;
        self.max_waiting = self.max_waiting.max(state.waiting);
        let came = |counts: &RoomCounts| counts.walked_in + counts.drew;
        let let_in = |counts: &RoomCounts| counts.walked_in + counts.came;
        for (row, value) in [
            (CAME, came(&counts) - came(&before)),
            (LET_IN, let_in(&counts) - let_in(&before)),
            (LOST, counts.lost - before.lost),
            (SEEN, 1),
            (WAITING, state.waiting),
            (INSIDE, state.inside),
        ] {
            self.put(now, row, value);
        }
    }

    pub(super) fn polled(&mut self, now: Moment) {
        self.put(now, POLLS, 1);
        let polls = &mut self.polls;
        let second = now.as_nanos() / 1_000_000_000;
        if polls.second != second {
            (polls.second, polls.count) = (second, 0);
        }
        polls.count += 1;
        polls.max = polls.max.max(polls.count);
    }

    /// Records that a visitor comes in.
    pub(super) fn entered(&mut self, now: Moment, visit: &SimulatedVisit) {
        self.present += 1;
        self.entered = Some((self.entered.map_or(now, |(first, _)| first), now));
        let Some(called) = visit.called else {
            return;
        };
        let wait = now.since(visit.came).as_nanos();
        self.waits.add(u64::try_from(wait).unwrap_or(u64::MAX));
        if let Some(told) = visit.told {
            let waited = called.since(visit.came);
            self.told.all += 1;
            let is_near = told.abs_diff(waited) <= waited.max(MIN_WAIT) / 4;
            self.told.within_a_quarter += u64::from(is_near);
        }
    }

    /// Records the last request of a visitor inside.
    pub(super) fn left(&mut self) {
        self.present -= 1;
    }

    /// The share of the told waits that were right within a quarter; `None` if none was told.
    pub(super) fn told_right(&self) -> Option<f64> {
        let ToldWaits {
            all,
            within_a_quarter,
        } = self.told;
        (all > 0).then(|| crate::tools::shown::share(within_a_quarter, all))
    }

    /// The most polls in a second.
    pub(super) fn max_polls(&self) -> u64 {
        self.polls.max
    }

    /// From the first arrival to the moment at which the last visitor came in.
    pub(super) fn all_in_after(&self) -> Option<Duration> {
        self.entered
            .map(|(_, last)| last.since(VisitorCrowd::BEGIN))
    }

    /// Visitors let in a second, from the first to the last one.
    #[expect(clippy::cast_precision_loss, reason = "it is for people")]
    pub(super) fn admissions(&self) -> Option<f64> {
        let (first, last) = self.entered?;
        let let_in = self.counts.walked_in + self.counts.came;
        let seconds = last.since(first).as_secs_f64();
        (seconds > 0.0).then(|| (let_in - 1) as f64 / seconds)
    }

    /// Visitors who still wait at the end.
    pub(super) fn still_waiting(&self) -> u64 {
        self.state.waiting + self.state.called
    }

    fn put(&mut self, now: Moment, row: usize, value: u64) {
        let at = now.since(VisitorCrowd::BEGIN).as_nanos();
        self.timeline
            .put(u64::try_from(at).unwrap_or(u64::MAX), row, value);
    }
}
