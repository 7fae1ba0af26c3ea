//! Properties of the meters, against naive definitions.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// Generates arrival times: the gap before each request in nanoseconds.
fn trace() -> impl Strategy<Value = Vec<u64>> {
    let gap = prop_oneof![
        Just(0),
        0..2_000_000u64,
        0..200_000_000u64,
        (0..40u64).prop_map(|tenths| tenths * 100_000_000),
    ];
    prop::collection::vec(gap, 1..80)
}

fn allowance() -> impl Strategy<Value = Allowance> {
    let rates = [
        "1r/s", "3r/s", "10r/s", "7r/250ms", "2r/7ms", "5r/m", "0.7r/s",
    ];
    (prop::sample::select(rates.to_vec()), 1..12u32).prop_map(|(rate, capacity)| Allowance {
        rate: rate.parse().unwrap(),
        capacity,
    })
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    let metered = Algorithm::NAMED.map(|(_, it)| it);
    prop::sample::select(metered.to_vec()).prop_filter("it has a meter", |it| !it.queues())
}

fn moments(gaps: &[u64]) -> Vec<Moment> {
    let mut now = Moment::from_nanos(1_800_000_000_123_456_789);
    let step = |gap: &u64| {
        now = now + Duration::from_nanos(*gap);
        now
    };
    gaps.iter().map(step).collect()
}

/// Each algorithm by its definition, computed from all requests ever accepted.
struct Naive(Algorithm, Vec<u64>);

impl Naive {
    fn accepts(&mut self, Allowance { rate, capacity }: Allowance, now: Moment) -> bool {
        let (now, period) = (now.as_nanos(), period(rate));
        let count_in = |from: u64, to: u64| {
            let all = self.1.iter();
            all.filter(|at| (from..to).contains(*at)).count() as u128
        };
        let begins = now / period * period;
        let capacity = u128::from(capacity);
        let accepts = match self.0 {
            Algorithm::LeakyBucket => unreachable!(),
            Algorithm::TokenBucket => {
                // Tokens in units of 1/ticks of a token, computed step by step from request to
                // request.
                let one = rate.ticks_per_request().unsigned_abs();
                let full = capacity * one;
                let (mut tokens, mut last) = (full, 0);
                for at in self.1.iter().copied().chain([now]) {
                    let come = u128::from(at - last) * rate.ticks_per_nano().unsigned_abs();
                    tokens = full.min(tokens + come);
                    last = at;
                    if at != now || self.1.contains(&now) {
                        tokens = tokens.saturating_sub(one);
                    }
                }
                if self.1.contains(&now) {
                    tokens += one;
                }
                tokens >= one
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
            self.1.push(now);
        }
        accepts
    }
}

proptest! {
    #![proptest_config(testing::config())]

    #[test]
    fn answers_are_those_of_the_definitions(gaps in trace(), allowance in allowance(), algorithm in algorithm()) {
        let (mut meter, mut naive) = (Meter::new(algorithm).unwrap(), Naive(algorithm, Vec::new()));
        for now in moments(&gaps) {
            if algorithm == Algorithm::TokenBucket && naive.1.contains(&now.as_nanos()) {
                // The naive model cannot distinguish requests of the same nanosecond.
                continue;
            }
            let passes = matches!(meter.decide(allowance, Cost::ONE, now), Verdict::Pass { .. });
            prop_assert_eq!(passes, naive.accepts(allowance, now), "{} at {:?}", algorithm, now);
        }
    }

    #[test]
    fn a_rejected_request_changes_nothing_and_learns_the_very_moment(
        gaps in trace(),
        allowance in allowance(),
        algorithm in algorithm(),
    ) {
        let mut meter = Meter::new(algorithm).unwrap();
        for now in moments(&gaps) {
            let before = meter.clone();
            if let Verdict::Reject(refusal) = meter.decide(allowance, Cost::ONE, now) {
                prop_assert_eq!(&meter, &before);
                prop_assert!(refusal.retry_at > now);
                prop_assert!(meter.refuses(allowance, Cost::ONE, refusal.retry_at).is_none());
                let just_before = Moment::from_nanos(refusal.retry_at.as_nanos() - 1);
                prop_assert!(meter.refuses(allowance, Cost::ONE, just_before).is_some());
            }
        }
    }

    #[test]
    fn what_remains_is_what_is_accepted(gaps in trace(), allowance in allowance(), algorithm in algorithm()) {
        let mut meter = Meter::new(algorithm).unwrap();
        for now in moments(&gaps) {
            let remaining = meter.remaining(allowance, now);
            let mut all = meter.clone();
            for nth in 0..remaining {
                prop_assert!(matches!(all.decide(allowance, Cost::ONE, now), Verdict::Pass { .. }), "{} of {}", nth, remaining);
            }
            prop_assert_eq!(all.refuses(allowance, Cost::ONE, now).is_some(), true);
            let then = meter.accepts_at(allowance, remaining, now);
            prop_assert_eq!(all.refuses(allowance, Cost::ONE, now).map(|refusal| refusal.retry_at), Some(then));
            meter.decide(allowance, Cost::ONE, now);
        }
    }

    #[test]
    fn forgetting_what_has_drained_changes_no_answer(
        gaps in trace(),
        allowance in allowance(),
        algorithm in algorithm(),
    ) {
        let (mut kept, mut forgetful) = (Meter::new(algorithm).unwrap(), Meter::new(algorithm).unwrap());
        for now in moments(&gaps) {
            if forgetful.drained_at(allowance.rate) <= now {
                forgetful = Meter::new(algorithm).unwrap();
            }
            prop_assert_eq!(kept.decide(allowance, Cost::ONE, now), forgetful.decide(allowance, Cost::ONE, now));
        }
    }

    #[test]
    fn a_refund_is_as_if_it_had_never_come(gaps in trace(), allowance in allowance(), algorithm in algorithm()) {
        let mut meter = Meter::new(algorithm).unwrap();
        for now in moments(&gaps) {
            let before = meter.clone();
            if let Verdict::Pass { .. } = meter.decide(allowance, Cost::ONE, now) {
                let charged = meter.clone();
                meter.refund(allowance.rate, Cost::ONE, now, now);
                prop_assert_eq!(meter.remaining(allowance, now), before.remaining(allowance, now));
                meter = charged;
            }
        }
    }
}
