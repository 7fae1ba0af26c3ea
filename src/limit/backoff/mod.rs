//! Backs off in front of an origin that is in trouble: lower rate, pauses, fewer requests at once.
//!
//! It only ever lowers what the file says, and grows back to it. Answers are counted in windows of
//! 1 to 10 seconds. The operator says what is slow: nothing is learned from latency by itself.
//!
//! - Trouble in a window cuts the rate, down to what the origin did answer.
//! - Retry-After in half of the answers stops all departures for a time.
//! - Slow answers cut the number of requests at the origin at once.
//!
//! All rules are applied at *ticks*, ten a second. A call applies the ticks up to its moment first,
//! so the outcome does not depend on how often [`Backoff::update`] is called.

mod in_flight_limit;
mod outstanding;
#[cfg(test)]
mod properties;
mod rate_share;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod tests;
mod window;

use std::time::Duration;

use super::{Moment, Percent, Rate};
use in_flight_limit::InFlightLimit;
use outstanding::Outstanding;
use rate_share::RateShare;
use window::{Closed, Window};

const TICK: Duration = Duration::from_millis(100);

/// A caller that was silent for longer skips the ticks before. The rate has grown back by then.
const MOST_TICKS: u32 = 1000;

/// What the file says about backing off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffLimits {
    /// An answer whose head takes longer is slow. `None`: the number in flight is never cut.
    pub slow: Option<Duration>,
    /// The share of trouble in a window that cuts the rate.
    pub trip: Percent,
    /// The rate is never below this share of the file's.
    pub floor: Percent,
    /// The longest Retry-After that is obeyed.
    pub max_pause: Duration,
}

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
    window: Window,
    /// Number of cuts: those sent before the last one are not judged.
    generation: u64,
    /// Those sent after the last cut, if `slow` is set.
    outstanding: Outstanding,
    /// All requests without an answer.
    unanswered: u64,
    /// Other requests at the origin when the last one was sent.
    answering: u64,
    next_tick: Moment,
    changed: bool,
    cuts: Cuts,
}

/// A request that was sent to the origin and has no answer yet.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "each request is answered or abandoned"]
pub struct Sent {
    at: Moment,
    generation: u64,
    /// Among the outstanding ones, if `slow` was set.
    slot: usize,
}

/// What came back for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it counts as trouble.
    pub trouble: bool,
    /// Its Retry-After.
    pub retry_after: Option<Duration>,
    /// What the gate charged for the request.
    pub cost: u32,
}

/// What was cut since the last [update](Backoff::update).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// The rate, for trouble.
    pub trouble: bool,
    /// The number in flight, for slow answers.
    pub slow: bool,
    /// All departures, for Retry-After.
    pub retry_after: bool,
}

/// Why something is lower than in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// When it was last cut.
    pub at: Moment,
    /// The answers that were counted then, with the outstanding ones that were past `slow`.
    pub answers: u64,
    /// Those of them that were trouble, or slow.
    pub bad: u64,
    /// It does not grow before. Only a cut of the rate holds it, and not each one.
    pub held_until: Option<Moment>,
}

/// What is lower than in the file, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lowered {
    /// The rate, with its present share of the file's.
    pub rate: Option<(Percent, Cut)>,
    /// The number in flight.
    pub max_in_flight: Option<Cut>,
    /// No departures before.
    pub paused_until: Option<Moment>,
}

impl Cut {
    fn of(bad: u64, answers: u64, at: Moment) -> Self {
        Self {
            at,
            answers,
            bad,
            held_until: None,
        }
    }
}

