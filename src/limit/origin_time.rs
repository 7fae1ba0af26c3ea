//! Duration for which an origin has a request, without the time spent waiting for the client.

use std::time::Duration;

use super::Moment;

/// Value of `stopped` while the stopwatch runs.
const NEVER: Moment = Moment::from_nanos(u64::MAX);

/// Stopwatch of the duration that a request takes at its origin.
///
/// It starts when the request leaves the gate, and again with each piece of the request's body. It
/// stands still while the client must send more of the body, or read more of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginTime {
    /// Instant at which the last piece of the request's body arrived. The Unix epoch: none arrived.
    last_piece: Moment,
    /// Instant since which the stopwatch stands still for the client. [`NEVER`]: it runs.
    stopped: Moment,
    /// Total duration for which it stood still because the client did not read the response.
    unread_for: Duration,
}

impl OriginTime {
    /// Stopwatch of a request without a body.
    pub const NEW: Self = Self {
        last_piece: Moment::from_nanos(0),
        stopped: NEVER,
        unread_for: Duration::ZERO,
    };

    /// Records the instant of the upload's last piece.
    ///
    /// `awaits_client`: the client must send more, so the stopwatch stands still.
    pub fn uploaded(&mut self, last_piece: Moment, awaits_client: bool) {
        self.last_piece = last_piece;
        self.stopped = if awaits_client { last_piece } else { NEVER };
    }

    /// Stops: the client does not read the response from `now` on.
    pub fn stop(&mut self, now: Moment) {
        self.stopped = self.stopped.min(now);
    }

    /// Continues: the client has read the available part of the response.
    pub fn go_on(&mut self, now: Moment) {
        if self.is_stopped() {
            self.unread_for += now.since(self.stopped);
            self.stopped = NEVER;
        }
    }

    /// Returns whether the stopwatch stands still for the client.
    pub fn is_stopped(&self) -> bool {
        self.stopped != NEVER
    }

    /// Returns the instant at which the stopwatch of a request that left at `departed` started.
    pub fn began(&self, departed: Moment) -> Moment {
        departed.max(self.last_piece)
    }

    /// Returns the duration until `now` at the origin of a request that left at `departed`.
    pub fn since(&self, departed: Moment, now: Moment) -> Duration {
        let span = now.min(self.stopped).since(self.began(departed));
        span.saturating_sub(self.unread_for)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::at;

    /// Returns the milliseconds at the origin of a request that left at 1000 ms.
    fn took(time: &OriginTime, now: u64) -> u128 {
        time.since(at(1000), at(now)).as_millis()
    }

    #[test]
    fn it_starts_with_the_departure_or_the_last_piece() {
        let mut time = OriginTime::NEW;
        assert_eq!(took(&time, 1300), 300);
        // The last piece came with the head, before the departure.
        time.uploaded(at(900), false);
        assert_eq!(took(&time, 1300), 300);
        time.uploaded(at(1200), false);
        assert_eq!(took(&time, 1300), 100);
    }

    #[test]
    fn it_stands_still_while_the_client_has_to_send() {
        let mut time = OriginTime::NEW;
        time.uploaded(Moment::default(), true);
        assert_eq!(took(&time, 5000), 0, "no piece has come");
        time.uploaded(at(4000), true);
        assert_eq!(took(&time, 5000), 0, "an answer to half of it");
        time.uploaded(at(5000), false);
        assert_eq!(took(&time, 5200), 200);
    }

    #[test]
    fn it_stands_still_while_the_client_takes_nothing() {
        let mut time = OriginTime::NEW;
        time.stop(at(1300));
        assert_eq!(took(&time, 9000), 300);
        time.go_on(at(9000));
        assert_eq!(took(&time, 9100), 400);
        time.stop(at(9100));
        time.stop(at(9500));
        time.go_on(at(9600));
        time.go_on(at(9700));
        assert_eq!(took(&time, 9700), 500);
        // The client reads the response slowly, and its upload ends late: the duration is never
        // negative.
        time.uploaded(at(9800), false);
        assert_eq!(took(&time, 9900), 0);
    }
}
