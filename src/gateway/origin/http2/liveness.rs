//! Detects a server that is lost: one that sends nothing while it has requests.
//!
//! Without this, a connection that the network has lost takes requests until they time out. gRPC
//! servers close a connection that pings more than twice in five minutes while they send nothing.
//! So pings become rare while nothing but their answers arrives.

use std::time::Duration;

use limit::Moment;

/// Silence after which a server with requests is pinged.
const SILENCE: Duration = Duration::from_secs(5);
/// Time for the server to answer a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Factor by which the silence before the next ping grows while only answers to pings arrive.
const SILENCE_GROWTH: u32 = 8;
/// Longest silence before the next ping.
const MAX_SILENCE: Duration = Duration::from_secs(320);
/// Longest time between two checks that counts, as the process may have been stopped.
const MAX_STEP: Duration = Duration::from_secs(2);

/// Amount that a server has sent on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) bytes: u64,
    /// Number of frames other than pings and their answers.
    pub(super) frames: u64,
}

/// State of a connection that is checked regularly.
#[derive(Debug)]
pub(super) struct Liveness {
    received: Received,
    /// Instant of the last check.
    checked: Moment,
    /// Time since the last byte, or since the ping without an answer.
    silent: Duration,
    /// Silence before the next ping.
    patience: Duration,
    is_pinged: bool,
}

/// Result of a check: how to treat the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Alive,
    /// Send a ping.
    Ping,
    /// A ping has no answer yet: new requests should use another connection.
    Suspect,
    /// A ping has had no answer for too long.
    Lost,
}

impl Liveness {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            received: Received::default(),
            checked: now,
            silent: Duration::ZERO,
            patience: SILENCE,
            is_pinged: false,
        }
    }

    /// Checks a connection. `in_use`: whether the server has a request.
    pub(super) fn check(&mut self, received: Received, in_use: bool, now: Moment) -> Finding {
        let step = now.since(self.checked).min(MAX_STEP);
        self.checked = now;
        let before = std::mem::replace(&mut self.received, received);
        if received.frames != before.frames {
            self.patience = SILENCE;
        } else if self.is_pinged && received.bytes != before.bytes {
            self.patience = MAX_SILENCE.min(self.patience * SILENCE_GROWTH);
        }
        if received.bytes != before.bytes || !in_use {
            (self.silent, self.is_pinged) = (Duration::ZERO, false);
            return Finding::Alive;
        }
        self.silent += step;
        match self.is_pinged {
            true if self.silent >= PING_TIMEOUT => Finding::Lost,
            true => Finding::Suspect,
            false if self.silent >= self.patience => {
                (self.silent, self.is_pinged) = (Duration::ZERO, true);
                Finding::Ping
            }
            false => Finding::Alive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connection that is checked every second.
    struct Watch {
        liveness: Liveness,
        received: Received,
        second: u64,
    }

    impl Watch {
        fn new() -> Self {
            Self {
                liveness: Liveness::new(Moment::default()),
                received: Received::default(),
                second: 0,
            }
        }

        fn check(&mut self, in_use: bool) -> Finding {
            self.second += 1;
            let now = Moment::default() + Duration::from_secs(self.second);
            self.liveness.check(self.received, in_use, now)
        }

        /// Returns the seconds until the connection is pinged, while nothing arrives.
        fn pinged_after(&mut self) -> u64 {
            let before = self.second;
            while self.check(true) != Finding::Ping {
                assert!(self.second < before + 1000, "no ping");
            }
            self.second - before
        }
    }

    #[test]
    fn a_server_that_answers_no_ping_is_lost_ten_seconds_later() {
        let mut watch = Watch::new();
        assert_eq!(watch.pinged_after(), 5);
        for _ in 0..9 {
            assert_eq!(watch.check(true), Finding::Suspect);
        }
        assert_eq!(watch.check(true), Finding::Lost);
    }

    #[test]
    fn a_connection_without_requests_is_not_pinged() {
        let mut watch = Watch::new();
        for _ in 0..100 {
            assert_eq!(watch.check(false), Finding::Alive);
        }
        assert_eq!(watch.pinged_after(), 5);
        assert_eq!(watch.check(false), Finding::Alive);
    }

    #[test]
    fn a_byte_that_comes_in_time_ends_the_suspicion() {
        let mut watch = Watch::new();
        watch.pinged_after();
        assert_eq!(watch.check(true), Finding::Suspect);
        watch.received.bytes += 1;
        assert_eq!(watch.check(true), Finding::Alive);
    }

    #[test]
    fn pings_become_rare_while_only_their_answers_come() {
        let mut watch = Watch::new();
        for expected in [5, 40, 320, 320] {
            assert_eq!(watch.pinged_after(), expected);
            watch.received.bytes += 17;
            assert_eq!(watch.check(true), Finding::Alive);
        }
        watch.received.frames += 1;
        watch.received.bytes += 17;
        assert_eq!(watch.check(true), Finding::Alive);
        assert_eq!(watch.pinged_after(), 5);
    }

    #[test]
    fn time_in_which_the_process_stood_still_does_not_count() {
        let mut watch = Watch::new();
        watch.pinged_after();
        watch.second += 1000;
        assert_eq!(watch.check(true), Finding::Suspect);
    }
}
