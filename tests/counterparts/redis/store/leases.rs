//! Places that gateways take ahead from a real Redis: the limit holds over all of them.

use std::time::Duration;

use gateway::store::{Join, Pace, Refund, Store, StoreAnswer};
use limit::{
    Algorithm, Delay, FromLease, Lease, LeaseTerms, Leased, Limit, Moment, Refusal, Verdict,
};

use super::server::{Server, run};
use super::{at, nodelay, pace, waiting};
use crate::support::rng::Rng;

const LENGTH: Duration = Duration::from_millis(20);

struct Gateways<'a> {
    store: &'a Store,
    key: Vec<u8>,
    pace: &'a Pace,
    terms: LeaseTerms,
    limit: Limit,
    leases: Vec<Lease<StoreAnswer>>,
    went_on: Vec<Moment>,
    calls: usize,
}

impl Gateways<'_> {
    async fn join(&mut self, gateway: usize, now: Moment) {
        self.end(gateway, now).await;
        let lease = &mut self.leases[gateway];
        lease.arrive(LENGTH, self.limit, now);
        let answer = match lease.take(self.limit, now) {
            Some(FromLease::Place(answer)) => answer,
            Some(FromLease::Refused(_)) => return,
            None => self.ask(gateway, now).await,
        };
        match answer.verdict {
            Verdict::Pass { .. } => self.went_on.push(now),
            Verdict::Delay { until, .. } => self.went_on.push(until.max(now)),
            Verdict::Reject(_) => {}
        }
    }

    async fn ask(&mut self, gateway: usize, now: Moment) -> StoreAnswer {
        let ahead = self.leases[gateway].ahead(&self.terms, self.limit, now);
        let join = Join {
            key: &self.key,
            algorithm: self.terms.algorithm,
            pace: self.pace,
            limit: self.limit,
            at: Some(now),
        };
        self.calls += 1;
        let joins = vec![join; 1 + ahead as usize];
        let answers = self.store.decide(&joins).await.into_iter();
        let mut answers = answers.map(|answer| answer.expect("an answer"));
        let first = answers.next().expect("an answer");
        let lease = &mut self.leases[gateway];
        if let Verdict::Reject(Refusal {
            retry_at, excess, ..
        }) = first.verdict
        {
            let drains_in = self.terms.rate.interval().mul_f64(excess.requests() - 1.0);
            let until = lease.refuses_until(&self.terms, now, retry_at, drains_in);
            lease.refuse(self.limit, first.clone(), until);
        }
        for place in answers {
            let Some(usable_until) = place.usable_until else {
                break;
            };
            let ends = match self.terms.algorithm {
                Algorithm::TokenBucket => usable_until,
                _ => usable_until.min(now + LENGTH),
            };
            lease.add(Leased {
                place,
                usable_until,
                ends,
            });
        }
        if let Some(usable_until) = first.usable_until {
            lease.reaches(usable_until);
        }
        first
    }

    /// Gives back what is over.
    async fn end(&mut self, gateway: usize, now: Moment) {
        let ended = self.leases[gateway].end(now);
        if self.terms.algorithm == Algorithm::TokenBucket {
            return;
        }
        let charges = ended.iter().filter_map(|it| it.place.charge);
        let refunds: Vec<_> = charges
            .map(|charge| Refund {
                key: &self.key,
                algorithm: self.terms.algorithm,
                pace: self.pace,
                charge,
                at: Some(now),
            })
            .collect();
        for given_back in self.store.refund(&refunds).await {
            given_back.expect("an answer");
        }
    }
}

/// When requests went on that come in waves to four gateways, and how many asked Redis.
fn went_on(rate: &str, algorithm: Algorithm, limit: Limit) -> (Vec<Moment>, usize) {
    let (server, pace) = (Server::start(), pace(rate, algorithm, 0));
    run(async {
        let mut gateways = Gateways {
            store: &server.store(),
            key: server.key(),
            pace: &pace,
            terms: LeaseTerms {
                length: LENGTH,
                rate: pace.rate(),
                algorithm,
            },
            limit,
            leases: vec![Lease::new(limit, at(0)); 4],
            went_on: Vec::new(),
            calls: 0,
        };
        let (mut rng, mut now) = (Rng::of(7, 1), at(0));
        for nth in 0..6000 {
            // Less than the rate, then more, in turn, and pauses in between.
            let most = if nth / 1000 % 2 == 0 { 2200 } else { 600 };
            let pause = if nth % 500 == 499 { 50_000 } else { 0 };
            now = now + Duration::from_micros(pause + rng.within(0, most));
            let gateway = usize::try_from(rng.within(0, 4)).expect("small");
            gateways.join(gateway, now).await;
        }
        let mut went_on = gateways.went_on;
        went_on.sort();
        (went_on, gateways.calls)
    })
}

#[test]
fn no_span_has_more_than_its_rate_and_the_burst() {
    for (algorithm, limit) in [
        (Algorithm::LeakyBucket, nodelay(60)),
        (Algorithm::LeakyBucket, waiting(60)),
        (
            Algorithm::LeakyBucket,
            Limit {
                delay: Delay::Above(30),
                ..waiting(60)
            },
        ),
        (Algorithm::TokenBucket, nodelay(60)),
    ] {
        let (moments, calls) = went_on("1000r/s", algorithm, limit);
        // With one request a millisecond: each is at most the burst behind any that comes later.
        let late = |index: usize, at: &Moment| {
            let nanos = i128::from(at.as_nanos());
            nanos - 1_000_000 * i128::try_from(index).expect("small")
        };
        let mut highest = i128::MIN;
        for (index, moment) in moments.iter().enumerate() {
            highest = highest.max(late(index, moment));
            let above = highest - late(index, moment);
            assert!(above <= 60_000_000, "{algorithm} {limit:?}: {index}");
        }
        // What comes at more than the rate keeps the queue or the burst full.
        assert!(moments.len() > 4000, "{}", moments.len());
        assert!(calls < 4500, "{algorithm} {limit:?}: {calls} calls");
    }
}

#[test]
fn no_window_has_more_than_it_may() {
    const MOST: usize = 80;
    let period = Duration::from_millis(80);
    for algorithm in [Algorithm::FixedWindow, Algorithm::SlidingWindowCounter] {
        let limit = nodelay(u32::try_from(MOST).expect("small") - 1);
        let (moments, calls) = went_on("80r/80ms", algorithm, limit);
        for (index, moment) in moments.iter().enumerate() {
            let elapsed = moment.as_nanos() % 80_000_000;
            let begins = moment.before(Duration::from_nanos(elapsed));
            let earlier = begins.before(period);
            let count = |from: Moment, to: Moment| {
                let so_far = moments[..=index].iter();
                so_far.filter(|it| (from..to).contains(*it)).count()
            };
            let mut counted = count(begins, begins + period);
            if algorithm == Algorithm::SlidingWindowCounter {
                let left = usize::try_from(80_000_000 - elapsed).expect("small");
                counted += count(earlier, begins) * left / 80_000_000;
            }
            assert!(counted <= MOST, "{algorithm}: {counted} at {index}");
        }
        assert!(moments.len() > 4000, "{}", moments.len());
        assert!(calls < 4500, "{algorithm}: {calls} calls");
    }
}
