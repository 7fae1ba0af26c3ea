//! Back-off state that gateways with a common origin send each other.
//!
//! A *back-off* lowers the limits of an origin in trouble: the rate, the number of requests in
//! flight, and pauses. A *cut* is a lowering. After it, a limit *grows* back, a step at each *tick*
//! (ten a second), which all gateways compute alike. [`exchange`](super::exchange) decides when the
//! state is sent. This module compares and merges it.

use std::time::Duration;

use super::in_flight_limit::InFlightLimit;
use super::rate_share::RateShare;
use super::tick::{INSTANT_TOLERANCE, tick_after, ticks_until};
use super::{Backoff, Cuts, Moment};
use crate::Percent;

/// Time from a cut until all gateways know it. Requests sent before then are not judged.
const KNOWN_AFTER: Duration = Duration::from_millis(300);
/// Tolerance of the rate's share, in millionths: gateways grow alike, but each at its own ticks.
const RATE_TOLERANCE: u32 = 10_000;
/// Tolerance of the share of requests in flight, in millionths.
const IN_FLIGHT_TOLERANCE: u32 = 30_000;
/// Tolerance of the end of a pause.
const PAUSE_TOLERANCE: Duration = Duration::from_millis(1);

/// Back-off state of an origin at one instant.
///
/// Durations count from that instant, backward (`ago`) or forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Learned {
    /// Identifier of the last cut, which tells a new cut from a known one. 0: there was none.
    pub cut: u64,
    /// Time since the last cut.
    #[cfg_attr(feature = "serde", serde(with = "crate::whole_numbers::nanos"))]
    pub cut_ago: Duration,
    /// Rest of the pause.
    #[cfg_attr(feature = "serde", serde(with = "crate::whole_numbers::nanos"))]
    pub paused: Duration,
    /// State of the rate.
    pub rate: LearnedRate,
    /// State of the number of requests in flight.
    pub in_flight: LearnedInFlight,
}

/// Back-off state of the rate. After some cuts the rate is *steady*: it does not grow for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LearnedRate {
    /// Share of the configured rate that is in force.
    pub share: Percent,
    /// Rest of the steady time: then the rate may grow again.
    #[cfg_attr(feature = "serde", serde(with = "crate::whole_numbers::nanos"))]
    pub steady: Duration,
    /// Whole steady time of the last cut. That of the next cut may be twice as long.
    #[cfg_attr(feature = "serde", serde(with = "crate::whole_numbers::nanos"))]
    pub steady_time: Duration,
    /// Share of the rate that the origin answered without trouble when it was last in trouble.
    pub trouble_at: Option<Percent>,
    /// Number of answers in the window of the last cut.
    pub answers: u64,
    /// Number of those answers that were trouble.
    pub bad: u64,
}

/// Back-off state of the number of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LearnedInFlight {
    /// Share of the configured number that is in force.
    pub share: Percent,
    /// Time since the last cut.
    #[cfg_attr(feature = "serde", serde(with = "crate::whole_numbers::nanos"))]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GivenBack {
    /// Time since they were given back.
    #[cfg_attr(feature = "serde", serde(with = "crate::whole_numbers::nanos"))]
    pub ago: Duration,
    /// Time until the number may be cut again.
    #[cfg_attr(feature = "serde", serde(with = "crate::whole_numbers::nanos"))]
    pub kept: Duration,
    /// Mean duration of answers with fewer requests in flight.
    #[cfg_attr(feature = "serde", serde(with = "crate::whole_numbers::nanos"))]
    pub mean: Duration,
}

/// Part of a back-off that is shared with other gateways.
#[derive(Debug)]
pub(super) struct SharedCuts {
    /// Identifier of this gateway, from which the identifiers of its cuts are made.
    author: u64,
    /// Number of cuts that this gateway made.
    count: u64,
    /// Identifier of the last known cut.
    cut: u64,
    /// Instant of the last known cut.
    cut_at: Moment,
    /// Whether this gateway made the cut and other gateways do not know it yet.
    is_pending: bool,
    /// Instant from which all gateways know the last cut.
    known_at: Option<Moment>,
    /// Share of the origin's answers that arrive at this gateway, not at others.
    pub part: Percent,
}

/// State of other gateways at a later instant: with the growth since they sent it.
struct Grown {
    rate: RateShare,
    in_flight: LearnedInFlight,
    paused_until: Moment,
}

impl Grown {
    /// Applies the growth between `at` and `now`, by the rules that all gateways follow.
    fn new(learned: &Learned, at: Moment, now: Moment) -> Self {
        let at = at.min(now);
        let mut rate = RateShare::learned_at(&learned.rate, at);
        let mut in_flight = learned.in_flight.aged(now.since(at));
        let paused_until = at + learned.paused;
        let first = tick_after(at.max(paused_until.min(now)));
        for tick in ticks_until(first, now) {
            rate.grow(tick);
            in_flight.share = InFlightLimit::grown(in_flight.share);
        }
        Self {
            rate,
            in_flight,
            paused_until,
        }
    }

