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
    ping_after: Duration,
    /// Whether a ping was sent, and nothing has arrived since.
    is_pinged: bool,
}

/// Result of a check: how to treat the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Nothing to do.
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
            ping_after: SILENCE,
            is_pinged: false,
        }
    }

    /// Checks a connection. `in_use`: whether the server has a request.
    pub(super) fn check(&mut self, received: Received, in_use: bool, now: Moment) -> Finding {
        let step = now.since(self.checked).min(MAX_STEP);
        self.checked = now;
        let before = std::mem::replace(&mut self.received, received);
        if received.frames != before.frames {
            self.ping_after = SILENCE;
        } else if self.is_pinged && received.bytes != before.bytes {
            // Only the answer to the ping has arrived.
            self.ping_after = MAX_SILENCE.min(self.ping_after * SILENCE_GROWTH);
        }
        if received.bytes != before.bytes || !in_use {
            (self.silent, self.is_pinged) = (Duration::ZERO, false);
            return Finding::Alive;
        }
        self.silent += step;
        match self.is_pinged {
            true if self.silent >= PING_TIMEOUT => Finding::Lost,
            true => Finding::Suspect,
            false if self.silent >= self.ping_after => {
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

    /// Checks a connection every second. Each step has a number of seconds, an event and a finding.
    ///
    /// Event in each second: `a` the answer to a ping arrives, `f` another frame arrives, `u` the
    /// connection has no request, `s` the process stands still for 1000 s, `.` nothing. Finding of
    /// each check: `A` alive, `P` ping, `S` suspect, `L` lost.
    fn check(steps: &str) {
        let mut liveness = Liveness::new(Moment::default());
        let (mut received, mut second) = (Received::default(), 0);
        for step in steps.split(' ') {
            let (seconds, letters) = step.split_at(step.len() - 2);
            let (event, finding) = letters.split_at(1);
            for _ in 0..seconds.parse::<u32>().unwrap() {
                second += if event == "s" { 1001 } else { 1 };
                received.bytes += if "af".contains(event) { 17 } else { 0 };
                received.frames += u64::from(event == "f");
                let now = Moment::default() + Duration::from_secs(second);
                let found = liveness.check(received, event != "u", now);
                assert!(
                    format!("{found:?}").starts_with(finding),
                    "{step} of {steps}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn a_server_that_answers_no_ping_is_lost_ten_seconds_later() {
        check("4.A 1.P 9.S 1.L");
    }

    #[test]
    fn a_connection_without_requests_is_not_pinged() {
        check("100uA 4.A 1.P 1uA");
    }

    #[test]
    fn a_byte_that_comes_in_time_ends_the_suspicion() {
        check("4.A 1.P 1.S 1aA");
    }

    #[test]
    fn pings_become_rare_while_only_their_answers_come() {
        check("4.A 1.P 1aA 39.A 1.P 1aA 319.A 1.P 1aA 319.A 1.P 1aA 1fA 4.A 1.P");
    }

    #[test]
    fn time_in_which_the_process_stood_still_does_not_count() {
        check("4.A 1.P 1sS");
    }
}
