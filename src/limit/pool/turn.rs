//! The turn of a gateway that has one place for which others wait.

use std::time::Duration;

use super::Moment;

/// Requests start on a place for so long at least, if others wait for it. A shorter turn would be
/// spent on the way from one gateway to the next.
const MIN_TURN: Duration = Duration::from_millis(40);
/// And at most, however long the way is.
const MAX_TURN: Duration = Duration::from_secs(1);
/// A turn is so many times as long as a round trip to the pool, so that a place is on its way for
/// less than a twentieth of the time.
const ROUND_TRIPS: u32 = 40;
/// The longest round trip that counts is so many times the shortest.
const MAX_SPREAD: u32 = 4;
/// The usual round trip is about the mean of so many.
const SMOOTHED: u32 = 8;
/// How long a place waits during a turn for the next request of a client that has just got its
/// answer.
const LINGER: Duration = Duration::from_millis(2);

/// A place is asked for so long, and two round trips, before it is used. A busy machine wakes late.
const SETTLED: Duration = Duration::from_millis(5);
/// And at most so long before.
const MAX_AHEAD: Duration = Duration::from_millis(40);

/// Slots are granted so far ahead. One that came during a turn is still used.
const SLOT_AHEAD: Duration = Duration::from_millis(50);

/// A place that a gateway has got while others wait: for one request, or for a while if requests
/// are short.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Until when another request may start on the place.
    until: Moment,
    /// Since when it is not in use.
    free_since: Moment,
}

impl Turn {
    /// One that begins now. `round_trip`: how long the pool usually takes to answer.
    pub(super) fn new(now: Moment, round_trip: Duration) -> Self {
        let lasts = (round_trip * ROUND_TRIPS).clamp(MIN_TURN, MAX_TURN);
        Self {
            until: now + lasts,
            free_since: now,
        }
    }

    /// The request on the place has ended.
    pub(super) fn ended(&mut self, now: Moment) {
        self.free_since = now;
    }

    /// When the place goes back if nobody takes it. `slot`: when somebody can.
    pub(super) fn ends(&self, slot: Option<Moment>) -> Moment {
        let lingers = self.free_since + LINGER;
        match slot {
            None => self.until.min(lingers),
            Some(slot) => (self.until + SLOT_AHEAD).min(lingers.max(slot + LINGER)),
        }
    }

    /// Until when another request may start on the place.
    pub(super) fn until(self) -> Moment {
        self.until
    }
}

/// The time that the pool takes to answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// The shortest of late, as a busy machine adds to the others.
    shortest: Option<Duration>,
    /// About the mean of late: a way may be of very different lengths.
    usual: Duration,
}

impl RoundTrip {
    pub(super) fn note(&mut self, took: Duration) {
        let known = self.shortest.map(|known| known + known / 16);
        let shortest = known.map_or(took, |known| took.min(known));
        // What takes much longer says more of a busy machine than of the way.
        let counted = took.min(shortest * MAX_SPREAD);
        self.usual = match known {
            Some(_) => (self.usual * (SMOOTHED - 1) + counted) / SMOOTHED,
            None => took,
        };
        self.shortest = Some(shortest);
    }

    pub(super) fn usual(self) -> Duration {
        self.usual
    }

    /// How long before it is used a place is asked for: so that an answer that says that none is
    /// free leaves time for another try.
    pub(super) fn ahead(self) -> Duration {
        (SETTLED + 2 * self.shortest.unwrap_or_default()).min(MAX_AHEAD)
    }
}
