//! Back-off state that gateways with a common origin send each other.
//!
//! [`exchange`](super::exchange) decides when it is sent. This module compares and merges it.

use std::time::Duration;

use super::in_flight_limit::InFlightLimit;
use super::rate_share::RateShare;
use super::tick::{TICK, tick_after};
use super::{Backoff, Cuts, MAX_TICKS, Moment};
use crate::Percent;

/// Time from a cut until all gateways know it. Requests sent before then are not judged.
const KNOWN_AFTER: Duration = Duration::from_millis(300);
/// Tolerance of an estimated instant: two estimates closer than this are the same instant.
const INSTANT_TOLERANCE: Duration = Duration::from_millis(300);
/// Tolerance of a share, in millionths. Gateways grow alike, but each at its own ticks.
const RATE_APART: u32 = 10_000;
/// The same for the number in flight.
const IN_FLIGHT_APART: u32 = 30_000;

/// Back-off state of an origin at one instant.
///
/// Durations count from that instant, backward (`ago`) or forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learned {
    /// Identifier of the last cut. 0: there was none.
    pub cut: u64,
    /// Time since the last cut.
    pub cut_ago: Duration,
    /// Rest of the pause.
    pub paused: Duration,
    /// State of the rate.
    pub rate: LearnedRate,
    /// State of the number in flight.
    pub in_flight: LearnedInFlight,
}

/// Back-off state of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedRate {
    /// Share of the configured rate that is in force.
    pub share: Percent,
    /// Time until the rate may grow again.
    pub steady: Duration,
    /// Total time without growth after the last cut. The next one may be twice as long.
    pub steady_time: Duration,
    /// Share of the rate that the origin answered well when it was last in trouble.
    pub trouble_at: Option<Percent>,
    /// Number of answers in the window of the last cut.
    pub answers: u64,
    /// Number of those answers that were trouble.
    pub bad: u64,
}

/// Back-off state of the number of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedInFlight {
    /// Share of the configured number that is in force.
    pub share: Percent,
    /// Time since the last cut.
    pub cut_ago: Duration,
    /// Number of answers in the window of the last cut.
    pub answers: u64,
    /// Number of those answers that were slow.
    pub bad: u64,
    /// Set after the cuts were undone, because fewer requests in flight were not faster.
    pub given_back: Option<GivenBack>,
}

/// Permits that were given back: fewer requests in flight did not make the origin faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenBack {
    /// Time since they were given back.
    pub ago: Duration,
    /// Time until the number may be cut again.
    pub kept: Duration,
    /// Mean duration of answers with fewer requests in flight.
    pub mean: Duration,
}

/// Part of a back-off that is shared with other gateways.
#[derive(Debug)]
pub(super) struct SharedCuts {
    /// Identifier of this gateway, from which the identifiers of its cuts are made.
    author: u64,
    count: u64,
    /// Identifier of the last known cut; `cut_at` is its instant.
    cut: u64,
    cut_at: Moment,
    /// Whether this gateway made the cut and other gateways do not know it yet.
    is_pending: bool,
    /// Instant from which all gateways know the last cut.
    known_at: Option<Moment>,
    /// Share of the origin's answers that arrive at this gateway.
    part: Percent,
}

/// State of [`Learned`] at a later instant, with the growth in between.
struct Grown {
    rate: RateShare,
    in_flight: Percent,
    paused_until: Moment,
}

impl Grown {
    /// Applies the growth between `at` and `now`, by the rules that all gateways follow.
    fn of(learned: &Learned, at: Moment, now: Moment) -> Self {
        let at = at.min(now);
        let mut rate = RateShare::learned_at(&learned.rate, at);
        let mut in_flight = learned.in_flight.share;
        let paused_until = at + learned.paused;
        let skipped_to = tick_after(now.before(TICK * MAX_TICKS));
        let begins = tick_after(at.max(paused_until.min(now))).max(skipped_to);
        let mut tick = begins;
        while tick <= now {
            rate.grow(tick);
            in_flight = InFlightLimit::grown(in_flight);
            tick = tick + TICK;
        }
        Self {
            rate,
            in_flight,
            paused_until,
        }
    }
}

