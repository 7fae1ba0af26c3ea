//! Tests that bills move waiting requests of a gateway in Redis as they do in memory.

use std::time::Duration;

use gateway::store::{self, Store, StoreRate};
use limit::{
    self, Algorithm, Bucket, Cost, Delay, ExternalSchedule, Limit, Moment, Queue, Ticket, Verdict,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::server::{Server, run};
use super::{ask, at, join, pace, waiting};
use crate::support::night::day_or_night;

const LEAKY: Algorithm = Algorithm::LeakyBucket;

/// Rates whose intervals are whole microseconds, so that all times are exact.
const RATES: [&str; 4] = ["10r/s", "1000r/s", "5r/7s", "1r/m"];

/// Departed requests in order: number, and the instant at which each was due.
type Left = Vec<(u64, Moment)>;

/// A key in memory.
struct InMemory {
    queue: Queue<u64>,
    left: Left,
    charges: Vec<limit::Charge>,
}

impl InMemory {
    fn leave(&mut self, now: Moment) {
        while let Some(departed) = self.queue.take_due(now) {
            self.left.push((departed.waiter, departed.due));
            self.charges.push(departed.charge);
        }
    }

    fn join(&mut self, number: u64, limit: Limit, now: Moment) -> Verdict {
        let ticket = Ticket(number);
        let (verdict, charge) = self.queue.join(limit, ticket, now, || number);
        if let (Verdict::Pass { .. }, Some(charge)) = (verdict, charge) {
            self.left.push((number, now));
            self.charges.push(charge);
        }
        verdict
    }
}

/// The same key at a gateway that keeps it in Redis.
struct InRedis<'a> {
    store: &'a Store,
    key: &'a [u8],
    pace: &'a StoreRate,
    line: ExternalSchedule<u64, store::Charge>,
    left: Left,
    charges: Vec<store::Charge>,
}

impl InRedis<'_> {
    fn leave(&mut self, now: Moment) {
        while let Some(departed) = self.line.take_due(now) {
            self.left.push((departed.waiter, departed.due));
            self.charges.push(departed.charge);
        }
    }

    async fn charge(&self, limit: Limit, now: Moment) -> (Verdict, Option<store::Charge>) {
        let join = join(self.key, LEAKY, self.pace, limit, Some(now));
        let answer = ask(self.store, join).await.expect("an answer");
        (answer.verdict, answer.charge)
    }

    async fn join(&mut self, number: u64, limit: Limit, now: Moment) -> Verdict {
        let (verdict, charge) = self.charge(limit, now).await;
        match (verdict, charge) {
            (Verdict::Delay { until, .. }, Some(charge)) => {
                let ticket = Ticket(number);
                self.line.seat(0, ticket, now, number, (until, charge));
            }
            (Verdict::Pass { .. }, Some(charge)) => {
                self.left.push((number, now));
                self.charges.push(charge);
            }
            _ => {}
        }
        verdict
    }

    async fn bill(&mut self, more: Cost, now: Moment) {
        let limit = Limit::unlimited(Delay::Above(0), more);
        let (verdict, charge) = self.charge(limit, now).await;
        let due = match verdict {
            Verdict::Delay { until, .. } => until,
            _ => now,
        };
        let (charge, rate) = (charge.expect("never rejected"), self.pace.rate());
        let cost_of = |charge: &store::Charge| Some(charge.cost());
        let later = |from: u32, cost| {
            let due = due + rate.time_for(from.into());
            (due, charge.part(from, cost))
        };
        self.line.postpone(0, more, cost_of, later);
    }
}

#[test]
fn a_bill_moves_those_who_wait_back_as_in_memory() {
    let server = Server::start();
    let mut runner = TestRunner::new(Config {
        cases: day_or_night(60, 200),
        failure_persistence: None,
        ..Config::default()
    });
    // After this many quarters of an interval: a join, or the bill of a departed request.
    let bill = (any::<usize>(), 2..12u32);
    let step = (0..12u32, prop::option::weighted(0.3, bill));
    let traces = (
        prop::sample::select(RATES.to_vec()),
        1..20u32,
        prop::collection::vec(step, 1..60),
    );
    let outcome = runner.run(&traces, |(rate, burst, steps)| {
        run(async {
            let (store, key, pace) = (server.store(), server.key(), pace(rate, LEAKY, 0));
            let mut memory = InMemory {
                queue: Queue::new(pace.rate(), Bucket::new(), at(0)),
                left: Left::new(),
                charges: Vec::new(),
            };
            let mut redis = InRedis {
                store: &store,
                key: &key,
                pace: &pace,
                line: ExternalSchedule::default(),
                left: Left::new(),
                charges: Vec::new(),
            };
            let mut now = at(0);
            for (number, (quarters, bill)) in (0..).zip(steps) {
                now = now + pace.rate().interval() / 4 * quarters;
                memory.leave(now);
                redis.leave(now);
                let Some((which, cost)) = bill else {
                    let limit = waiting(burst);
                    let expected = memory.join(number, limit, now);
                    prop_assert_eq!(redis.join(number, limit, now).await, expected);
                    continue;
                };
                if memory.charges.is_empty() {
                    continue;
                }
                let index = which % memory.charges.len();
                let (charge, cost) = (memory.charges.remove(index), Cost::new(cost));
                let cost = cost.expect("small");
                memory.queue.settle(charge, cost, now);
                let more = cost.above(redis.charges.remove(index).cost());
                redis.bill(more.expect("more"), now).await;
                prop_assert_eq!(redis.line.depth(), memory.queue.depth());
            }
            memory.leave(now + Duration::from_secs(1_000_000));
            redis.leave(now + Duration::from_secs(1_000_000));
            prop_assert_eq!(&redis.left, &memory.left);
            Ok(())
        })
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}
