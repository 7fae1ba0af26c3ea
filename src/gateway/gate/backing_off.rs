//! Back-off of one gate: lowers the gate's limits while the origin has trouble or is slow.
//!
//! *Trouble* is an answer or a failure that `on` in the file names: it lowers the rate. Slow
//! answers lower the number of requests in flight. The arithmetic is [`limit::Backoff`]. In
//! *shadow* mode the lowered limits are only shown. The exchange with other gateways is in
//! `shared_backoff`.

use std::time::Duration;

use config::{self, BackoffMode, Trouble};
use limit::{Answer, Backoff, GateLimits, Moment, Sent};

use super::permit::{OriginResult, Unreported};
use super::shared_backoff::SharedBackoff;
use super::{KeyAtGate, Queue};
use crate::observe::metrics::{GateMetrics, Outcome};

/// Interval at which a gate with waiters checks whether the back-off has changed its limits.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Back-off of a gate, with its settings.
pub(super) struct BackingOff {
    settings: config::Backoff,
    pub(super) backoff: Backoff,
    /// Limits of the gate while the back-off lowers nothing.
    limits: GateLimits,
    /// Exchange with other gateways; `None`: the back-off is not shared.
    pub(super) shared: Option<SharedBackoff>,
}

impl BackingOff {
    pub(super) fn new(settings: &config::Backoff, limits: GateLimits, now: Moment) -> Self {
        let (rate, max_in_flight) = (limits.rate, limits.max_in_flight);
        Self {
            settings: settings.clone(),
            backoff: Backoff::new(settings.limits(), rate, max_in_flight, now),
            limits,
            shared: None,
        }
    }

    /// Takes over new settings and keeps what has been lowered.
    ///
    /// A pause that the origin ordered ends if `retry_after` is now off.
    pub(super) fn reload(
        mut self,
        settings: &config::Backoff,
        limits: GateLimits,
        now: Moment,
    ) -> Self {
        let had_retry_after = self.settings.retry_after;
        self.settings = settings.clone();
        self.set_limits(limits, now);
        if had_retry_after && !settings.retry_after {
            self.backoff.end_pause(now);
        }
        self
    }

    /// Sets the limits that the back-off lowers. The lowered share of each limit stays the same.
    pub(super) fn set_limits(&mut self, limits: GateLimits, now: Moment) {
        self.limits = limits;
        let (rate, max_in_flight) = (limits.rate, limits.max_in_flight);
        let settings = self.settings.limits();
        (self.backoff).set_limits(settings, rate, max_in_flight, now);
    }

    /// Records that a request departs. Returns its record, which [`report`](Self::report) needs.
    ///
    /// `in_flight`: number of requests at the origin.
    pub(super) fn note_departure(&mut self, in_flight: usize, now: Moment) -> Sent {
        let sent = self.backoff.sent(in_flight, now);
        self.wake_task(now);
        sent
    }

    /// Wakes the task that exchanges with other gateways, if its next call is now due sooner.
    fn wake_task(&mut self, now: Moment) {
        if let Some(shared) = &mut self.shared {
            shared.wake_task(&self.backoff, now);
        }
    }

    /// Returns the back-off and its exchange with other gateways, if it is shared.
    pub(super) fn shared_parts(&mut self) -> Option<(&mut Backoff, &mut SharedBackoff)> {
        Some((&mut self.backoff, self.shared.as_mut()?))
    }

    /// Records that a request of `key` waits. Returns whether the caller must end a pause.
    ///
    /// A pause that the origin ordered for one key ends when a request of another key waits.
    pub(super) fn note_waiter(&mut self, key: &KeyAtGate, now: Moment) -> bool {
        let hash = key.hash();
        let ends_pause = hash.is_some_and(|hash| self.backoff.waits(hash, now));
        ends_pause && self.settings.mode == BackoffMode::On
    }

    /// Reports the result of a request, and obeys a `Retry-After` if the settings say so.
    pub(super) fn report(&mut self, unreported: Unreported, now: Moment) {
        let Unreported {
            sent,
            time,
            cost,
            result,
        } = unreported;
        let on = &self.settings.on;
        // `may_order`: whether a `Retry-After` of this status orders a pause.
        let (trouble, retry_after, may_order) = match result {
            Some(OriginResult::Answered {
                status,
                retry_after,
            }) => {
                let is_trouble = on.iter().any(|it| it.has(status));
                (is_trouble, retry_after, matches!(status, 429 | 503))
            }
            Some(OriginResult::Failed(Outcome::Timeout)) if on.contains(&Trouble::Timeout) => {
                (true, None, false)
            }
            Some(OriginResult::Failed(Outcome::Unreachable | Outcome::Broken))
                if on.contains(&Trouble::Connect) =>
            {
                (true, None, false)
            }
            // Says nothing about the origin: its client gave up, or such failures are no trouble.
            Some(OriginResult::Failed(_)) | None => return self.backoff.abandoned(sent, now),
        };
        // An ordered pause begins at once, below. Any other `Retry-After` is a part of the answer.
        let is_order = self.settings.retry_after && may_order;
        if let Some(shared) = &mut self.shared {
            shared.count_answer(cost);
        }
        let answer = Answer {
            trouble,
            retry_after: retry_after.filter(|_| !is_order),
            cost,
            time,
        };
        self.backoff.answered(sent, answer, now);
        if let Some(pause) = retry_after.filter(|_| is_order) {
            self.backoff.obey(pause, now);
        }
    }

    /// Updates the back-off, and applies its limits and its pause to the gate if they changed.
    ///
    /// In shadow mode the gate keeps its limits.
    pub(super) fn apply(&mut self, gate: &mut Queue, metrics: &GateMetrics, now: Moment) {
        let Some(cuts) = self.backoff.update(now) else {
            return;
        };
        metrics.backoffs.add_cuts(cuts);
        self.wake_task(now);
        if self.settings.mode == BackoffMode::On {
            gate.set_limits(self.lowered(self.limits), now);
            if let Some(until) = self.backoff.paused_until() {
                gate.pause(until);
            }
        }
    }

    /// Returns whether the back-off lowers a limit or pauses the gate. False in shadow mode.
    pub(super) fn is_in_force(&self, now: Moment) -> bool {
        let lowered = self.backoff.lowered();
        let is_paused = lowered.paused_until.is_some_and(|until| until > now);
        let is_lower = lowered.rate.is_some() || lowered.max_in_flight.is_some() || is_paused;
        is_lower && self.settings.mode == BackoffMode::On
    }

    /// Returns whether the origin has ordered a pause for all keys that has not ended.
    pub(super) fn is_ordered_to_pause(&self, now: Moment) -> bool {
        let until = self.backoff.paused_for_all();
        let obeys = self.settings.retry_after && self.settings.mode == BackoffMode::On;
        obeys && until.is_some_and(|until| until > now)
    }

    /// Returns when to check whether time alone has changed the limits; `None`: it does not.
    pub(super) fn next_change(&self, now: Moment) -> Option<Moment> {
        self.backoff.may_change().then(|| now + CHECK_INTERVAL)
    }

    /// Returns `limits` with the rate and the permits of the back-off. Also in shadow mode.
    pub(super) fn lowered(&self, limits: GateLimits) -> GateLimits {
        GateLimits {
            rate: self.backoff.rate(),
            max_in_flight: self.backoff.max_in_flight(),
            ..limits
        }
    }
}
