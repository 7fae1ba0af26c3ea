//! What gateways that share an origin tell each other of its back-off.

use std::time::Duration;

use super::in_flight_limit::InFlightLimit;
use super::rate_share::RateShare;
use super::tick::{TICK, tick_after};
use super::{Backoff, Cuts, MAX_TICKS, Moment};
use crate::Percent;

/// How long a cut takes until all gateways know it: what is sent before is not judged.
const KNOWN_AFTER: Duration = Duration::from_millis(300);
/// A moment that is later by less is the same one, estimated twice.
const SAME: Duration = Duration::from_millis(300);
/// Gateways that grow alike may be so far apart, as each has ticks of its own.
const RATE_APART: u64 = 10_000;
const PLACES_APART: u64 = 30_000;

/// What is learned of an origin, at one moment.
///
/// Spans count from that moment, back or on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learned {
    /// Which cut was the last one; 0: none.
    pub cut: u64,
    /// How long ago it was.
    pub cut_ago: Duration,
    /// How much longer nothing leaves.
    pub paused: Duration,
    /// Of the rate.
    pub rate: LearnedRate,
    /// Of the number in flight.
    pub places: LearnedPlaces,
}

/// What is learned of the rate that an origin can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedRate {
    /// The part of the file's rate that is in force.
    pub share: Percent,
    /// How much longer it does not grow.
    pub steady: Duration,
    /// How long it did not grow after the last cut: the next time, perhaps, twice as long.
    pub steady_time: Duration,
    /// The part that the origin answered well when it was last in trouble.
    pub trouble_at: Option<Percent>,
    /// Answers in the window of the last cut.
    pub answers: u64,
    /// Those of them that were trouble.
    pub bad: u64,
}

/// What is learned of the number in flight that an origin can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedPlaces {
    /// The part of the file's number that is in force.
    pub share: Percent,
    /// How long ago it was cut.
    pub cut_ago: Duration,
    /// Answers in the window of the last cut.
    pub answers: u64,
    /// Those of them that were slow.
    pub bad: u64,
    /// Fewer at once did not make the origin faster.
    pub given_back: Option<GivenBack>,
}

/// Places that were given back, because fewer at once did not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenBack {
    /// How long ago.
    pub ago: Duration,
    /// How much longer the number is not cut.
    pub kept: Duration,
    /// How long answers took with fewer at once.
    pub mean: Duration,
}

/// A back-off's part in what all gateways know.
#[derive(Debug)]
pub(super) struct SharedCuts {
    /// Of which the names of its cuts are made.
    author: u64,
    count: u64,
    /// The last cut that it knows, and when it was.
    cut: u64,
    cut_at: Moment,
    /// Whether this cut is its own, and the others do not know it yet.
    is_pending: bool,
    /// When all know the last cut.
    known_at: Option<Moment>,
    /// Which part of the origin's answers come by this gateway.
    part: Percent,
}

/// What was learned, at a later moment: it has grown meanwhile.
struct Grown {
    rate: RateShare,
    places: Percent,
    paused_until: Moment,
}

impl Grown {
    /// What was learned at `at`, by the growth that all have, at `now`.
    fn of(learned: &Learned, at: Moment, now: Moment) -> Self {
        let at = at.min(now);
        let mut rate = RateShare::learned_at(&learned.rate, at);
        let mut places = learned.places.share;
        let paused_until = at + learned.paused;
        let skipped_to = tick_after(now.before(TICK * MAX_TICKS));
        let begins = tick_after(at.max(paused_until.min(now))).max(skipped_to);
        let mut tick = begins;
        while tick <= now {
            rate.grow(tick);
            places = InFlightLimit::grown(places);
            tick = tick + TICK;
        }
        Self {
            rate,
            places,
            paused_until,
        }
    }
}

impl SharedCuts {
    pub fn note_cut(&mut self, now: Moment) {
        self.count += 1;
        // Zero is no cut.
        self.cut = self.author.wrapping_add(self.count).max(1);
        (self.cut_at, self.is_pending) = (now, true);
        self.known_at = Some(now + KNOWN_AFTER);
    }

    /// Whether all know the last cut from this tick on.
    pub fn is_known_by(&mut self, tick: Moment) -> bool {
        self.known_at.take_if(|at| *at <= tick).is_some()
    }

    pub fn part(&self) -> Percent {
        self.part
    }
}

impl Backoff {
    /// Shares what it learns with other gateways from now on. `author` tells this one from others;
    /// `None`: it does not share it any more.
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

    /// Sets which part of the origin's answers come by this gateway: what all get is that much more
    /// than what is counted here.
    pub fn set_part(&mut self, part: Percent) {
        if let Some(told) = &mut self.shared_cuts {
            told.part = part;
        }
    }

