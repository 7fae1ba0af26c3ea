//! When a gateway tells the others what it has learned of an origin, and asks what they have.

use std::time::Duration;

use super::{Backoff, Cuts, Learned, Moment};
use crate::{Percent, to_float};

/// Time between two questions while requests run: a cut at one gateway is known to all so soon.
const ASKS: Duration = Duration::from_millis(250);
/// The same while nothing runs: the next request must not leave as before a cut, and people must not
/// read other numbers here than elsewhere.
const ASKS_IDLE: Duration = Duration::from_millis(800);
/// Least time between two questions.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// How long it takes until answers count for little when a gateway's part is computed.
const REMEMBERED: f64 = 3.0;
/// From so many answers of all on, a gateway's part of them is known.
const ENOUGH: f64 = 10.0;
/// No part is smaller: 1024 gateways share an origin at most.
const MIN_PART: f64 = 1.0 / 1024.0;
/// A store's clock that is so far back was set back: what it has is no more of use.
const SET_BACK: Duration = Duration::from_secs(1);
/// Two estimates of a moment that are further apart mean that a clock was set.
const CLOCK_SET: Duration = Duration::from_millis(500);

/// Names what the store has. Zeros: nothing.
pub type Token = [u8; 12];

/// A question to the store, and what it is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// What the gateway knows: with another one, nothing is stored.
    pub known: Token,
    /// What is stored, and its name.
    pub tell: Option<(Token, Learned)>,
    /// The cost of the answers of the origin here since the last question.
    pub answers: u64,
}

/// The store's answer to an [`Ask`].
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedReply {
    /// What the store has by now.
    pub token: Token,
    /// Its content; `None`: as known, or nothing.
    pub learned: Option<Learned>,
    /// How long ago it was stored; `None`: later than now, as the store's clock was set back.
    pub ago: Option<Duration>,
    /// When the script ran, on the store's clock.
    pub now: Moment,
    /// The answers of all gateways, as they are remembered.
    pub answers: f64,
    /// Since when they are counted, on the store's clock.
    pub counted_since: Moment,
}

/// A gateway's way to what all have learned of an origin.
///
/// The store is a meeting point: it keeps what is lowest, when that was stored, and a name for it.
/// Whoever knows something lower replaces it, if it knows what it replaces. One question is under
/// way at a time.
#[derive(Debug, Default)]
pub struct BackoffExchange {
    author: u64,
    count: u32,
    known: Option<Known>,
    is_under_way: bool,
    last: Option<Moment>,
    /// Whether others must know more at once.
    is_urgent: bool,
    /// Answers that the store was not told of, and those that it is being told of.
    answers: u64,
    sent: u64,
    counted: Counted,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    token: Token,
    /// `None`: of no use.
    learned: Option<Learned>,
    /// When it was stored, on the gateway's clock.
    at: Moment,
}

/// The answers here, as the store remembers those of all.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    answers: f64,
    at: Moment,
    since: Moment,
}

impl BackoffExchange {
    /// For a gateway that is called so, among those that share the origin.
    pub fn new(author: u64) -> Self {
        Self {
            author,
            ..Self::default()
        }
    }

    /// Counts the cost of an answer of the origin.
    pub fn count(&mut self, cost: u32) {
        self.answers = self.answers.saturating_add(cost.into());
    }

    /// When the next question is due; `None`: not before the one that is under way is answered.
    pub fn due(&self, backoff: &Backoff, now: Moment) -> Option<Moment> {
        if self.is_under_way {
            return None;
        }
        let after = |span| Some(self.last.map_or(now, |last| last + span));
        if backoff.is_pending() || self.is_urgent {
            return after(MIN_INTERVAL);
        }
        after(if backoff.is_busy() { ASKS } else { ASKS_IDLE })
    }

    /// The next question, which is sent now.
    pub fn ask(&mut self, backoff: &Backoff, now: Moment) -> Ask {
        (self.is_under_way, self.last) = (true, Some(now));
        self.sent = std::mem::take(&mut self.answers);
        let tell = backoff.exceeds(self.learned(), now).then(|| {
            self.count = self.count.wrapping_add(1).max(1);
            let mut token = Token::default();
            token[..8].copy_from_slice(&self.author.to_le_bytes());
            token[8..].copy_from_slice(&self.count.to_le_bytes());
            (token, backoff.learned(now))
        });
        Ask {
            known: self.known.map_or(Token::default(), |known| known.token),
            tell,
            answers: self.sent,
        }
    }

    /// The store has answered: what it has lower counts here, too. Returns what that cut.
    pub fn answered(
        &mut self,
        backoff: &mut Backoff,
        asked: &Ask,
        told: &LearnedReply,
        now: Moment,
    ) -> Cuts {
        (self.is_under_way, self.is_urgent) = (false, false);
        self.count_part(backoff, told);
        let own = asked.tell.filter(|(token, _)| *token == told.token);
        let before = self.known.filter(|known| known.token == told.token);
        let learned = own
            .map(|(_, learned)| learned)
            .or(told.learned)
            .or(before.and_then(|known| known.learned));
        let at = told.ago.map_or(now, |ago| now.before(ago));
        // The shortest way back tells best.
        let is_same = |known: &Known| known.at.since(at).max(at.since(known.at)) < CLOCK_SET;
        let at = before.filter(is_same).map_or(at, |known| known.at.min(at));
        self.known = (told.token != Token::default()).then_some(Known {
            token: told.token,
            learned: learned.filter(|_| told.ago.is_some()),
            at,
        });
        let mut cuts = Cuts::default();
        if let (Some((learned, at)), None) = (self.learned(), own) {
            let learned = *learned;
            cuts = backoff.adopt(&learned, at, now);
        }
        if backoff.exceeds(self.learned(), now) {
            // Another one told something in between: those who do so often must not keep it from the others.
            let is_refused = asked.tell.is_some() && own.is_none();
            self.is_urgent = backoff.is_pending() || self.known.is_none() || is_refused;
        } else {
            backoff.note_told();
        }
        cuts
    }

    /// The store has not answered.
    pub fn failed(&mut self) {
        self.is_under_way = false;
        self.answers = self.answers.saturating_add(self.sent);
    }

    /// How long ago the store's time is, read as a part of [`LearnedReply`].
    pub fn ago(stored: Moment, now: Moment) -> Option<Duration> {
        (stored <= now + SET_BACK).then(|| now.since(stored))
    }

    fn learned(&self) -> Option<(&Learned, Moment)> {
        let known = self.known.as_ref()?;
        Some((known.learned.as_ref()?, known.at))
    }

    /// Computes which part of the origin's answers come by this gateway.
    fn count_part(&mut self, backoff: &mut Backoff, told: &LearnedReply) {
        let counted = &mut self.counted;
        if counted.since != told.counted_since {
            // The store has forgotten, or it has just begun.
            *counted = Counted {
                answers: 0.0,
                at: told.now,
                since: told.counted_since,
            };
        }
        let passed = told.now.since(counted.at).as_secs_f64();
        counted.answers = counted.answers * (-passed / REMEMBERED).exp() + to_float(self.sent);
        counted.at = told.now;
        if told.answers < ENOUGH {
            return;
        }
        let part = (counted.answers / told.answers).clamp(MIN_PART, 1.0);
        backoff.set_part(Percent::of(part));
    }
}
