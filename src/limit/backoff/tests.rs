//! Tests of the back-off, and the helpers that they share.
//!
//! *Trouble* is an answer that counts as a failure. A *cut* lowers the rate, or the number of
//! requests in flight. The *steady* time is the time without growth after a cut of the rate.

use std::time::Duration;

use super::*;
use crate::OriginTime;
use crate::fixtures::{at, ms, rate, secs};

pub(super) const GOOD: Answer = Answer {
    trouble: false,
    retry_after: None,
    cost: 1,
    time: OriginTime::NEW,
};
const BAD: Answer = Answer {
    trouble: true,
    ..GOOD
};

/// Returns a failed answer with Retry-After.
fn asks(seconds: u64) -> Answer {
    Answer {
        retry_after: Some(secs(seconds)),
        ..BAD
    }
}

/// Returns limits without a threshold of slow answers.
pub(super) fn limits() -> BackoffLimits {
    BackoffLimits {
        slow: None,
        trip: "10%".parse().unwrap(),
        floor: "10%".parse().unwrap(),
        max_pause: secs(30),
    }
}

/// Returns limits under which an answer is slow above `millis`.
pub(super) fn slow(millis: u64) -> BackoffLimits {
    BackoffLimits {
        slow: Some(ms(millis)),
        ..limits()
    }
}

/// A back-off with its virtual time, in milliseconds since the start.
struct Origin {
    backoff: Backoff,
    millis: u64,
}

impl Origin {
    fn new(limits: BackoffLimits, rate: &str, max_in_flight: Option<usize>) -> Self {
        Self {
            backoff: Backoff::new(limits, rate.parse().ok(), max_in_flight, at(0)),
            millis: 0,
        }
    }

    /// Sends `count` requests at once and answers them after `took` milliseconds.
    fn answers(&mut self, count: usize, answer: Answer, took: u64) {
        if count == 0 {
            return;
        }
        let sent = self.send(count);
        self.millis += took;
        self.answer_all(sent, answer);
    }

    /// Sends `count` requests now. No other requests are in flight.
    fn send(&mut self, count: usize) -> Vec<Sent> {
        let sent = (1..=count).map(|in_flight| self.backoff.sent(in_flight, at(self.millis)));
        sent.collect()
    }

    /// Answers all these requests now.
    fn answer_all(&mut self, sent: Vec<Sent>, answer: Answer) {
        for sent in sent {
            self.backoff.answered(sent, answer, at(self.millis));
        }
    }

    /// Removes all these requests now, because their clients have disconnected.
    fn abandon_all(&mut self, sent: impl IntoIterator<Item = Sent>) {
        for sent in sent {
            self.backoff.abandoned(sent, at(self.millis));
        }
    }

    /// Lets time pass. Returns the cuts, if a limit has changed.
    fn wait(&mut self, millis: u64) -> Option<Cuts> {
        self.millis += millis;
        self.backoff.update(at(self.millis))
    }

    /// Plays a window of one second. Returns the cuts at its end.
    fn second(&mut self, good: usize, bad: usize) -> Cuts {
        let begins = self.millis;
        self.answers(good, GOOD, 10);
        self.answers(bad, BAD, 10);
        self.wait(begins + 1000 - self.millis).unwrap_or_default()
    }

    /// Plays seconds without trouble, in which the rate may grow.
    fn clean(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.second(20, 0);
        }
    }

    fn rate(&self) -> String {
        let rate = self.backoff.rate();
        rate.map_or("none".to_owned(), |rate| rate.to_string())
    }

    /// Returns the steady time after the last cut of the rate.
    fn steady(&self) -> Option<Duration> {
        let (_, cut) = self.backoff.lowered().rate?;
        cut.steady_until.map(|until| until.since(cut.at))
    }
}

const NONE: Cuts = Cuts {
    trouble: false,
    slow: false,
    retry_after: false,
};
const TROUBLE: Cuts = Cuts {
    trouble: true,
    ..NONE
};
const SLOW: Cuts = Cuts { slow: true, ..NONE };
const RETRY_AFTER: Cuts = Cuts {
    retry_after: true,
    ..NONE
};

mod gateways;
mod in_flight;
mod keys;
mod order;
mod rate;
mod window;

#[test]
fn requests_of_an_earlier_back_off_are_ignored() {
    let begin = |millis| Backoff::new(slow(100), Some(rate("100r/s")), None, at(millis));
    let earlier = begin(0).sent(1, at(0));
    let mut backoff = begin(1000);
    let own = backoff.sent(2, at(1000));
    backoff.abandoned(earlier, at(1001));
    assert!(backoff.may_change(), "its own request is at the origin");
    backoff.abandoned(own, at(1002));
    let two = [1003, 1004].map(|millis| backoff.sent(1, at(millis)));
    // If both had the same slot, the loop that counts overdue requests would not end.
    backoff.update(at(1500));
    for sent in two {
        backoff.abandoned(sent, at(1600));
    }
    assert!(!backoff.may_change());
}
