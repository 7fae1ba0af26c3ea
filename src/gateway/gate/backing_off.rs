use std::hash::Hash;
use std::time::Duration;

use config::{self, BackoffMode, Trouble};
use limit::{Answer, Backoff, Gate, GateLimits, Lowered, Moment, SavedBackoff, Sent};

use super::KeyAtGate;
use super::learning::SharedBackoff;
use super::place::{OriginResult, Unreported};
use crate::observe::metrics::{GateMetrics, Outcome};

/// How often a gate with waiters looks whether the back-off has changed something.
const CHANGES: Duration = Duration::from_millis(100);

/// The back-off of a gate.
#[derive(Debug)]
pub(super) struct BackingOff {
    settings: config::Backoff,
    backoff: Backoff,
    /// What the gate lets through while nothing is lowered.
    limits: GateLimits,
    /// When the places that the log told of last were given back.
    told_kept: Moment,
    /// How it learns from other gateways; `None`: it does not.
    pub(super) shared: Option<SharedBackoff>,
}

impl BackingOff {
    pub(super) fn new(settings: &config::Backoff, limits: &GateLimits, now: Moment) -> Self {
        let (rate, most) = (limits.rate, limits.max_in_flight);
        Self {
            settings: settings.clone(),
            backoff: Backoff::new(settings.limits(), rate, most, now),
            limits: *limits,
            told_kept: Moment::default(),
            shared: None,
        }
    }

    /// The same under new settings: what is lowered stays at its share of what the file says.
    pub(super) fn reload(
        self,
        settings: &config::Backoff,
        limits: &GateLimits,
        now: Moment,
    ) -> Self {
        let mut backoff = self.backoff;
        let (rate, most) = (limits.rate, limits.max_in_flight);
        backoff.set_limits(settings.limits(), rate, most, now);
        if self.settings.retry_after && !settings.retry_after {
            backoff.end_pause(now);
        }
        Self {
            settings: settings.clone(),
            backoff,
            limits: *limits,
            told_kept: self.told_kept,
            shared: self.shared,
        }
    }

    /// Follows other limits, as if they were those of the file: what is lowered stays at its share
    /// of them.
    pub(super) fn set_whole(&mut self, whole: &GateLimits, now: Moment) {
        self.limits = *whole;
        let (rate, most) = (whole.rate, whole.max_in_flight);
        self.backoff
            .set_limits(self.settings.limits(), rate, most, now);
    }

    /// What has to be kept of it for the next process.
    pub(super) fn save(&self, at: Moment) -> Option<SavedBackoff> {
        self.backoff.save(at)
    }

    /// Continues what an earlier process saved at `at`.
    pub(super) fn restore(&mut self, saved: &SavedBackoff, at: Moment, now: Moment) {
        self.backoff.restore(saved, at, now);
    }

    pub(super) fn sent(&mut self, in_flight: usize, now: Moment) -> Sent {
        let sent = self.backoff.sent(in_flight, now);
        self.note_change(now);
        sent
    }

    /// Wakes the task that asks other gateways, if it has to ask before it would by itself.
    fn note_change(&mut self, now: Moment) {
        if let Some(shared) = &mut self.shared {
            shared.note(&self.backoff, now);
        }
    }

    /// Learns from other gateways, called `author`, from now on; `None`: not any more.
    pub(super) fn share_as(&mut self, author: Option<u64>) {
        self.backoff.share_as(author);
    }

    /// The back-off, and how it learns from others.
    pub(super) fn learning(&mut self) -> Option<(&mut Backoff, &mut SharedBackoff)> {
        Some((&mut self.backoff, self.shared.as_mut()?))
    }

    /// A request of this key waits. Returns whether this ends a pause that is another one's alone.
    pub(super) fn waits(&mut self, key: &KeyAtGate, now: Moment) -> bool {
        let key = key.hash();
        let ends = key.is_some_and(|key| self.backoff.waits(key, now));
        ends && self.settings.mode == BackoffMode::On
    }

    /// Names the key by which a request shares the gate.
    pub(super) fn set_key(&mut self, sent: &mut Sent, key: u64) {
        self.backoff.set_key(sent, key);
    }

