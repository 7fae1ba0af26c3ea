//! Silence: the duration since the last response, while requests are at the origin.
//!
//! A long silence shows that the origin hangs.

use std::time::Duration;

use super::answer::{AnswerEvent, Part};
use super::observed::Observed;
use crate::Moment;

/// Instant since which no request at the origin has received a response.
#[derive(Debug)]
pub(super) struct Silence {
    /// Departures before the experiment.
    departed_before: u64,
    /// Number of requests whose response head has arrived, or that ended without one.
    ended: u64,
    /// Value of `ended` at the last tick.
    ended_before: u64,
    /// Instant of the last tick with a response, or without a request at the origin.
    since: Moment,
}

impl Silence {
    pub fn new(departed: u64, now: Moment) -> Self {
        Self {
            departed_before: departed,
            ended: 0,
            ended_before: 0,
            since: now,
        }
    }

    /// Records an event of a request.
    pub fn record(&mut self, event: AnswerEvent) {
        self.ended += u64::from(event.ends(Part::Head));
    }

    /// Returns the duration since the last response; zero without requests at the origin.
    pub fn tick(&mut self, seen: &Observed, now: Moment) -> Duration {
        let sent = seen.departed.saturating_sub(self.departed_before);
        let has_response = std::mem::replace(&mut self.ended_before, self.ended) != self.ended;
        if has_response || sent <= self.ended || seen.in_flight == 0 {
            self.since = now;
        }
        now.since(self.since)
    }
}
