//! Samples of waiting rooms: their status, counts of the last second, and values of some minutes.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use limit::{Moment, RoomCounts};

use super::room_status;
use super::sample::RoomSample;
use crate::room::{OriginRoom, RoomStatus};
use crate::status::counts::Labelled;
use crate::status::growth::Before;
use crate::status::timestamp::seconds;

/// Number of seconds over which calls that ended are counted.
const LATELY: usize = 300;

/// Waiting rooms one second ago and before, by origin.
#[derive(Default)]
pub(crate) struct Rooms {
    /// Visitors by event, and requests.
    counts: Before<String, (Labelled, Labelled)>,
    past: HashMap<String, Past>,
}

/// Values of a room in the last minutes.
#[derive(Default)]
struct Past {
    /// Counts at the end of each second, the oldest first.
    counts: VecDeque<RoomCounts>,
    /// Begin of the time without calls, though visitors wait and sessions are free.
    stuck_since: Option<Moment>,
}

impl Rooms {
    /// Begins a new second. Forgets rooms that were not sampled in the last one.
    pub(crate) fn begin(&mut self) {
        let counts = &self.counts;
        self.past.retain(|origin, _| counts.has(origin));
        self.counts.begin();
    }

    /// Returns the sample of an origin's room for the last second. `file`: configured values.
    pub(crate) fn sample(
        &mut self,
        room: &OriginRoom,
        file: &config::Room,
        now: Moment,
    ) -> RoomSample {
        let origin = &room.origin;
        let status = room.status(now);
        let mut shown = room_status(room, file, &status);
        let counts = (shown.events, shown.requests);
        (shown.events, shown.requests) = self.counts.since(origin.clone(), counts);
        let past = self.past.entry(origin.clone()).or_default();
        let stuck = past.update_stuck(&status, now);
        let (came_lately, lost_lately) = past.count_ended_calls(status.counts);
        RoomSample {
            room: shown,
            came_lately,
            lost_lately,
            stuck: seconds(stuck),
        }
    }
}

impl Past {
    /// Updates and returns the duration for which the room has called no visitor although it could.
    ///
    /// Call it before [`count_ended_calls`](Self::count_ended_calls), which adds the second.
    fn update_stuck(&mut self, status: &RoomStatus, now: Moment) -> Duration {
        let RoomStatus { state, limits, .. } = status;
        let taken = state.inside + state.called;
        let is_full = limits.sessions.is_some_and(|it| taken >= it.get().into());
        let before = self.counts.back().map_or(0, |counts| counts.called);
        let may_call = state.is_open && !limits.is_paused && state.waiting > 0 && !is_full;
        let is_stuck = may_call && status.counts.called == before;
        self.stuck_since = self.stuck_since.or(Some(now)).filter(|_| is_stuck);
        let lasts = self.stuck_since.map_or(Duration::ZERO, |it| now.since(it));
        // Between two calls at the configured pace; zero without one.
        let interval = 1.0 / limits.admit.per_second();
        let interval = Duration::try_from_secs_f64(interval).unwrap_or(Duration::MAX);
        lasts.saturating_sub(interval)
    }

    /// Adds the counts of a second. Returns the calls that ended lately: came, and lost.
    fn count_ended_calls(&mut self, now: RoomCounts) -> (u64, u64) {
        // A room that was removed from the file and came back counts from zero.
        let is_new = |it: &RoomCounts| it.came > now.came || it.lost > now.lost;
        if self.counts.back().is_some_and(is_new) {
            self.counts.clear();
        }
        self.counts.push_back(now);
        if self.counts.len() > LATELY + 1 {
            self.counts.pop_front();
        }
        let first = self.counts.front().copied().unwrap_or_default();
        (now.came - first.came, now.lost - first.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use limit::{Rate, RoomLimits, RoomState};

    fn status(called: u64, waiting: u64, admit: Rate) -> RoomStatus {
        RoomStatus {
            state: RoomState {
                waiting,
                inside: 4,
                is_open: true,
                ..RoomState::default()
            },
            counts: RoomCounts {
                called,
                ..RoomCounts::default()
            },
            limits: RoomLimits {
                sessions: 5.try_into().ok(),
                admit,
                idle: Duration::from_secs(60),
                claim: Duration::from_secs(60),
                opens: None,
                is_paused: false,
            },
            overridden: None,
            word: None,
            front_wait: None,
        }
    }

    /// Returns for how long a room is stuck after this time, with its status of each second.
    fn stuck(seconds: u64, status_at: impl Fn(u64) -> RoomStatus) -> u64 {
        let mut past = Past::default();
        let mut stuck = Duration::ZERO;
        for second in 0..=seconds {
            let status = status_at(second);
            let now = Moment::default() + Duration::from_secs(second);
            stuck = past.update_stuck(&status, now);
            past.count_ended_calls(status.counts);
        }
        stuck.as_secs()
    }

    #[test]
    fn a_room_is_stuck_if_it_could_call_and_does_not() {
        let unlimited = Rate::UNLIMITED;
        assert_eq!(stuck(9, |_| status(0, 3, unlimited)), 9);
        assert_eq!(stuck(9, |_| status(0, 0, unlimited)), 0, "nobody waits");
        assert_eq!(stuck(9, |it| status(it, 3, unlimited)), 0, "it calls");
        let changed = |change: fn(&mut RoomStatus)| {
            stuck(9, |_| {
                let mut status = status(0, 3, unlimited);
                change(&mut status);
                status
            })
        };
        assert_eq!(changed(|it| it.state.called = 1), 0, "no session is free");
        assert_eq!(changed(|it| it.limits.is_paused = true), 0, "paused");
        let slow = "6r/m".parse().unwrap();
        assert_eq!(stuck(9, |_| status(0, 3, slow)), 0, "the next one is due");
        assert_eq!(stuck(19, |_| status(0, 3, slow)), 9);
    }

    #[test]
    fn calls_that_ended_in_the_last_minutes_are_counted() {
        let counts = |came, lost| RoomCounts {
            came,
            lost,
            ..RoomCounts::default()
        };
        let mut past = Past::default();
        let mut ended = |came, lost| past.count_ended_calls(counts(came, lost));
        assert_eq!(ended(7, 2), (0, 0));
        assert_eq!(ended(9, 3), (2, 1));
        for _ in 1..LATELY {
            ended(9, 3);
        }
        assert_eq!(ended(9, 4), (0, 1));
        assert_eq!(ended(1, 0), (0, 0), "it began anew");
    }
}
