//! Back-off: lowers the load on an origin in trouble (rate, pauses, number of requests in flight).
//!
//! *Trouble* is an answer that the operator counts as a failure. A *cut* lowers a limit. A
//! *generation* is the group of requests sent between two cuts: after a cut, earlier requests are
//! not judged, because they were sent at the old limits.
//!
//! A back-off only lowers the configured limits, and grows back to them. Answers are counted in
//! windows of 1 to 10 seconds. The operator configures which answers are slow (`slow`): no latency
//! threshold is learned.
//!
//! - Trouble in a window cuts the rate, down to the rate that the origin did answer.
//! - Retry-After in half of the answers stops all departures for a time. If the operator asks for
//!   it, the first Retry-After does so ([`Backoff::obey`]).
//! - Slow answers cut the number of requests in flight. If fewer requests in flight do not make
//!   answers faster, the cut is undone and not repeated for a time.
//!
//! If keys share the gate, trouble, Retry-After and slow answers are counted by key ([`tally`]).
//! Trouble that one key alone causes does not slow down the other keys.
//!
//! Gateways that share an origin send each other their state ([`Learned`]). Each gateway judges its
//! own answers. The lowest limits apply at all gateways and grow by the same rules from the same
//! instant.
//!
//! All rules are applied at *ticks*, ten a second. A call applies all ticks up to its instant
//! first. The result does not depend on how often [`Backoff::update`] is called.
//!
//! Files: `traffic`, `window` and `tally` count answers. `rate_share` and `in_flight_limit` hold
//! the two limits, and `trial` measures whether cuts help. `learned` and `exchange` share the state
//! with other gateways.

mod cut;
mod exchange;
mod in_flight_limit;
mod learned;
mod limits;
mod outstanding;
#[cfg(test)]
mod properties;
mod rate_share;
mod saved;
#[cfg(test)]
mod scenarios;
mod tally;
#[cfg(test)]
mod tests;
mod tick;
mod traffic;
mod trial;
mod window;

use std::time::Duration;

use super::{Moment, Percent, Rate};
use in_flight_limit::InFlightLimit;
use learned::SharedCuts;
use rate_share::RateShare;
use tally::WHOLE;
use tick::{tick_after, ticks_until};
use traffic::Traffic;
use window::Closed;

pub use cut::{Cut, Cuts, Lowered};
pub use exchange::{BackoffExchange, LearnedQuery, LearnedReply, Token};
pub use learned::{GivenBack, Learned, LearnedInFlight, LearnedRate};
pub use limits::BackoffLimits;
pub use saved::{SavedBackoff, SavedInFlight};
pub use traffic::{Answer, Sent};

/// Share of answers with Retry-After in a window from which departures are paused: a half.
const PAUSE_SHARE: u64 = WHOLE / 2;

/// State of the back-off of one origin: the limits in force, learned from the origin's answers.
///
/// All instants passed to it must not decrease.
#[derive(Debug)]
pub struct Backoff {
    limits: BackoffLimits,
    configured_rate: Option<Rate>,
    rate_share: RateShare,
    in_flight_limit: InFlightLimit,
    /// End of the current pause.
    paused_until: Option<Moment>,
    /// End of the last pause that [`end_pause`](Self::end_pause) ended.
    ///
    /// Other gateways may still report this pause.
    ended_pause: Option<Moment>,
    /// Whether another gateway received the Retry-After of the pause.
    is_paused_elsewhere: bool,
    /// The only key that received Retry-After.
    ///
    /// A request of another key ends the pause. `None`: the pause applies to all keys.
    paused_key: Option<u64>,
    /// State shared with other gateways. `None`: this back-off is not shared.
    shared_cuts: Option<Box<SharedCuts>>,
    traffic: Traffic,
    next_tick: Moment,
    /// Whether any limit has changed since the last call of [`update`](Self::update).
    changed: bool,
    /// Cuts since the last call of [`update`](Self::update).
    cuts: Cuts,
    /// Mean duration of answers in the last window in which no limit was lowered.
    usual: Option<Duration>,
}

impl Backoff {
    /// Creates a back-off with nothing lowered.
    ///
    /// `rate` and `max_in_flight` are the configured limits.
    pub fn new(
        limits: BackoffLimits,
        rate: Option<Rate>,
        max_in_flight: Option<usize>,
        now: Moment,
    ) -> Self {
        Self {
            limits,
            configured_rate: rate,
            rate_share: RateShare::new(now),
            in_flight_limit: InFlightLimit::new(max_in_flight, limits.floor),
            paused_until: None,
            ended_pause: None,
            is_paused_elsewhere: false,
            paused_key: None,
            shared_cuts: None,
            traffic: Traffic::new(limits.slow, now),
            next_tick: tick_after(now),
            changed: false,
            cuts: Cuts::default(),
            usual: None,
        }
    }

