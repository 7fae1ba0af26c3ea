//! Backs off in front of an origin that is in trouble: lower rate, pauses, fewer requests at once.
//!
//! It only ever lowers what the file says, and grows back to it. Answers are counted in windows of
//! 1 to 10 seconds. The operator says what is slow: nothing is learned from latency by itself.
//!
//! - Trouble in a window cuts the rate, down to what the origin did answer.
//! - Retry-After in half of the answers stops all departures for a time. Where the operator says so, the
//!   first one does ([`Backoff::obey`]).
//! - Slow answers cut the number of requests at the origin at once. If fewer at once do not make
//!   answers faster, it is given back, and not cut again for a time.
//!
//! Where keys share the gate, trouble, Retry-After and slow answers count by key ([`tally`]), so that
//! what one key alone provokes slows nobody else down.
//!
//! Gateways that share an origin tell each other what they have learned ([`Learned`]): each judges its
//! own answers, the lowest counts, and it grows by the same rules at all from the same moment on.
//!
//! All rules are applied at *ticks*, ten a second. A call applies the ticks up to its moment
//! first, so the outcome does not depend on how often [`Backoff::update`] is called.

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
use tick::{TICK, tick_after};
use traffic::Traffic;
use window::Closed;

pub use cut::{Cut, Cuts, Kept, Lowered};
pub use exchange::{Ask, BackoffExchange, LearnedReply, Token};
pub use learned::{GivenBack, Learned, LearnedPlaces, LearnedRate};
pub use limits::BackoffLimits;
pub use saved::{SavedBackoff, SavedPlaces};
pub use traffic::{Answer, Sent};

/// A caller that was silent for longer skips the ticks before. The rate has grown back by then.
const MAX_TICKS: u32 = 1000;

/// What an origin can take now, learned from its answers.
///
/// All times that it is told must not go back.
#[derive(Debug)]
pub struct Backoff {
    limits: BackoffLimits,
    file_rate: Option<Rate>,
    rate: Option<Rate>,
    rate_share: RateShare,
    in_flight_limit: InFlightLimit,
    paused_until: Option<Moment>,
    /// The end of the last pause that was [ended](Self::end_pause): other gateways may still report it.
    ended_pause: Option<Moment>,
    /// Whether another gateway was asked for the pause.
    is_paused_elsewhere: bool,
    /// The only key that was asked for it: it ends when another one has a request. `None`: it is for all.
    paused_key: Option<u64>,
    /// What other gateways know of it; `None`: it is not shared.
    shared_cuts: Option<Box<SharedCuts>>,
    traffic: Traffic,
    next_tick: Moment,
    changed: bool,
    cuts: Cuts,
    /// How long answers took on average while nothing was lower than in the file.
    usual: Option<Duration>,
}

