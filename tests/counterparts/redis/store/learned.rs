//! Tests that learned values of an origin are stored as the script's description says.

use std::time::Duration;

use gateway::store::{BackoffCall, Error};
use limit::{Learned, LearnedInFlight, LearnedQuery, LearnedRate, LearnedReply, Percent, Token};

use super::at;
use super::server::in_redis;
use crate::support::rng::Rng;

fn learned(share: u32, cut: u64) -> Learned {
    Learned {
        cut,
        cut_ago: Duration::from_millis(cut % 1000),
        paused: Duration::from_millis(cut % 77),
        rate: LearnedRate {
            share: Percent::from_millionths(share),
            steady: Duration::from_secs(5),
            steady_time: Duration::from_secs(10),
            trouble_at: cut
                .is_multiple_of(2)
                .then(|| Percent::from_millionths(share / 2)),
            answers: 20,
            bad: 7,
        },
        in_flight: LearnedInFlight {
            share: Percent::ALL,
            cut_ago: Duration::ZERO,
            answers: 0,
            bad: 0,
            given_back: None,
        },
    }
}

fn token(number: u64) -> Token {
    let mut token = Token::default();
    token[..8].copy_from_slice(&number.to_le_bytes());
    token
}

/// A simple model of the stored value, with the time of storing and all replies with their times.
#[derive(Default)]
struct Model {
    there: Option<(Token, Learned, u64)>,
    answers: Vec<(u64, u64)>,
    since: Option<u64>,
}

impl Model {
    fn ask(&mut self, ask: &LearnedQuery, millis: u64) -> LearnedReply {
        let name =
            |there: &Option<(Token, Learned, u64)>| there.map_or(Token::default(), |it| it.0);
        self.answers.push((millis, ask.answers));
        let since = *self.since.get_or_insert(millis);
        if let (Some((token, learned)), true) = (ask.update, name(&self.there) == ask.known) {
            self.there = Some((token, learned, millis));
        }
        let token = name(&self.there);
        let knows = token == ask.known || ask.update.is_some_and(|update| update.0 == token);
        #[allow(clippy::cast_precision_loss)]
        let part =
            |(at, count): &(u64, u64)| *count as f64 * (-((millis - at) as f64) / 3000.0).exp();
        let stored = self.there.map_or(self.since.unwrap_or(millis), |it| it.2);
        LearnedReply {
            token,
            learned: self.there.filter(|_| !knows).map(|it| it.1),
            ago: Some(Duration::from_millis(millis - stored)),
            now: at(millis),
            answers: self.answers.iter().map(part).sum(),
            counted_since: at(since),
        }
    }
}

#[test]
fn the_script_stores_only_updates_of_the_current_value() {
    in_redis(async |server, store| {
        let mut stored = 0;
        for seed in 0..60 {
            let (key, mut random) = (server.key(), Rng::of(seed, 1));
            let (mut model, mut millis) = (Model::default(), 0);
            // Values known to each of three gateways.
            let mut known = [Token::default(); 3];
            for number in 1..60_u64 {
                millis += random.within(0, 700);
                let gateway = usize::try_from(random.within(0, 3)).unwrap();
                let update = (random.within(0, 3) == 0).then(|| {
                    let share = u32::try_from(random.within(0, 1_000_000)).unwrap() + 1;
                    (token(number), learned(share, random.within(0, 1 << 60)))
                });
                let ask = LearnedQuery {
                    known: known[gateway],
                    update,
                    answers: random.within(0, 30),
                };
                let call = BackoffCall {
                    key: &key,
                    ask: &ask,
                    at: Some(at(millis)),
                };
                let received = store.call(&call).await.unwrap();
                let expected = model.ask(&ask, millis);
                let off = (received.answers - expected.answers).abs();
                assert!(off < 1e-6, "{received:?} {expected:?}");
                if expected.token == Token::default() {
                    // The time of storing does not matter if nothing was stored.
                    assert_eq!((received.token, &received.learned), (expected.token, &None));
                } else {
                    let mut exact = received.clone();
                    exact.answers = expected.answers;
                    assert_eq!(exact, expected, "{ask:?}");
                }
                stored += u64::from(ask.update.is_some_and(|update| update.0 == received.token));
                // A reply may be lost.
                if random.within(0, 5) > 0 {
                    known[gateway] = received.token;
                }
            }
        }
        assert!(stored > 100, "{stored}");
    });
}

#[test]
fn a_clock_set_back_is_reported_and_another_content_is_refused() {
    in_redis(async |server, store| {
        let (key, other) = (server.key(), server.key());
        let update = Some((token(1), learned(500_000, 7)));
        let ask = LearnedQuery {
            known: Token::default(),
            update,
            answers: 3,
        };
        let call = |ask, millis| BackoffCall {
            key: &key,
            ask,
            at: Some(at(millis)),
        };
        store.call(&call(&ask, 60_000)).await.unwrap();
        let nothing = LearnedQuery {
            update: None,
            ..ask.clone()
        };
        let received = store.call(&call(&nothing, 58_000)).await.unwrap();
        assert_eq!((received.ago, received.token), (None, token(1)));
        let received = store.call(&call(&nothing, 61_000)).await.unwrap();
        assert_eq!(received.ago, Some(Duration::from_secs(1)));
        assert_eq!(received.learned, Some(learned(500_000, 7)));
        let name = String::from_utf8_lossy(&other);
        let _: String = server.ask(&format!("SET drip:{name} else"), &[]);
        let call = BackoffCall {
            key: &other,
            ask: &nothing,
            at: None,
        };
        let refused = store.call(&call).await;
        assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    });
}