    /// Records a request sent to the origin.
    ///
    /// `in_flight` requests are there now, including this one.
    pub fn sent(&mut self, in_flight: usize, now: Moment) -> Sent {
        self.advance(now);
        self.traffic.sent(in_flight, now)
    }

    /// Sets the key by which a request shares the gate. `key` is a hash of it.
    pub fn set_key(&mut self, sent: &mut Sent, key: u64) {
        self.traffic.set_key(sent, key);
    }

    /// Records the head of an answer, or a failed attempt.
    #[allow(clippy::needless_pass_by_value, reason = "no request ends twice")]
    pub fn answered(&mut self, sent: Sent, answer: Answer, now: Moment) {
        self.advance(now);
        let ended = self.traffic.answered(&sent, &answer, now);
        if let (Some((generation, took)), false) = (ended, answer.trouble) {
            self.in_flight_limit.trial.answered(generation, took);
        }
    }

    /// Pauses all keys for `pause`, at most for `max_pause`, because the origin ordered it.
    ///
    /// A longer pause that is already in force stays. Answers to requests sent before the pause are
    /// not judged.
    pub fn obey(&mut self, pause: Duration, now: Moment) {
        self.advance(now);
        let until = now + pause.min(self.limits.max_pause);
        let before = self.paused_for_all().unwrap_or(now).max(now);
        if until <= before {
            return;
        }
        self.cuts.retry_after |= before == now;
        self.ended_pause = None;
        self.paused_until = self.paused_until.max(Some(until));
        (self.paused_key, self.is_paused_elsewhere) = (None, false);
        self.changed = true;
        if let Some(shared) = &mut self.shared_cuts {
            shared.note_cut(now);
        }
        self.traffic.begin_generation(self.limits.slow, now);
    }

    /// Ends a pause for all keys.
    pub fn end_pause(&mut self, now: Moment) {
        if self.paused_for_all().is_some() {
            self.ended_pause = self.paused_until.take();
            self.rate_share.resume(now);
            self.changed = true;
        }
    }

    /// Stops or restarts the time that a request takes at the origin.
    ///
    /// `awaits`: the client still has to send a part of the request. Without it, the client has
    /// sent all that the origin waited for. The time in between does not count as the origin's.
    pub fn await_client(&mut self, sent: &mut Sent, awaits: bool, now: Moment) {
        self.advance(now);
        if awaits {
            self.traffic.await_client(sent);
        } else {
            self.traffic.resume(sent, now);
        }
    }

    /// Removes a request whose client disconnected before an answer.
    ///
    /// It counts as neither good nor bad.
    #[allow(clippy::needless_pass_by_value, reason = "no request ends twice")]
    pub fn abandoned(&mut self, sent: Sent, now: Moment) {
        self.advance(now);
        self.traffic.forget(&sent);
    }

    /// Records that a request of `key` waits. Ends a pause that applies to one other key only.
    ///
    /// Returns whether a pause has ended.
    pub fn waits(&mut self, key: u64, now: Moment) -> bool {
        let is_for_other = self.paused_key.is_some_and(|paused| paused != key);
        let ends = is_for_other && self.paused_until.is_some();
        if ends {
            (self.paused_until, self.paused_key) = (None, None);
            self.rate_share.resume(now);
            self.changed = true;
        }
        ends
    }

    /// Returns the end of the pause, if it applies to all keys.
    pub fn paused_for_all(&self) -> Option<Moment> {
        self.paused_until.filter(|_| self.paused_key.is_none())
    }

    /// Returns the cuts since the last call. `None`: nothing has changed.
    ///
    /// After a change the caller sets the gate to [`rate`](Self::rate),
    /// [`max_in_flight`](Self::max_in_flight) and [`paused_until`](Self::paused_until). The caller
    /// calls this after answers, and every 100 ms while anything [may change](Self::may_change).
    pub fn update(&mut self, now: Moment) -> Option<Cuts> {
        self.advance(now);
        let cuts = std::mem::take(&mut self.cuts);
        std::mem::take(&mut self.changed).then_some(cuts)
    }

    /// Returns whether any limit may change without another request or answer.
    pub fn may_change(&self) -> bool {
        self.is_lowered() || !self.traffic.is_idle()
    }

    /// Returns whether any limit is lowered, or kept although answers are slow.
    fn is_lowered(&self) -> bool {
        self.rate_share.last_cut().is_some()
            || self.in_flight_limit.last_cut().is_some()
            || self.in_flight_limit.is_kept()
            || self.paused_until.is_some()
    }

    /// Returns the effective rate: at most the configured rate, at least `floor` of it.
    pub fn rate(&self) -> Option<Rate> {
        let share = self.rate_share.share();
        self.configured_rate.map(|rate| rate.scaled(share))
    }

    /// Returns the effective limit of requests in flight: at most the configured one.
    pub fn max_in_flight(&self) -> Option<usize> {
        self.in_flight_limit.effective()
    }

