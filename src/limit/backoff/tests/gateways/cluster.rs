//! A simulated cluster: gateways on virtual time that share an origin, with a store between them.
//!
//! All times are in milliseconds since the start. *Trouble* is an answer that counts as a failure.
//! A *cut* lowers the rate or the permits (the number of requests in flight).

use super::super::*;
use crate::{BackoffExchange, Learned, LearnedQuery, LearnedReply, Token};

/// Simulated store. A write succeeds if the writer knows what is stored. Its times are true times.
#[derive(Clone, Default)]
pub struct Store {
    /// Identifier and state, and the time at which it was stored.
    pub stored: Option<(Token, Learned, u64)>,
    /// Number of queries.
    pub asked: u64,
    /// Number of answers of all gateways, with decay, as of `counted`.
    pub answers: f64,
    pub counted: u64,
    /// Time since which answers are counted.
    pub since: u64,
    /// Offset of the store's clock, in milliseconds. Positive: ahead.
    pub ahead: i64,
}

impl Store {
    /// Serves a query, as the script in the real store does.
    pub fn serve(&mut self, ask: &LearnedQuery, millis: u64) -> LearnedReply {
        let now = millis.saturating_add_signed(self.ahead);
        self.asked += 1;
        #[allow(clippy::cast_precision_loss)]
        let passed = now.saturating_sub(self.counted) as f64 / 3000.0;
        #[allow(clippy::cast_precision_loss)]
        let added = ask.answers as f64;
        self.answers = self.answers * (-passed).exp() + added;
        self.counted = now;
        if self.since == 0 {
            self.since = now;
        }
        let there = self.stored.map_or(Token::default(), |(token, ..)| token);
        if let (Some((token, learned)), true) = (ask.update, ask.known == there) {
            self.stored = Some((token, learned, now));
        }
        let there = self.stored.map_or(Token::default(), |(token, ..)| token);
        let is_known = there == ask.known || ask.update.is_some_and(|(token, _)| token == there);
        let stored = self.stored.map_or(now, |(.., at)| at);
        LearnedReply {
            token: there,
            learned: self.stored.filter(|_| !is_known).map(|(_, it, _)| it),
            ago: BackoffExchange::ago(at(stored), at(now)),
            now: at(now),
            answers: self.answers,
            counted_since: at(self.since),
        }
    }
}

/// A gateway, and the traffic to the origin through it.
pub struct Gateway {
    pub backoff: Backoff,
    pub exchange: BackoffExchange,
    /// The query in flight, and the time at which it arrives at the store.
    pub asked: Option<(LearnedQuery, u64)>,
    /// The query with its reply (`None`: it fails), and the time at which the reply arrives.
    pub reply: Option<(LearnedQuery, Option<LearnedReply>, u64)>,
    /// Requests at the origin, and the time of their answers.
    pub sent: Vec<(Sent, u64)>,
    /// Whether the store is unreachable.
    pub is_cut_off: bool,
    /// Percentage of answers that are trouble.
    pub trouble: u64,
    /// Interval of requests, in milliseconds. 0: no requests.
    pub every: u64,
    /// Duration of an answer, in milliseconds.
    pub takes: u64,
    /// Number of cuts of the rate that were adopted from other gateways.
    pub adopted: u64,
    /// Number of cuts of the rate that this gateway made.
    pub cuts: u64,
}

impl Gateway {
    pub fn start(author: u64, limits: BackoffLimits, millis: u64) -> Self {
        let mut backoff = Backoff::new(limits, Some(rate("200r/s")), Some(40), at(millis));
        backoff.share_as(Some(author));
        Self {
            backoff,
            exchange: BackoffExchange::new(author),
            asked: None,
            reply: None,
            sent: Vec::new(),
            is_cut_off: false,
            trouble: 0,
            every: 20,
            takes: 10,
            adopted: 0,
            cuts: 0,
        }
    }

    /// Returns the effective share of the rate, rounded to a thousandth.
    pub fn share(&self) -> f64 {
        let share = self.backoff.rate().unwrap().per_second() / 200.0;
        (share * 1000.0).round() / 1000.0
    }