    /// Returns a state in which nothing is lowered.
    fn nothing_lowered(now: Moment) -> Self {
        Self {
            rate: RateShare::new(now),
            in_flight: LearnedInFlight::ALL,
            paused_until: now,
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
    pub fn take_known(&mut self, tick: Moment) -> bool {
        self.known_at.take_if(|at| *at <= tick).is_some()
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
        let shared = self.shared_cuts.as_ref();
        let (cut, cut_at) = shared.map_or((0, now), |shared| (shared.cut, shared.cut_at));
        let paused = self.paused_for_all().map(|until| until.since(now));
        Learned {
            cut,
            cut_ago: now.since(cut_at),
            paused: paused.unwrap_or_default(),
            rate: self.rate_share.learned(now),
            in_flight: self.in_flight_limit.learned(now),
        }
    }

    /// Returns whether this gateway has lower limits than other gateways, so that it must send
    /// them.
    ///
    /// `known` is the state of the other gateways, and its instant. `None`: they have no state.
    pub fn is_lower_than(&self, known: Option<(&Learned, Moment)>, now: Moment) -> bool {
        let known = known.map_or_else(
            || Grown::nothing_lowered(now),
            |(learned, at)| Grown::new(learned, at, now),
        );
        let own = self.learned(now);
        let is_pending = self.is_pending();
        let is_lower = |own: Percent, known: Percent, tolerance: u32| {
            // A cut of this gateway counts, however small it is.
            let tolerance = if is_pending { 0 } else { tolerance };
            own.millionths() + tolerance < known.millionths()
        };
        let ends_later = |own: Duration, known: Moment| own > known.since(now) + INSTANT_TOLERANCE;
        let is_rate_lowered = own.rate.share < Percent::ALL;
        is_lower(own.rate.share, known.rate.share(), RATE_TOLERANCE)
            || (is_rate_lowered && ends_later(own.rate.steady, known.rate.steady_until()))
            || is_lower(
                own.in_flight.share,
                known.in_flight.share,
                IN_FLIGHT_TOLERANCE,
            )
            || ends_later(own.paused, known.paused_until)
            || known.in_flight.lacks(own.in_flight.given_back)
    }

    /// Returns whether the last cut is of this gateway, and other gateways do not know it yet.
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

    /// Adopts the state that other gateways had at `at`, where it is lower. Returns the new cuts.
    ///
    /// Answers to requests sent before a new cut are not judged, as at the gateway that made it.
    /// The state has grown since `at` by the same rules, so all gateways compute the same.
    pub fn adopt(&mut self, learned: &Learned, at: Moment, now: Moment) -> Cuts {
        self.advance(now);
        let known_cut = self.shared_cuts.as_ref().map(|shared| shared.cut);
        let is_new = learned.cut != 0 && known_cut.is_some_and(|known| known != learned.cut);
        let grown = Grown::new(learned, at, now);
        // A new cut ends the generation: the answers of the window are not judged.
        let is_untroubled = if is_new {
            self.traffic.unanswered == 0
        } else {
            self.traffic.is_untroubled()
        };
        let mut cuts = Cuts::default();
        if self.configured_rate.is_some()
            && self.rate_share.adopt(&grown.rate, is_new, is_untroubled)
        {
            self.rate_share.raise_to(self.limits.floor);
            (cuts.trouble, self.changed) = (true, true);
        }
        if self.limits.slow.is_some() {
            let before = self.in_flight_limit.effective();
            let current = (self.traffic.generation, self.traffic.unanswered);
            self.in_flight_limit
                .adopt(&grown.in_flight, now, is_untroubled, current);
            let after = self.in_flight_limit.effective();
            cuts.slow = after < before;
            self.changed |= after != before;
        }
        let cut_at = at.min(now).before(learned.cut_ago);
        // `max_pause` counts from the cut. Otherwise each read of the state would restart it.
        let paused_until = grown.paused_until.min(cut_at + self.limits.max_pause);
        let known_pause = self.paused_until.max(self.ended_pause).unwrap_or(now);
        if paused_until > known_pause.max(now) + PAUSE_TOLERANCE {
            (self.paused_until, self.is_paused_elsewhere) = (Some(paused_until), true);
            self.paused_key = None;
            (cuts.retry_after, self.changed) = (true, true);
        }
        let Some(shared) = self.shared_cuts.as_mut().filter(|_| is_new) else {
            // Without a new cut, the other gateways have only grown less than this one.
            return Cuts::default();
        };
        if !shared.is_pending {
            (shared.cut, shared.cut_at) = (learned.cut, cut_at);
            shared.known_at = Some(cut_at + KNOWN_AFTER).filter(|known| *known > now);
        }
        self.traffic.begin_generation(self.limits.slow, now);
        cuts
    }
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

    /// Returns the same state as it is seen `span` later, without growth.
    fn aged(self, span: Duration) -> Self {
        let given_back = self.given_back.map(|given_back| GivenBack {
            ago: given_back.ago + span,
            kept: given_back.kept.saturating_sub(span),
            ..given_back
        });
        Self {
            cut_ago: self.cut_ago + span,
            given_back,
            ..self
        }
    }

    /// Returns whether permits were given back (`other`) later than this state knows.
    fn lacks(&self, other: Option<GivenBack>) -> bool {
        let is_later = |other: GivenBack, own: GivenBack| own.ago > other.ago + INSTANT_TOLERANCE;
        other.is_some_and(|other| self.given_back.is_none_or(|own| is_later(other, own)))
    }
}
