//! Exchange of back-off state between gateways, through the store.
//!
//! A *back-off* lowers the limits of an origin in trouble. [`Learned`] is its state. A *cut* is a
//! lowering of a limit. The *charge* of an answer is the cost of its request. This module decides
//! when to query the store, and when to send the state. The caller sends the queries.

use std::time::Duration;

use super::{Backoff, Cuts, Learned, Moment};
use crate::{Percent, to_float};

/// Interval of queries while requests are in flight. So all gateways know a cut after this time.
const QUERY_INTERVAL: Duration = Duration::from_millis(250);
/// Interval of queries while no request is in flight.
///
/// The next request must not be sent at the rate before a cut, and the numbers shown by all
/// gateways must be the same.
const QUERY_INTERVAL_IDLE: Duration = Duration::from_millis(800);
/// Lower bound of the time between two queries.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// Time constant, in seconds, of the decay of counted answers: older ones count less.
const DECAY_SECONDS: f64 = 3.0;
/// A gateway's share is computed only if all gateways together have at least so many answers.
const MIN_ANSWERS: f64 = 10.0;
/// Lower bound of a gateway's share: at most 1024 gateways share an origin.
const MIN_PART: f64 = 1.0 / 1024.0;
/// If the stored state is further in the future than this, the store's clock was set back.
///
/// The state is unusable then.
const SET_BACK: Duration = Duration::from_secs(1);
/// If two estimates of an instant differ by at least this, a clock was set.
const CLOCK_SET: Duration = Duration::from_millis(500);

/// Identifier of the stored state. Zeros: nothing is stored.
pub type Token = [u8; 12];

/// A query to the store, with the state to store.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedQuery {
    /// Identifier of the stored state that the gateway knows.
    ///
    /// If the store has another state, it does not store `update`.
    pub known: Token,
    /// The new identifier and the state to store. `None`: there is nothing to store.
    pub update: Option<(Token, Learned)>,
    /// Total charge of the origin's answers at this gateway since the last query.
    pub answers: u64,
}

/// Reply of the store to a [`LearnedQuery`].
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedReply {
    /// Identifier of the state that the store has after the query.
    pub token: Token,
    /// The stored state. `None`: the gateway knows it, or nothing is stored.
    pub learned: Option<Learned>,
    /// Time since it was stored. `None`: stored in the future, as the store's clock was set back.
    pub ago: Option<Duration>,
    /// Instant at which the script ran, on the store's clock.
    pub now: Moment,
    /// Number of answers of all gateways, with the decay applied.
    pub answers: f64,
    /// Instant since which answers are counted, on the store's clock.
    pub counted_since: Moment,
}

/// One gateway's part in the exchange of an origin's back-off state.
///
/// The store keeps the lowest state, the instant at which it was stored, and its identifier. A
/// gateway with a lower state replaces it, if it knows the state that it replaces. Only one query
/// is in flight at a time.
#[derive(Debug, Default)]
pub struct BackoffExchange {
    /// Identifier of this gateway, from which its tokens are made.
    author: u64,
    /// Number of states that this gateway has sent.
    count: u32,
    /// Stored state, as of the last reply.
    known: Option<StoredState>,
    /// Whether a query was sent that has no reply yet.
    is_under_way: bool,
    /// Instant of the last query.
    last_query: Option<Moment>,
    /// Whether this gateway's lower state must be sent at once: it is new, or the store refused it.
    is_urgent: bool,
    /// Total charge of answers that were not yet sent to the store.
    unsent_answers: u64,
    /// Total charge of the answers in the query in flight.
    sent_answers: u64,
    /// Answers of this gateway since the store began to count.
    counted: CountedAnswers,
}

/// State in the store, as of its last reply.
#[derive(Clone, Copy, Debug)]
struct StoredState {
    token: Token,
    /// `None`: the state is unusable, because the store's clock was set back.
    learned: Option<Learned>,
    /// Instant at which it was stored, on this gateway's clock.
    at: Moment,
}

/// Answers of this gateway, with the decay that the store applies to all answers.
#[derive(Clone, Copy, Debug, Default)]
struct CountedAnswers {
    /// Total charge.
    answers: f64,
    /// Instant of the last update, on the store's clock.
    at: Moment,
    /// Instant since which answers are counted, on the store's clock.
    since: Moment,
}

impl BackoffExchange {
    /// Creates the exchange of the gateway that `author` identifies.
    pub fn new(author: u64) -> Self {
        Self {
            author,
            ..Self::default()
        }
    }

    /// Counts the charge of an answer of the origin.
    pub fn count(&mut self, cost: u32) {
        self.unsent_answers = self.unsent_answers.saturating_add(cost.into());
    }

