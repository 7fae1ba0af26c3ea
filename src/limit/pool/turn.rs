//! Turn of a gateway that has one permit for which other gateways wait.
//!
//! A *permit* is the right to run one request at the origin. A *pool* leases permits to gateways. A
//! *slot* is an instant at which one request may leave for the origin.

use std::time::Duration;

use super::Moment;

/// Minimum length of a turn, in which new requests may start on the permit.
///
/// A shorter turn would mostly be spent on the transfer from one gateway to the next.
const MIN_TURN: Duration = Duration::from_millis(40);
/// Maximum length of a turn.
const MAX_TURN: Duration = Duration::from_secs(1);
/// Length of a turn, as a multiple of a round trip to the pool.
///
/// A permit is then in transit for less than a twentieth of the time.
const ROUND_TRIPS: u32 = 40;
/// Upper bound of the round trip that counts, as a multiple of the shortest.
const MAX_SPREAD: u32 = 4;
/// Number of round trips over which the usual one is smoothed.
const SMOOTHED: u32 = 8;
/// Duration for which a permit stays unused during a turn, for the next request of a client.
///
/// The client has just received its response.
const LINGER: Duration = Duration::from_millis(2);

/// Duration before its use at which a permit is requested, in addition to two round trips.
///
/// A busy machine may wake the gateway late.
const AHEAD: Duration = Duration::from_millis(5);
/// Maximum duration before its use at which a permit is requested.
const MAX_AHEAD: Duration = Duration::from_millis(40);

/// Time by which slots are granted ahead.
///
/// A turn is prolonged by it, for slots that were granted during the turn.
const SLOT_AHEAD: Duration = Duration::from_millis(50);

/// Period for which a gateway keeps its only permit while other gateways wait.
///
/// It lasts for one request, or for several if requests are short.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Instant until which another request may start on the permit.
    pub(super) until: Moment,
    /// Instant since which the permit is not in use.
    free_since: Moment,
}

impl Turn {
    /// Begins a turn now. `round_trip` is the usual duration until the pool's reply.
    pub(super) fn new(now: Moment, round_trip: Duration) -> Self {
        let length = (round_trip * ROUND_TRIPS).clamp(MIN_TURN, MAX_TURN);
        Self {
            until: now + length,
            free_since: now,
        }
    }

    /// Records that the request on the permit has ended.
    pub(super) fn ended(&mut self, now: Moment) {
        self.free_since = now;
    }

    /// Returns the instant at which the permit goes back if no request takes it.
    ///
    /// `slot` is the next slot that was granted for waiters of this gateway.
    pub(super) fn ends(&self, slot: Option<Moment>) -> Moment {
        let lingers_until = self.free_since + LINGER;
        match slot {
            None => self.until.min(lingers_until),
            Some(slot) => (self.until + SLOT_AHEAD).min(lingers_until.max(slot + LINGER)),
        }
    }
}

/// Duration until the pool's reply.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// Shortest recent duration. Longer ones include delays of a busy machine.
    shortest: Option<Duration>,
    /// Smoothed mean of recent durations, because they may vary much.
    pub(super) usual: Duration,
}

impl RoundTrip {
    /// Records the duration of a call.
    pub(super) fn note(&mut self, took: Duration) {
        // The known shortest duration grows slowly, so that it follows a slower connection.
        let known = self.shortest.map(|known| known + known / 16);
        let shortest = known.map_or(took, |known| took.min(known));
        // A much longer duration shows a busy machine rather than the connection.
        let counted = took.min(shortest * MAX_SPREAD);
        self.usual = match known {
            Some(_) => (self.usual * (SMOOTHED - 1) + counted) / SMOOTHED,
            None => took,
        };
        self.shortest = Some(shortest);
    }

    /// Returns how long before its use a permit is requested.
    ///
    /// If a reply says that none is free, there is time for another attempt.
    pub(super) fn ahead(self) -> Duration {
        (AHEAD + 2 * self.shortest.unwrap_or_default()).min(MAX_AHEAD)
    }
}