impl SharedCuts {
    /// Records a cut that this gateway made, which the other gateways do not know yet.
    pub fn note_cut(&mut self, now: Moment) {
        self.count += 1;
        // Zero means that there was no cut.
        self.cut = self.author.wrapping_add(self.count).max(1);
        (self.cut_at, self.is_pending) = (now, true);
        self.known_at = Some(now + KNOWN_AFTER);
    }

    /// Returns whether `tick` is the first one at which all gateways know the last cut.
    pub fn is_known_by(&mut self, tick: Moment) -> bool {
        self.known_at.take_if(|at| *at <= tick).is_some()
    }

    pub fn part(&self) -> Percent {
        self.part
    }
}

impl Backoff {
    /// Shares the state with other gateways from now on.
    ///
    /// `author` identifies this gateway. `None`: ends the sharing.
    pub fn share_as(&mut self, author: Option<u64>) {
        self.shared_cuts = author.map(|author| {
            Box::new(SharedCuts {
                author,
                count: 0,
                cut: 0,
                cut_at: Moment::default(),
                is_pending: false,
                known_at: None,
                part: Percent::ALL,
            })
        });
    }

    /// Sets the share of the origin's answers that arrive at this gateway.
    ///
    /// The counts of this gateway are divided by it to estimate the counts of all gateways.
    pub fn set_part(&mut self, part: Percent) {
        if let Some(shared) = &mut self.shared_cuts {
            shared.part = part;
        }
    }

    /// Returns the state to send to other gateways at `now`.
    pub fn learned(&self, now: Moment) -> Learned {
        let (cut, cut_at) = self
            .shared_cuts
            .as_ref()
            .map_or((0, now), |shared| (shared.cut, shared.cut_at));
        let paused = self.paused_for_all().map(|until| until.since(now));
        Learned {
            cut,
            cut_ago: now.since(cut_at),
            paused: paused.unwrap_or_default(),
            rate: self.rate_share.learned(now),
            in_flight: self.in_flight_limit.learned(now),
        }
    }

    /// Returns whether this gateway has lower limits than `known`.
    ///
    /// `known` is the state that other gateways had at its instant. `None`: they have no state.
    pub fn is_lower_than(&self, known: Option<(&Learned, Moment)>, now: Moment) -> bool {
        let nothing = Learned::NOTHING;
        let (known, at) = known.unwrap_or((&nothing, now));
        let known_in_flight = known.in_flight;
        let known = Grown::of(known, at, now);
        let is_pending = self.is_pending();
        let apart = |most: u32| if is_pending { 0 } else { most };
        let own = self.learned(now);
        let is_below = |own: Percent, known: Percent, most| {
            own.millionths() + apart(most) < known.millionths()
        };
        let later = |own: Duration, known: Moment| own > known.since(now) + INSTANT_TOLERANCE;
        let (steady_until, is_lower) = (known.rate.steady_until(), own.rate.share < Percent::ALL);
        is_below(own.rate.share, known.rate.share(), RATE_APART)
            || (is_lower && later(own.rate.steady, steady_until))
            || is_below(own.in_flight.share, known.in_flight, IN_FLIGHT_APART)
            || later(own.paused, known.paused_until)
            || own
                .in_flight
                .given_back
                .is_some_and(|own| known_in_flight.is_before(own, now.since(at)))
    }

    /// Returns whether other gateways do not know the last cut of this gateway yet.
    pub fn is_pending(&self) -> bool {
        self.shared_cuts
            .as_ref()
            .is_some_and(|shared| shared.is_pending)
    }

    /// Returns whether requests are in flight or answers are counted.
    pub fn is_busy(&self) -> bool {
        !self.traffic.is_idle()
    }

    /// Records that other gateways know the state of this one.
    pub fn note_published(&mut self) {
        if let Some(shared) = &mut self.shared_cuts {
            shared.is_pending = false;
        }
    }

