use std::time::Duration;

use super::gaps::Gaps;
use super::wait::MAX_RETRY_AFTER;
use super::{Call, Lottery, RoomLimits, WaitingRoom};
use crate::Moment;

/// How long a room waits for visitors that may have drawn a number just before the process was
/// killed: those at the front ask again within it.
const SETTLING: Duration = Duration::from_secs(10);

/// What of a room outlives its process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedRoom {
    /// The last number that was drawn.
    pub drawn: u64,
    /// The last number that may have been drawn since: more, if the process was killed.
    pub reserved: u64,
    /// The last place that was called.
    pub called: u64,
    /// The numbers up to this one were sent away.
    pub emptied: u64,
    /// Whether it has opened.
    pub is_open: bool,
    /// How long nobody is called yet.
    pub next_call: Duration,
    /// Ranges of numbers that may never have been drawn: above the first, up to the second.
    pub gaps: Vec<(u64, u64)>,
    /// The first one first.
    pub lotteries: Vec<Lottery>,
    /// The numbers of those inside, and how long ago they asked.
    pub sessions: Vec<(u64, Duration)>,
    /// The places of those who are called, how long ago that was, and how long they have yet.
    pub calls: Vec<(u64, Duration, Duration)>,
}

impl WaitingRoom {
    /// What has to be kept of it.
    #[must_use]
    pub fn save(&self, now: Moment) -> SavedRoom {
        let sessions = self.sessions.iter();
        let calls = self.calls.iter();
        SavedRoom {
            drawn: self.drawn,
            reserved: self.drawn,
            called: self.called,
            emptied: self.emptied,
            is_open: self.is_open,
            next_call: self.next_call.since(now),
            gaps: self.gaps.ranges(),
            lotteries: self.lotteries.clone(),
            sessions: sessions
                .map(|(number, seen)| (number, now.since(*seen)))
                .collect(),
            calls: calls
                .map(|(place, call)| (place, now.since(call.at), call.until.since(now)))
                .collect(),
        }
    }

    /// A room that goes on from a saved one.
    #[must_use]
    pub fn restore(saved: SavedRoom, limits: RoomLimits, now: Moment) -> Self {
        let mut room = Self::new(limits, now);
        room.drawn = saved.reserved.max(saved.drawn);
        room.called = saved.called.min(room.drawn);
        room.emptied = saved.emptied;
        // The file may say another pace.
        room.next_call = now + saved.next_call.min(limits.interval());
        room.is_open = saved.is_open && limits.opens.is_none_or(|opens| opens <= now);
        room.lotteries = saved.lotteries;
        let ranges = saved.gaps.into_iter().chain([(saved.drawn, room.drawn)]);
        room.gaps = Gaps::of(ranges.filter(|(_, to)| *to > saved.called));
        room.settled = now + SETTLING;
        // What visitors were told before is not kept.
        room.polls.forget(now + MAX_RETRY_AFTER);
        for (number, ago) in saved.sessions {
            let seen = now.before(ago);
            room.sessions.insert(number, seen, seen + limits.idle);
        }
        for (place, ago, left) in saved.calls {
            // While the gateway was away, nobody could come.
            let until = now + left.max(limits.claim);
            let at = now.before(ago);
            room.calls.insert(place, Call { at, until }, until);
        }
        room
    }
}
