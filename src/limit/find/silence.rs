//! How long an origin has said nothing while requests are there.

use std::time::Duration;

use super::answer::{AnswerEvent, Part};
use super::observed::Observed;
use crate::Moment;

/// Beyond the longest time that the objective gives a request, an origin that has said nothing for so long is one that
/// hangs.
const HANGS: Duration = Duration::from_secs(3);

/// Since when nothing is heard of any request at the origin.
#[derive(Debug)]
pub(super) struct Silence {
    /// Departures before the experiment.
    departed_before: u64,
    /// Requests of whose heads nothing more is heard.
    ended: u64,
    /// The same at the last tick.
    known: u64,
    since: Moment,
}

impl Silence {
    pub fn new(departed: u64, now: Moment) -> Self {
        Self {
            departed_before: departed,
            ended: 0,
            known: 0,
            since: now,
        }
    }

    pub fn record(&mut self, event: AnswerEvent) {
        self.ended += u64::from(event.ends(Part::Head));
    }

    /// How long nothing has been heard of those that are at the origin; zero if none is.
    pub fn tick(&mut self, seen: &Observed, now: Moment) -> Duration {
        let sent = seen.departed.saturating_sub(self.departed_before);
        let is_heard = std::mem::replace(&mut self.known, self.ended) != self.ended;
        if is_heard || sent <= self.ended || seen.in_flight == 0 {
            self.since = now;
        }
        now.since(self.since)
    }
}

/// Whether an origin hangs that has said nothing for so long. `longest`: how long a request may be without an answer.
pub(super) fn hangs(silent: Duration, longest: Duration) -> bool {
    silent >= longest.saturating_add(HANGS)
}