impl Backoff {
    /// Nothing is lower than in the file, which says `rate` and `max_in_flight`.
    #[must_use]
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
            in_flight_limit: InFlightLimit::new(max_in_flight),
            paused_until: None,
            window: Window::new(now),
            generation: 0,
            outstanding: Outstanding::default(),
            unanswered: 0,
            answering: 0,
            next_tick: tick_after(now),
            changed: false,
            cuts: Cuts::default(),
        }
    }

    /// A request leaves to the origin. `in_flight` are there now, this one included.
    pub fn sent(&mut self, in_flight: usize, now: Moment) -> Sent {
        self.advance(now);
        if self.unanswered == 0 && self.window.is_empty() {
            // Time in which nothing could be answered does not count.
            self.window.since = now;
        }
        self.unanswered += 1;
        let in_flight = u64::try_from(in_flight).unwrap_or(u64::MAX);
        self.answering = in_flight.saturating_sub(self.unanswered);
        let slot = self.limits.slow.map(|_| self.outstanding.add(now));
        Sent {
            at: now,
            generation: self.generation,
            slot: slot.unwrap_or_default(),
        }
    }

    /// The head of an answer came, or the attempt failed.
    pub fn answered(&mut self, sent: Sent, answer: Answer, now: Moment) {
        self.advance(now);
        if !answer.trouble {
            self.window.complete(&answer);
        }
        if sent.generation == self.generation {
            let took = now.since(sent.at);
            self.window.add(&answer, took, self.limits.slow);
        }
        self.forget(sent);
    }

    /// The client left before an answer came: it counts for nothing.
    pub fn abandoned(&mut self, sent: Sent, now: Moment) {
        self.advance(now);
        self.forget(sent);
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
    #[must_use]
    pub fn may_change(&self) -> bool {
        self.lowered() != Lowered::default() || self.unanswered > 0 || !self.window.is_empty()
    }

    /// The rate now in force: at most the file's, at least `floor` of it.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// The requests that may be at the origin at once now: at most as the file says.
    #[must_use]
    pub fn max_in_flight(&self) -> Option<usize> {
        self.in_flight_limit.now()
    }

    /// No request may leave before this moment. Over when it has passed.
    #[must_use]
    pub fn paused_until(&self) -> Option<Moment> {
        self.paused_until
    }

    /// What is lower than in the file, and why.
    #[must_use]
    pub fn lowered(&self) -> Lowered {
        let cut = self.rate_share.last_cut();
        Lowered {
            rate: cut.map(|cut| (self.rate_share.share(), cut)),
            max_in_flight: self.in_flight_limit.last_cut(),
            paused_until: self.paused_until,
        }
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
            self.begin_generation(now);
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
        self.in_flight_limit.set_file(max_in_flight);
        (self.limits, self.file_rate) = (limits, rate);
        self.show_rate();
        self.changed = true;
    }

    fn forget(&mut self, sent: Sent) {
        self.unanswered = self.unanswered.saturating_sub(1);
        if self.limits.slow.is_some() && sent.generation == self.generation {
            self.outstanding.remove(sent.slot);
        }
    }

    fn advance(&mut self, now: Moment) {
        if now >= self.next_tick {
            self.apply_ticks(now);
        }
    }

    #[cold]
    fn apply_ticks(&mut self, now: Moment) {
        let skipped_to = tick_after(now.before(TICK * MOST_TICKS));
        let mut tick = self.next_tick.max(skipped_to);
        for _ in 0..=MOST_TICKS {
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
        let slow = self.limits.slow;
        let overdue = slow.map_or(0, |slow| self.outstanding.overdue(slow, now));
        if self.window.is_over(overdue, now) {
            self.close_window(overdue, now);
        }
    }

    fn close_window(&mut self, overdue: u64, now: Moment) {
        let window = std::mem::replace(&mut self.window, Window::new(now));
        let mut is_cut = self.pause(&window, now);
        let closed = Closed {
            window,
            at: now,
            resumes: self.paused_until.unwrap_or(now),
            overdue,
            unanswered: self.unanswered,
            answering: self.answering,
        };
        if let Some(rate) = self.file_rate {
            let before = self.rate_share.share();
            is_cut |= self.rate_share.judge(&closed, rate, &self.limits);
            if self.rate_share.share() < before {
                self.cuts.trouble = true;
                self.show_rate();
            }
        }
        if let Some(slow) = self.limits.slow {
            let before = self.in_flight_limit.now();
            is_cut |= self.in_flight_limit.judge(&closed, slow);
            if self.in_flight_limit.now() != before {
                (self.cuts.slow, self.changed) = (true, true);
            }
        }
        if is_cut {
            self.begin_generation(now);
        }
    }

    /// Obeys Retry-After if half of the answers are trouble with it.
    fn pause(&mut self, window: &Window, now: Moment) -> bool {
        let pause = window.retry_after.min(self.limits.max_pause);
        let is_cut = window.retries * 2 >= window.answers.max(1) && !pause.is_zero();
        if is_cut {
            self.paused_until = Some(now + pause);
            (self.cuts.retry_after, self.changed) = (true, true);
        }
        is_cut
    }

    /// Judges only what is sent from now on.
    fn begin_generation(&mut self, now: Moment) {
        self.generation += 1;
        self.outstanding.clear();
        self.window = Window::new(now);
    }

    fn show_rate(&mut self) {
        let share = self.rate_share.share();
        self.rate = self.file_rate.map(|rate| rate.scaled(share));
        self.changed = true;
    }
}

/// The first tick after `now`.
fn tick_after(now: Moment) -> Moment {
    let tick = 100_000_000;
    Moment::from_nanos((now.as_nanos() / tick + 1).saturating_mul(tick))
}