impl Backoff {
    /// Nothing is lower than in the file, which says `rate` and `max_in_flight`.
    pub fn new(
        limits: BackoffLimits,
        rate: Option<Rate>,
        max_in_flight: Option<usize>,
        now: Moment,
    ) -> Self {
        Self {
            limits,
            file_rate: rate,
            rate,
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

    /// A request leaves to the origin. `in_flight` are there now, this one included.
    pub fn sent(&mut self, in_flight: usize, now: Moment) -> Sent {
        self.advance(now);
        self.traffic.sent(in_flight, now)
    }

    /// Names the key by which a request shares the gate: a hash of it.
    pub fn set_key(&mut self, sent: &mut Sent, key: u64) {
        self.traffic.set_key(sent, key);
    }

    /// The head of an answer came, or the attempt failed.
    #[allow(clippy::needless_pass_by_value, reason = "no request ends twice")]
    pub fn answered(&mut self, sent: Sent, answer: Answer, now: Moment) {
        self.advance(now);
        let ended = self.traffic.answered(&sent, &answer, now);
        if let (Some((generation, took)), false) = (ended, answer.trouble) {
            self.in_flight_limit.answered(generation, took);
        }
    }

    /// Pauses for all keys, as the origin orders: for `pause`, at most for `max_pause`.
    ///
    /// A longer pause stays. Answers to requests sent before are not judged.
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
        if let Some(told) = &mut self.shared_cuts {
            told.note_cut(now);
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

    /// The client of a request still has to send a part of it (`awaits`), or has sent all that the
    /// origin waited for. Nothing of the time between is the origin's.
    pub fn await_client(&mut self, sent: &mut Sent, awaits: bool, now: Moment) {
        self.advance(now);
        if awaits {
            self.traffic.await_client(sent);
        } else {
            self.traffic.resume(sent, now);
        }
    }

    /// The client left before an answer came: it counts for nothing.
    #[allow(clippy::needless_pass_by_value, reason = "no request ends twice")]
    pub fn abandoned(&mut self, sent: Sent, now: Moment) {
        self.advance(now);
        self.traffic.forget(&sent);
    }

    /// A request of `key` waits. This ends a pause that the only key was asked for, if it is another one.
    ///
    /// Returns whether it has ended one.
    pub fn waits(&mut self, key: u64, now: Moment) -> bool {
        let ends =
            self.paused_key.is_some_and(|paused| paused != key) && self.paused_until.is_some();
        if ends {
            (self.paused_until, self.paused_key) = (None, None);
            self.rate_share.resume(now);
            self.changed = true;
        }
        ends
    }

    /// Until when nothing leaves, whoever asks.
    pub fn paused_for_all(&self) -> Option<Moment> {
        self.paused_until.filter(|_| self.paused_key.is_none())
    }

    /// Returns what was cut since the last call; `None` if nothing has changed.
    ///
    /// After a change the caller sets the gate to [`rate`](Self::rate),
    /// [`max_in_flight`](Self::max_in_flight) and [`paused_until`](Self::paused_until). It calls
    /// this at answers, and every 100 ms while anything [may change](Self::may_change).
    pub fn update(&mut self, now: Moment) -> Option<Cuts> {
        self.advance(now);
        let cuts = std::mem::take(&mut self.cuts);
        std::mem::take(&mut self.changed).then_some(cuts)
    }

    /// Whether anything may change without another call.
    pub fn may_change(&self) -> bool {
        self.lowered() != Lowered::default() || !self.traffic.is_idle()
    }

    /// The rate now in force: at most the file's, at least `floor` of it.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// The requests that may be at the origin at once now: at most as the file says.
    pub fn max_in_flight(&self) -> Option<usize> {
        self.in_flight_limit.now()
    }

    /// No request may leave before this moment. Over when it has passed.
    pub fn paused_until(&self) -> Option<Moment> {
        self.paused_until
    }

    /// What is lower than in the file, and why.
    pub fn lowered(&self) -> Lowered {
        let cut = self.rate_share.last_cut();
        let lowered = Lowered {
            rate: cut.map(|cut| (self.rate_share.share(), cut)),
            max_in_flight: self.in_flight_limit.last_cut(),
            paused_until: self.paused_until,
            is_paused_elsewhere: self.paused_until.is_some() && self.is_paused_elsewhere,
            kept: self.in_flight_limit.kept(),
            grows: self.in_flight_limit.grows(),
            usual: None,
        };
        let usual = self.usual.filter(|_| lowered != Lowered::default());
        Lowered { usual, ..lowered }
    }

    /// The file has changed. What is lowered stays at its share of what the file says.
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
        let longest = now + limits.max_pause;
        self.paused_until = self.paused_until.map(|until| until.min(longest));
        self.rate_share.raise_to(limits.floor);
        self.in_flight_limit.set_file(max_in_flight, limits.floor);
        (self.limits, self.file_rate) = (limits, rate);
        self.show_rate();
        self.changed = true;
    }

    fn advance(&mut self, now: Moment) {
        if now >= self.next_tick {
            self.apply_ticks(now);
        }
    }

    #[cold]
    fn apply_ticks(&mut self, now: Moment) {
        let skipped_to = tick_after(now.before(TICK * MAX_TICKS));
        let mut tick = self.next_tick.max(skipped_to);
        for _ in 0..=MAX_TICKS {
            if tick > now {
                break;
            }
            self.apply_tick(tick);
            tick = tick + TICK;
        }
        self.next_tick = tick;
    }

    fn apply_tick(&mut self, now: Moment) {
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
            self.changed = true;
        }
        if self.paused_until.is_none() {
            if self.rate_share.grow(now) {
                self.show_rate();
            }
            self.changed |= self.in_flight_limit.grow();
        }
        if let Some(told) = &mut self.shared_cuts
            && told.is_known_by(now)
        {
            // Others have sent as before up to now.
            self.traffic.begin_generation(self.limits.slow, now);
        }
        if let Some(closed) = self.traffic.close(now) {
            self.judge(&closed, now);
        }
    }

    fn judge(&mut self, closed: &Closed, now: Moment) {
        let mut is_cut = self.pause(closed, now);
        let resumes = self.paused_until.unwrap_or(now);
        let told = self.shared_cuts.as_ref();
        let part = told.map_or(Percent::ALL, |told| told.part());
        if let Some(rate) = self.file_rate {
            let before = self.rate_share.share();
            let judged = self
                .rate_share
                .judge(closed, (rate, part), &self.limits, resumes);
            is_cut |= judged;
            if self.rate_share.share() < before {
                self.cuts.trouble = true;
                self.show_rate();
            }
        }
        if let Some(slow) = self.limits.slow {
            let before = self.in_flight_limit.now();
            is_cut |= self.in_flight_limit.judge(closed, part, slow);
            let after = self.in_flight_limit.now();
            // It is higher where fewer at once did not help. No limit is above all others.
            let is_lower = after.is_some_and(|after| before.is_none_or(|before| after < before));
            self.cuts.slow |= is_lower;
            self.changed |= after != before;
        }
        if is_cut {
            if let Some(told) = &mut self.shared_cuts {
                told.note_cut(now);
            }
            self.traffic.begin_generation(self.limits.slow, now);
        } else if self.lowered() == Lowered::default() {
            self.usual = closed.window.mean().or(self.usual);
        }
    }

    /// Obeys Retry-After if half of the answers are trouble with it, by key.
    fn pause(&mut self, closed: &Closed, now: Moment) -> bool {
        let window = &closed.window;
        let pause = window.retry_after.min(self.limits.max_pause);
        let is_cut = window.by_key.share(|it| (it.retries, it.answers)) * 2 >= tally::WHOLE
            && !pause.is_zero();
        if is_cut {
            let ordered = self.paused_for_all();
            self.paused_until = ordered.max(Some(now + pause));
            self.paused_key = window.by_key.only_key().filter(|_| ordered.is_none());
            self.is_paused_elsewhere = false;
            (self.cuts.retry_after, self.changed) = (true, true);
        }
        is_cut
    }

    fn show_rate(&mut self) {
        let share = self.rate_share.share();
        self.rate = self.file_rate.map(|rate| rate.scaled(share));
        self.changed = true;
    }
}