    pub fn permits(&self) -> usize {
        self.backoff.max_in_flight().unwrap()
    }

    pub fn is_paused(&self) -> bool {
        self.backoff.paused_until().is_some()
    }
}

/// Several gateways and a store. A message takes a few milliseconds.
pub struct Cluster {
    pub gateways: Vec<Gateway>,
    pub store: Store,
    /// Time since the start.
    pub millis: u64,
    /// Retry-After of answers that are trouble.
    pub retry_after: Option<Duration>,
    /// Number of answers so far.
    pub answered: u64,
}

impl Cluster {
    pub fn of(count: u64) -> Self {
        Self::with(count, limits())
    }

    pub fn with(count: u64, limits: BackoffLimits) -> Self {
        let start = |nth| Gateway::start((nth + 1) << 32, limits, 0);
        Self {
            gateways: (0..count).map(start).collect(),
            store: Store::default(),
            millis: 0,
            retry_after: None,
            answered: 0,
        }
    }

    pub fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.millis += 1;
            for nth in 0..self.gateways.len() {
                self.step(nth);
            }
        }
    }

    /// Runs until `is_done`, within 20 s after the start.
    pub fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) {
        while !is_done(self) {
            self.run(1);
            assert!(self.millis < 20_000, "it never happens");
        }
    }

    /// Sets the percentage of trouble at all gateways.
    pub fn set_trouble(&mut self, percent: u64) {
        for gateway in &mut self.gateways {
            gateway.trouble = percent;
        }
    }

    /// Lets a millisecond pass at one gateway.
    pub fn step(&mut self, nth: usize) {
        /// Time of a message.
        const WAY: u64 = 2;
        let (now, gateway) = (at(self.millis), &mut self.gateways[nth]);
        if gateway.every > 0 && (self.millis + nth as u64 * 3).is_multiple_of(gateway.every) {
            let in_flight = gateway.sent.len() + 1;
            let sent = gateway.backoff.sent(in_flight, now);
            gateway.sent.push((sent, self.millis + gateway.takes));
        }
        let is_answered = |sent: &mut (Sent, u64)| sent.1 <= self.millis;
        for (sent, _) in gateway.sent.extract_if(.., is_answered) {
            self.answered += 1;
            // Of 100 consecutive answers, as many as the percentage.
            let trouble = self.answered * 37 % 100 < gateway.trouble;
            let answer = Answer {
                trouble,
                retry_after: self.retry_after.filter(|_| trouble),
                cost: 1,
                time: OriginTime::NEW,
            };
            gateway.exchange.count(1);
            gateway.backoff.answered(sent, answer, now);
        }
        if let Some(cuts) = gateway.backoff.update(now) {
            gateway.cuts += u64::from(cuts.trouble);
        }
        let due = gateway.exchange.due(&gateway.backoff, now);
        if due.is_some_and(|due| due <= now) {
            let ask = gateway.exchange.ask(&gateway.backoff, now);
            gateway.asked = Some((ask, self.millis + WAY));
        }
        if let Some((ask, _)) = gateway.asked.take_if(|(_, at)| *at <= self.millis) {
            let reply = (!gateway.is_cut_off).then(|| self.store.serve(&ask, self.millis));
            let wait = if reply.is_some() { WAY } else { 250 };
            gateway.reply = Some((ask, reply, self.millis + wait));
        }
        if let Some((ask, reply, _)) = gateway.reply.take_if(|(.., at)| *at <= self.millis) {
            match reply {
                Some(reply) => {
                    let (exchange, backoff) = (&mut gateway.exchange, &mut gateway.backoff);
                    let cuts = exchange.answered(backoff, &ask, &reply, now);
                    gateway.adopted += u64::from(cuts.trouble);
                }
                None => gateway.exchange.failed(),
            }
        }
    }

    pub fn shares(&self) -> Vec<f64> {
        self.gateways.iter().map(Gateway::share).collect()
    }

    pub fn permits(&self) -> Vec<usize> {
        self.gateways.iter().map(Gateway::permits).collect()
    }
}