    /// The client of a request still has to send a part of it (`awaits`), or does no more.
    pub(super) fn await_client(&mut self, sent: &mut Sent, awaits: bool, now: Moment) {
        self.backoff.await_client(sent, awaits, now);
    }

    pub(super) fn report(&mut self, unreported: Unreported, now: Moment) {
        let Unreported {
            sent,
            time,
            cost,
            result,
        } = unreported;
        let Some(result) = result else {
            return self.backoff.abandoned(sent, now);
        };
        let on = &self.settings.on;
        let (trouble, retry_after) = match result {
            OriginResult::Answered {
                status,
                retry_after,
            } => (on.iter().any(|it| it.has(status)), retry_after),
            OriginResult::Failed(Outcome::Timeout) => (on.contains(&Trouble::Timeout), None),
            OriginResult::Failed(_) => (on.contains(&Trouble::Connect), None),
        };
        let is_order = self.settings.retry_after
            && matches!(
                result,
                OriginResult::Answered {
                    status: 429 | 503,
                    ..
                }
            );
        let (order, retry_after) = if is_order {
            (retry_after, None)
        } else {
            (None, retry_after)
        };
        if let OriginResult::Failed(_) = result
            && !trouble
        {
            // No answer is no good answer either.
            return self.backoff.abandoned(sent, now);
        }
        if let Some(shared) = &mut self.shared {
            shared.count(cost);
        }
        let answer = Answer {
            trouble,
            retry_after,
            cost,
            time,
        };
        self.backoff.answered(sent, answer, now);
        if let Some(pause) = order {
            self.backoff.obey(pause, now);
        }
    }

    /// Sets the gate to what the origin can take now, unless this is only a shadow.
    pub(super) fn apply<K: Hash + Eq + Clone, W>(
        &mut self,
        gate: &mut Gate<K, W>,
        metrics: &GateMetrics,
        now: Moment,
    ) {
        let Some(cuts) = self.backoff.update(now) else {
            return;
        };
        metrics.count_backoffs(cuts);
        self.note_change(now);
        if self.settings.mode == BackoffMode::On {
            self.tell_kept(metrics.origin());
            gate.set_limits(self.limits_now(self.limits), now);
            if let Some(until) = self.backoff.paused_until() {
                gate.pause(until);
            }
        }
    }

    /// Logs that fewer requests at once have not made the origin faster, once for each time.
    fn tell_kept(&mut self, origin: &str) {
        let kept = self
            .backoff
            .lowered()
            .kept
            .filter(|kept| kept.since > self.told_kept);
        let Some(kept) = kept else {
            return;
        };
        self.told_kept = kept.since;
        let again_after = kept.until.since(kept.since);
        let (most, of) = (self.backoff.max_in_flight(), self.limits.max_in_flight);
        tracing::warn!(
            origin,
            max_in_flight = most,
            of,
            ?again_after,
            "fewer requests at once did not make the origin faster: its places are back"
        );
    }

    /// The limits to show, and what is lowered.
    pub(super) fn shown(&self, limits: GateLimits) -> (GateLimits, Lowered) {
        (self.limits_now(limits), self.backoff.lowered())
    }

    /// Whether anything is lower than it would be without the back-off.
    pub(super) fn is_lower(&self, now: Moment) -> bool {
        let lowered = self.backoff.lowered();
        let is_paused = lowered.paused_until.is_some_and(|until| until > now);
        let is_lower = lowered.rate.is_some() || lowered.max_in_flight.is_some() || is_paused;
        is_lower && self.settings.mode == BackoffMode::On
    }

    /// Returns whether the origin has ordered a pause that is not over.
    pub(super) fn is_ordered_to_pause(&self, now: Moment) -> bool {
        let until = self.backoff.paused_for_all();
        let obeys = self.settings.retry_after && self.settings.mode == BackoffMode::On;
        obeys && until.is_some_and(|until| until > now)
    }

    /// When something may change without a request or an answer.
    pub(super) fn next_change(&self, now: Moment) -> Option<Moment> {
        self.backoff.may_change().then(|| now + CHANGES)
    }

    fn limits_now(&self, limits: GateLimits) -> GateLimits {
        GateLimits {
            rate: self.backoff.rate(),
            max_in_flight: self.backoff.max_in_flight(),
            ..limits
        }
    }
}