    /// Returns when the next query is due. `None`: a query is in flight.
    pub fn due(&self, backoff: &Backoff, now: Moment) -> Option<Moment> {
        if self.is_under_way {
            return None;
        }
        let interval = if backoff.is_pending() || self.is_urgent {
            MIN_INTERVAL
        } else if backoff.is_busy() {
            QUERY_INTERVAL
        } else {
            QUERY_INTERVAL_IDLE
        };
        Some(self.last_query.map_or(now, |last| last + interval))
    }

    /// Returns the next query, which the caller sends now.
    ///
    /// It contains this gateway's state if that is lower than the stored one.
    pub fn ask(&mut self, backoff: &Backoff, now: Moment) -> LearnedQuery {
        (self.is_under_way, self.last_query) = (true, Some(now));
        self.sent_answers = std::mem::take(&mut self.unsent_answers);
        let update = backoff.is_lower_than(self.learned(), now).then(|| {
            self.count = self.count.wrapping_add(1).max(1);
            // The first 8 bytes are the author, the last 4 the number of the state.
            let mut token = Token::default();
            token[..8].copy_from_slice(&self.author.to_le_bytes());
            token[8..].copy_from_slice(&self.count.to_le_bytes());
            (token, backoff.learned(now))
        });
        LearnedQuery {
            known: self.known.map_or(Token::default(), |known| known.token),
            update,
            answers: self.sent_answers,
        }
    }

    /// Applies the store's reply: adopts its state where it is lower. Returns the adopted cuts.
    ///
    /// `asked` is the query.
    pub fn answered(
        &mut self,
        backoff: &mut Backoff,
        asked: &LearnedQuery,
        reply: &LearnedReply,
        now: Moment,
    ) -> Cuts {
        (self.is_under_way, self.is_urgent) = (false, false);
        self.count_part(backoff, reply);
        // This gateway's own state, if the store has taken it.
        let own = asked.update.filter(|(token, _)| *token == reply.token);
        let own = own.map(|(_, learned)| learned);
        let known = self.known.filter(|known| known.token == reply.token);
        let learned = own
            .or(reply.learned)
            .or(known.and_then(|known| known.learned));
        let at = reply.ago.map_or(now, |ago| now.before(ago));
        // Each reply estimates the same instant, later by its delay: the earliest is the best one.
        let is_same = |known: &StoredState| known.at.since(at).max(at.since(known.at)) < CLOCK_SET;
        let at = known.filter(is_same).map_or(at, |known| known.at.min(at));
        self.known = (reply.token != Token::default()).then_some(StoredState {
            token: reply.token,
            learned: learned.filter(|_| reply.ago.is_some()),
            at,
        });
        let cuts = match self.learned() {
            Some((learned, at)) if own.is_none() => backoff.adopt(learned, at, now),
            _ => Cuts::default(),
        };
        if backoff.is_lower_than(self.learned(), now) {
            // Another gateway has stored its state first. Retry at once: frequent writers must not
            // block this one.
            let is_refused = asked.update.is_some() && own.is_none();
            self.is_urgent = backoff.is_pending() || self.known.is_none() || is_refused;
        } else {
            backoff.note_published();
        }
        cuts
    }

    /// Records that a query failed.
    pub fn failed(&mut self) {
        self.is_under_way = false;
        self.unsent_answers = self.unsent_answers.saturating_add(self.sent_answers);
    }

    /// Returns the time since the instant `stored`, for [`LearnedReply::ago`].
    pub fn ago(stored: Moment, now: Moment) -> Option<Duration> {
        (stored <= now + SET_BACK).then(|| now.since(stored))
    }

    /// Returns the stored state, with the instant at which it was stored.
    fn learned(&self) -> Option<(&Learned, Moment)> {
        let known = self.known.as_ref()?;
        Some((known.learned.as_ref()?, known.at))
    }

    /// Computes the share of the origin's answers that arrive at this gateway, from the counts.
    fn count_part(&mut self, backoff: &mut Backoff, reply: &LearnedReply) {
        let counted = &mut self.counted;
        if counted.since != reply.counted_since {
            // The store has lost its count, or has just begun to count.
            *counted = CountedAnswers {
                answers: 0.0,
                at: reply.now,
                since: reply.counted_since,
            };
        }
        let passed = reply.now.since(counted.at).as_secs_f64();
        counted.answers =
            counted.answers * (-passed / DECAY_SECONDS).exp() + to_float(self.sent_answers);
        counted.at = reply.now;
        if reply.answers < MIN_ANSWERS {
            return;
        }
        let part = (counted.answers / reply.answers).clamp(MIN_PART, 1.0);
        backoff.set_part(Percent::of_share(part));
    }
}
