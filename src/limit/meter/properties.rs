//! Properties of the meters, against naive definitions.
//!
//! A meter accepts or rejects each request at once, and never makes one wait.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::fixtures::{any_gap, any_rate};

/// Requests of one key, and the limit that applies to them.
#[derive(Clone, Debug)]
struct Trace {
    algorithm: Algorithm,
    allowance: Allowance,
    /// Instants at which requests of cost 1 arrive.
    arrivals: Vec<Moment>,
}

impl Trace {
    fn meter(&self) -> Meter {
        Meter::new(self.algorithm).expect("an algorithm that has a meter")
    }
}

prop_compose! {
    fn any_trace()(
        algorithm in prop::sample::select(Algorithm::NAMED.map(|(_, it)| it).to_vec())
            .prop_filter("it has a meter", |it| !it.queues()),
        rate in any_rate(),
        capacity in 1..12_u32,
        gaps in prop::collection::vec(any_gap(), 1..80),
    ) -> Trace {
        let mut now = Moment::from_nanos(1_800_000_000_123_456_789);
        let arrive = |gap| {
            now = now + Duration::from_nanos(gap);
            now
        };
        let arrivals = gaps.into_iter().map(arrive).collect();
        Trace { algorithm, allowance: Allowance { rate, capacity }, arrivals }
    }
}

/// Each algorithm by its definition, computed from all requests ever accepted.
struct Naive {
    algorithm: Algorithm,
    /// Arrival times in nanoseconds.
    accepted: Vec<u64>,
}

impl Naive {
    fn accepts(&mut self, Allowance { rate, capacity }: Allowance, now: Moment) -> bool {
        let (now, period) = (now.as_nanos(), period(rate));
        let count_in = |from: u64, to: u64| {
            let all = self.accepted.iter();
            all.filter(|at| (from..to).contains(*at)).count() as u128
        };
        let begins = now / period * period;
        let capacity = u128::from(capacity);
        let accepts = match self.algorithm {
            Algorithm::LeakyBucket => unreachable!(),
            Algorithm::TokenBucket => {
                // In ticks, of which a token has `one`. No two requests arrive at the same instant.
                let one = rate.ticks_per_request().unsigned_abs();
                let full = capacity * one;
                let (mut tokens, mut last) = (full, 0);
                let mut add_new = |tokens: u128, at: u64| {
                    let passed = at - std::mem::replace(&mut last, at);
                    let come = u128::from(passed) * rate.ticks_per_nano().unsigned_abs();
                    full.min(tokens + come)
                };
                for at in &self.accepted {
                    tokens = add_new(tokens, *at) - one;
                }
                add_new(tokens, now) >= one
            }
            Algorithm::FixedWindow => count_in(begins, begins + period) < capacity,
            Algorithm::SlidingWindowLog => count_in(now - period + 1, now + 1) < capacity,
            Algorithm::SlidingWindowCounter => {
                let before = count_in(begins - period, begins);
                let left = u128::from(period - (now - begins));
                count_in(begins, begins + period) + before * left / u128::from(period) < capacity
            }
        };
        if accepts {
            self.accepted.push(now);
        }
        accepts
    }
}

proptest! {
    #![proptest_config(testing::config())]

    #[test]
    fn verdicts_are_those_of_the_definitions(trace in any_trace()) {
        let (algorithm, allowance) = (trace.algorithm, trace.allowance);
        let mut naive = Naive { algorithm, accepted: Vec::new() };
        let mut meter = trace.meter();
        for now in trace.arrivals {
            if algorithm == Algorithm::TokenBucket && naive.accepted.contains(&now.as_nanos()) {
                // The naive token bucket cannot distinguish requests of the same nanosecond.
                continue;
            }
            let passes = matches!(meter.decide(allowance, Cost::ONE, now), Verdict::Pass { .. });
            prop_assert_eq!(passes, naive.accepts(allowance, now), "{} at {:?}", algorithm, now);
        }
    }

    /// A rejected request changes nothing, and its retry is accepted at the very instant.
    ///
    /// A refund is as if the request had never come.
    #[test]
    fn rejections_and_refunds_are_exact(trace in any_trace()) {
        let (mut meter, allowance) = (trace.meter(), trace.allowance);
        for now in trace.arrivals {
            let before = meter.clone();
            match meter.decide(allowance, Cost::ONE, now) {
                Verdict::Reject(Refusal { retry_at, .. }) => {
                    prop_assert_eq!(&meter, &before);
                    prop_assert!(retry_at > now);
                    prop_assert!(meter.refuses(allowance, Cost::ONE, retry_at).is_none());
                    let just_before = retry_at.before(Duration::from_nanos(1));
                    prop_assert!(meter.refuses(allowance, Cost::ONE, just_before).is_some());
                }
                Verdict::Pass { .. } => {
                    let mut refunded = meter.clone();
                    refunded.refund(allowance.rate, Cost::ONE, now, now);
                    let remaining = before.remaining(allowance, now);
                    prop_assert_eq!(refunded.remaining(allowance, now), remaining);
                }
                Verdict::Delay { .. } => prop_assert!(false, "a meter makes no request wait"),
            }
        }
    }

    /// As many requests as remain are accepted, and the next one at the predicted instant.
    ///
    /// To forget a drained meter changes no verdict.
    #[test]
    fn remaining_requests_and_the_drained_instant_are_exact(trace in any_trace()) {
        let (mut meter, mut forgetful) = (trace.meter(), trace.meter());
        let allowance = trace.allowance;
        for now in &trace.arrivals {
            let now = *now;
            let remaining = meter.remaining(allowance, now);
            let mut all = meter.clone();
            for nth in 0..remaining {
                let verdict = all.decide(allowance, Cost::ONE, now);
                prop_assert!(matches!(verdict, Verdict::Pass { .. }), "{nth} of {remaining}");
            }
            let retry_at = all.refuses(allowance, Cost::ONE, now).map(|refusal| refusal.retry_at);
            prop_assert_eq!(retry_at, Some(meter.accepts_at(allowance, remaining, now)));
            if forgetful.drained_at(allowance.rate) <= now {
                forgetful = trace.meter();
            }
            let verdict = meter.decide(allowance, Cost::ONE, now);
            prop_assert_eq!(verdict, forgetful.decide(allowance, Cost::ONE, now));
        }
    }
}
