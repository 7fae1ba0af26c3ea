//! Waiting rooms in the state file: the next process continues from them.
//!
//! A visitor without a free session draws a *number* and polls with it. Its *position* is its rank
//! in the order of calls. A *call* reserves a *session* for the visitor. A *gap* is a range of
//! numbers that may never have been drawn, because a process was killed.

use std::time::Duration;

use super::gaps::Gaps;
use super::wait::MAX_RETRY_AFTER;
use super::{Call, Lottery, LotteryKeys, RoomLimits, WaitingRoom};
use crate::Moment;

/// Duration for which a room waits for visitors who may have drawn a number before a kill.
///
/// Visitors at the front poll again within this duration.
const SETTLING: Duration = Duration::from_secs(10);

/// Highest number that is restored: far more than are ever drawn.
const MAX_NUMBER: u64 = u64::MAX >> 1;

/// Room in the state file. Durations are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SavedRoom {
    /// Last number that was drawn.
    pub drawn: u64,
    /// Last number that may have been drawn. It is above `drawn` if the process was killed after it
    /// had saved the room.
    pub reserved: u64,
    /// Last position that was called.
    pub called: u64,
    /// Numbers up to this one were sent away.
    pub emptied: u64,
    /// Whether the room has opened.
    pub is_open: bool,
    /// Duration until the next call.
    #[cfg_attr(feature = "serde", serde(default))]
    pub next_call: u64,
    /// Ranges of numbers that may never have been drawn: above the first, up to the second.
    pub gaps: Vec<(u64, u64)>,
    /// `first`, `count` and `keys` of each lottery, the first one first.
    pub lotteries: Vec<(u64, u64, LotteryKeys)>,
    /// Number of each visitor inside, and the duration since the last request.
    pub sessions: Vec<(u64, u64)>,
    /// Position of each called visitor, the duration since the call, and the remaining duration.
    pub calls: Vec<(u64, u64, u64)>,
}

impl SavedRoom {
    /// Returns whether no arithmetic with its numbers overflows.
    pub fn is_sound(&self) -> bool {
        let last = self.drawn.max(self.reserved);
        let ends = self.lotteries.iter();
        let mut ends = ends.map(|(first, count, _)| first.checked_add(*count));
        last <= MAX_NUMBER && ends.all(|end| end.is_some_and(|end| end <= last))
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl WaitingRoom {
    /// Returns the room for the state file.
    pub fn save(&self, now: Moment) -> SavedRoom {
        let lotteries = self.lotteries.iter();
        let sessions = self.sessions.iter();
        let sessions = sessions.map(|(number, seen)| (number, millis(now.since(*seen))));
        let calls = self.calls.iter().map(|(position, call)| {
            let (ago, left) = (now.since(call.at), call.until.since(now));
            (position, millis(ago), millis(left))
        });
        SavedRoom {
            drawn: self.drawn,
            reserved: self.drawn,
            called: self.called,
            emptied: self.emptied,
            is_open: self.is_open,
            next_call: millis(self.next_call.since(now)),
            gaps: self.gaps.ranges(),
            lotteries: lotteries.map(|it| (it.first, it.count, it.keys)).collect(),
            sessions: sessions.collect(),
            calls: calls.collect(),
        }
    }

    /// Continues from a saved room that is [sound](SavedRoom::is_sound).
    pub fn restore(saved: SavedRoom, limits: RoomLimits, now: Moment) -> Self {
        let mut room = Self::new(limits, now);
        room.drawn = saved.reserved.max(saved.drawn);
        room.called = saved.called.min(room.drawn);
        room.emptied = saved.emptied;
        // The file may have another pace.
        room.next_call = now + Duration::from_millis(saved.next_call).min(limits.interval());
        room.is_open = saved.is_open && limits.is_opening_over(now);
        let lottery = |(first, count, keys)| Lottery { first, count, keys };
        room.lotteries = saved.lotteries.into_iter().map(lottery).collect();
        let ranges = saved.gaps.into_iter().chain([(saved.drawn, room.drawn)]);
        room.gaps = Gaps::new(ranges.filter(|(_, to)| *to > saved.called));
        room.settled = now + SETTLING;
        // Due times of polls are not saved.
        room.polls.forget(now + MAX_RETRY_AFTER);
        for (number, ago) in saved.sessions {
            let seen = now.before(Duration::from_millis(ago));
            room.sessions.insert(number, seen, seen + limits.idle);
        }
        for (position, ago, left) in saved.calls {
            // While the gateway was down, no visitor could arrive.
            let until = now + Duration::from_millis(left).max(limits.claim);
            let at = now.before(Duration::from_millis(ago));
            room.calls.insert(position, Call { at, until }, until);
        }
        room
    }
}