    /// What others have to know at `now`.
    pub fn learned(&self, now: Moment) -> Learned {
        let (cut, cut_at) = self
            .shared_cuts
            .as_ref()
            .map_or((0, now), |told| (told.cut, told.cut_at));
        let paused = self.paused_for_all().map(|until| until.since(now));
        Learned {
            cut,
            cut_ago: now.since(cut_at),
            paused: paused.unwrap_or_default(),
            rate: self.rate_share.learned(now),
            places: self.in_flight_limit.learned(now),
        }
    }

    /// Whether others have to know more than `known`, which was learned at `at`. `None`: they know
    /// nothing.
    pub fn exceeds(&self, known: Option<(&Learned, Moment)>, now: Moment) -> bool {
        let nothing = Learned::NOTHING;
        let (known, at) = known.unwrap_or((&nothing, now));
        let known_places = known.places;
        let known = Grown::of(known, at, now);
        let is_pending = self.is_pending();
        let apart = |most: u64| if is_pending { 0 } else { most };
        let own = self.learned(now);
        let is_below =
            |own: Percent, known: Percent, most| millionths(own) + apart(most) < millionths(known);
        let later = |own: Duration, known: Moment| own > known.since(now) + SAME;
        let (steady_until, is_lower) = (known.rate.steady_until(), own.rate.share < Percent::ALL);
        is_below(own.rate.share, known.rate.share(), RATE_APART)
            || (is_lower && later(own.rate.steady, steady_until))
            || is_below(own.places.share, known.places, PLACES_APART)
            || later(own.paused, known.paused_until)
            || own
                .places
                .given_back
                .is_some_and(|own| known_places.is_before(own, now.since(at)))
    }

    /// Whether others do not know yet of a cut that was made here.
    pub fn is_pending(&self) -> bool {
        self.shared_cuts
            .as_ref()
            .is_some_and(|told| told.is_pending)
    }

    /// Whether requests run, or answers are counted.
    pub fn is_busy(&self) -> bool {
        !self.traffic.is_idle()
    }

    /// Others know what was learned here.
    pub fn note_told(&mut self) {
        if let Some(told) = &mut self.shared_cuts {
            told.is_pending = false;
        }
    }

    /// Takes over what gateways have learned at `at`, where it is lower. Returns what that cut.
    ///
    /// Requests that were sent before a cut are not judged, as at the gateway that made it. What
    /// was learned has grown since by the rules of one gateway, so all compute the same.
    pub fn adopt(&mut self, learned: &Learned, at: Moment, now: Moment) -> Cuts {
        self.advance(now);
        let is_new = self
            .shared_cuts
            .as_ref()
            .is_some_and(|told| learned.cut != 0 && learned.cut != told.cut);
        let grown = Grown::of(learned, at, now);
        // Answers that came before this cut are not judged any more.
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
            let places = learned.places.later(age, grown.places);
            self.in_flight_limit
                .adopt(&places, now, is_untroubled, current);
            let after = self.in_flight_limit.now();
            lowered.slow = after < before;
            self.changed |= after != before;
        }
        // Counted from when all were told, so that it does not begin anew each time that this is read.
        let began = at.min(now).before(learned.cut_ago);
        let until = grown.paused_until.min(began + self.limits.max_pause);
        let known = self.paused_until.max(self.ended_pause);
        let is_longer = until > known.unwrap_or(now).max(now) + Duration::from_millis(1);
        if is_longer {
            (self.paused_until, self.is_paused_elsewhere) = (Some(until), true);
            self.paused_key = None;
            (lowered.retry_after, self.changed) = (true, true);
        }
        if let (Some(told), true) = (&mut self.shared_cuts, is_new) {
            let cut_at = at.before(learned.cut_ago).min(now);
            if !told.is_pending {
                (told.cut, told.cut_at) = (learned.cut, cut_at);
                told.known_at = Some(cut_at + KNOWN_AFTER).filter(|known| *known > now);
            }
            self.traffic.begin_generation(self.limits.slow, now);
            return lowered;
        }
        // It only has not grown so far.
        Cuts::default()
    }
}

impl Learned {
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
        places: LearnedPlaces::ALL,
    };
}

impl LearnedPlaces {
    /// All of them.
    pub(super) const ALL: Self = Self {
        share: Percent::ALL,
        cut_ago: Duration::ZERO,
        answers: 0,
        bad: 0,
        given_back: None,
    };

    /// The same after a span of time, with another share.
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

    /// Whether this was learned before places were given back. `age`: how long ago it was.
    fn is_before(&self, given_back: GivenBack, age: Duration) -> bool {
        let known = self.given_back;
        known.is_none_or(|known| known.ago + age > given_back.ago + SAME)
    }
}

fn millionths(share: Percent) -> u64 {
    share.millionths().into()
}