    /// Adopts the state that other gateways had at `at`, where it is lower. Returns the cuts.
    ///
    /// Requests sent before the cut are not judged, as at the gateway that made it. The state has
    /// grown since then by the same rules, so all gateways compute the same.
    pub fn adopt(&mut self, learned: &Learned, at: Moment, now: Moment) -> Cuts {
        self.advance(now);
        let is_new = self
            .shared_cuts
            .as_ref()
            .is_some_and(|shared| learned.cut != 0 && learned.cut != shared.cut);
        let grown = Grown::of(learned, at, now);
        // Answers that came before this cut are no longer judged.
        let is_untroubled = if is_new {
            self.traffic.at_origin().1 == 0
        } else {
            self.traffic.is_untroubled()
        };
        let mut lowered = Cuts::default();
        if self.file_rate.is_some() && self.rate_share.adopt(&grown.rate, is_new, is_untroubled) {
            self.rate_share.raise_to(self.limits.floor);
            self.show_rate();
            lowered.trouble = true;
        }
        if self.limits.slow.is_some() {
            let before = self.in_flight_limit.now();
            let current = self.traffic.at_origin();
            let age = now.since(at.min(now));
            let in_flight = learned.in_flight.later(age, grown.in_flight);
            self.in_flight_limit
                .adopt(&in_flight, now, is_untroubled, current);
            let after = self.in_flight_limit.now();
            lowered.slow = after < before;
            self.changed |= after != before;
        }
        // The bound counts from the instant of the cut. Else each read of the state would restart
        // it.
        let began = at.min(now).before(learned.cut_ago);
        let until = grown.paused_until.min(began + self.limits.max_pause);
        let known = self.paused_until.max(self.ended_pause);
        let is_longer = until > known.unwrap_or(now).max(now) + Duration::from_millis(1);
        if is_longer {
            (self.paused_until, self.is_paused_elsewhere) = (Some(until), true);
            self.paused_key = None;
            (lowered.retry_after, self.changed) = (true, true);
        }
        if let (Some(shared), true) = (&mut self.shared_cuts, is_new) {
            let cut_at = at.before(learned.cut_ago).min(now);
            if !shared.is_pending {
                (shared.cut, shared.cut_at) = (learned.cut, cut_at);
                shared.known_at = Some(cut_at + KNOWN_AFTER).filter(|known| *known > now);
            }
            self.traffic.begin_generation(self.limits.slow, now);
            return lowered;
        }
        // Without a new cut, the other gateways have only grown less than this one.
        Cuts::default()
    }
}

impl Learned {
    /// State without any cut.
    const NOTHING: Self = Self {
        cut: 0,
        cut_ago: Duration::ZERO,
        paused: Duration::ZERO,
        rate: LearnedRate {
            share: Percent::ALL,
            steady: Duration::ZERO,
            steady_time: Duration::ZERO,
            trouble_at: None,
            answers: 0,
            bad: 0,
        },
        in_flight: LearnedInFlight::ALL,
    };
}

impl LearnedInFlight {
    /// Nothing is lowered.
    pub(super) const ALL: Self = Self {
        share: Percent::ALL,
        cut_ago: Duration::ZERO,
        answers: 0,
        bad: 0,
        given_back: None,
    };

    /// Returns this state after a time of `age`, with another share.
    fn later(self, age: Duration, share: Percent) -> Self {
        let given_back = self.given_back.map(|it| GivenBack {
            ago: it.ago + age,
            kept: it.kept.saturating_sub(age),
            ..it
        });
        Self {
            share,
            cut_ago: self.cut_ago + age,
            given_back,
            ..self
        }
    }

    /// Returns whether this state, which is `age` old, is older than `given_back`.
    fn is_before(&self, given_back: GivenBack, age: Duration) -> bool {
        let known = self.given_back;
        known.is_none_or(|known| known.ago + age > given_back.ago + INSTANT_TOLERANCE)
    }
}