    /// Returns the end of the current pause. No request may be sent before it.
    pub fn paused_until(&self) -> Option<Moment> {
        self.paused_until
    }

    /// Returns the limits that are lower than configured, and why.
    pub fn lowered(&self) -> Lowered {
        let rate_cut = self.rate_share.last_cut();
        Lowered {
            rate: rate_cut.map(|cut| (self.rate_share.share(), cut)),
            max_in_flight: self.in_flight_limit.last_cut(),
            paused_until: self.paused_until,
            is_paused_elsewhere: self.paused_until.is_some() && self.is_paused_elsewhere,
            is_kept: self.in_flight_limit.is_kept(),
            grows: self.in_flight_limit.grows(),
            usual: self.usual.filter(|_| self.is_lowered()),
        }
    }

    /// Applies new configured limits. A lowered limit keeps its share of the configured one.
    pub fn set_limits(
        &mut self,
        limits: BackoffLimits,
        rate: Option<Rate>,
        max_in_flight: Option<usize>,
        now: Moment,
    ) {
        self.advance(now);
        if limits.slow != self.limits.slow {
            self.traffic.begin_generation(limits.slow, now);
        }
        if rate.is_none() {
            self.rate_share = RateShare::new(now);
        }
        if limits.slow.is_none() {
            self.in_flight_limit.reset();
        }
        let latest = now + limits.max_pause;
        self.paused_until = self.paused_until.map(|until| until.min(latest));
        self.rate_share.raise_to(limits.floor);
        self.in_flight_limit.configure(max_in_flight, limits.floor);
        (self.limits, self.configured_rate) = (limits, rate);
        self.changed = true;
    }

    /// Applies the ticks that are due by `now`. Nearly always there is none.
    fn advance(&mut self, now: Moment) {
        if now >= self.next_tick {
            self.apply_ticks(now);
        }
    }

    #[cold]
    fn apply_ticks(&mut self, now: Moment) {
        for tick in ticks_until(self.next_tick, now) {
            self.apply_tick(tick);
        }
        self.next_tick = tick_after(now);
    }

    /// Applies one tick: ends the pause, grows the limits, and judges the window if it is over.
    fn apply_tick(&mut self, now: Moment) {
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
            self.changed = true;
        }
        if self.paused_until.is_none() {
            self.changed |= self.rate_share.grow(now);
            self.changed |= self.in_flight_limit.grow();
        }
        if let Some(shared) = &mut self.shared_cuts
            && shared.take_known(now)
        {
            // Other gateways did not know the cut before now, and sent at the old rate.
            self.traffic.begin_generation(self.limits.slow, now);
        }
        if let Some(closed) = self.traffic.close(now) {
            self.judge(&closed, now);
        }
    }

    /// Judges a closed window, and makes the cuts for which it has reasons.
    fn judge(&mut self, closed: &Closed, now: Moment) {
        let mut is_cut = self.pause(closed, now);
        let resumes_at = self.paused_until.unwrap_or(now);
        let shared = self.shared_cuts.as_ref();
        let part = shared.map_or(Percent::ALL, |shared| shared.part);
        if let Some(rate) = self.configured_rate {
            let before = self.rate_share.share();
            let good_share = rate_share::good_share(closed, rate, part);
            is_cut |= self
                .rate_share
                .judge(closed, good_share, &self.limits, resumes_at);
            if self.rate_share.share() < before {
                (self.cuts.trouble, self.changed) = (true, true);
            }
        }
        if let Some(slow) = self.limits.slow {
            let before = self.in_flight_limit.effective();
            is_cut |= self.in_flight_limit.judge(closed, part, slow);
            let after = self.in_flight_limit.effective();
            // The limit may also have risen, because earlier cuts did not help.
            let is_below = |after| before.is_none_or(|before| after < before);
            self.cuts.slow |= after.is_some_and(is_below);
            self.changed |= after != before;
        }
        if is_cut {
            if let Some(shared) = &mut self.shared_cuts {
                shared.note_cut(now);
            }
            self.traffic.begin_generation(self.limits.slow, now);
        } else if !self.is_lowered() {
            self.usual = closed.window.mean().or(self.usual);
        }
    }

    /// Starts a pause if half of the answers, by key, are trouble with Retry-After.
    ///
    /// Returns whether it did.
    fn pause(&mut self, closed: &Closed, now: Moment) -> bool {
        let window = &closed.window;
        let pause = window.retry_after.min(self.limits.max_pause);
        let share = window.by_key.share(|tally| (tally.retries, tally.answers));
        if share < PAUSE_SHARE || pause.is_zero() {
            return false;
        }
        let known_until = self.paused_for_all();
        self.paused_until = known_until.max(Some(now + pause));
        self.paused_key = window.by_key.only_key().filter(|_| known_until.is_none());
        self.is_paused_elsewhere = false;
        (self.cuts.retry_after, self.changed) = (true, true);
        true
    }
}
