//! Properties of saved accounts.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{Delay, Limit, Queue, Ticket, Verdict};

const START: Moment = Moment::from_nanos(1_800_000_000_123_456_789);

/// Generates gaps before requests in nanoseconds, and the cost of each request.
fn requests() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![
        Just(0),
        0..2_000_000_u64,
        0..200_000_000_u64,
        (0..40_u64).prop_map(|tenths| tenths * 100_000_000),
    ];
    prop::collection::vec((gap, prop_oneof![4 => Just(1), 1 => 1..4_u32]), 0..60)
}

fn rates() -> impl Strategy<Value = Rate> {
    let rates = [
        "1r/s", "3r/s", "10r/s", "7r/250ms", "2r/7ms", "5r/m", "0.7r/s",
    ];
    prop::sample::select(rates.to_vec()).prop_map(|rate| rate.parse().unwrap())
}

fn limits() -> impl Strategy<Value = Limit> {
    let delay = prop_oneof![Just(Delay::Above(0)), (0..6_u32).prop_map(Delay::Above)];
    (0..20_u32, delay).prop_map(|(burst, delay)| Limit {
        burst,
        ..Limit::unlimited(delay, Cost::ONE)
    })
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop::sample::select(Algorithm::NAMED.map(|(_, it)| it).to_vec())
}

/// Returns the verdicts of an account on consecutive requests.
fn verdicts(
    account: &mut Account,
    rate: Rate,
    limit: Limit,
    mut now: Moment,
    requests: &[(u64, u32)],
) -> Vec<Verdict> {
    let verdict = |(gap, cost): &(u64, u32)| {
        now = now + Duration::from_nanos(*gap);
        let cost = Cost::new((*cost).min(limit.burst + 1)).unwrap();
        account.decide(rate, Limit { cost, ..limit }, now)
    };
    requests.iter().map(verdict).collect()
}

fn last(start: Moment, requests: &[(u64, u32)]) -> Moment {
    let gaps = requests.iter().map(|(gap, _)| gap).sum();
    start + Duration::from_nanos(gaps)
}

proptest! {
    #![proptest_config(testing::config())]

    #[test]
    fn what_is_saved_goes_on_as_if_nothing_had_happened(
        algorithm in algorithm(),
        rate in rates(),
        limit in limits(),
        before in requests(),
        after in requests(),
        pause in 0..3_000_000_000_u64,
    ) {
        let mut account = Account::new(algorithm);
        verdicts(&mut account, rate, limit, START, &before);
        let saved_at = last(START, &before) + Duration::from_nanos(pause / 2);
        let saved = account.save(rate, saved_at);
        if let Some(saved) = &saved {
            prop_assert_eq!(saved.algorithm(), algorithm);
        }
        let mut restored = saved.map_or_else(
            || Account::new(algorithm),
            |saved| Account::restored(&saved, rate, saved_at),
        );
        let again = saved_at + Duration::from_nanos(pause);
        let expected = verdicts(&mut account, rate, limit, again, &after);
        prop_assert_eq!(verdicts(&mut restored, rate, limit, again, &after), expected);
    }

    /// The clock of the next process may differ: only the age of the saved account counts.
    #[test]
    fn a_bucket_goes_on_alike_on_another_clock(
        rate in rates(),
        limit in limits(),
        before in requests(),
        after in requests(),
        ahead in 0..1_000_000_000_000_000_u64,
        is_behind in any::<bool>(),
    ) {
        let shift = Duration::from_nanos(ahead);
        let there = |moment: Moment| if is_behind { moment.before(shift) } else { moment + shift };
        let mut account = Account::new(Algorithm::LeakyBucket);
        verdicts(&mut account, rate, limit, START, &before);
        let saved_at = last(START, &before);
        let saved = account.save(rate, saved_at);
        let mut restored = saved.map_or_else(
            || Account::new(Algorithm::LeakyBucket),
            |saved| Account::restored(&saved, rate, there(saved_at)),
        );
        let expected = verdicts(&mut account, rate, limit, saved_at, &after);
        let expected: Vec<Verdict> = expected.into_iter().map(|it| moved(it, there)).collect();
        let found = verdicts(&mut restored, rate, limit, there(saved_at), &after);
        prop_assert_eq!(found, expected);
    }

    /// Two queues, the old one draining and the new one filling, are one stream.
    #[test]
    fn new_requests_depart_after_waiters_of_the_old_process(
        rate in rates(),
        limit in limits(),
        before in 1..30_u32,
        after in 1..30_u32,
        gap in 0..100_000_000_u64,
    ) {
        let limit = Limit { burst: 60, ..limit };
        let departs = |queue: &mut Queue<()>, ticket: u32, now: Moment| {
            let (verdict, _) = queue.join(limit, Ticket(ticket.into()), now, || ());
            match verdict {
                Verdict::Pass { .. } => Some(now),
                Verdict::Delay { until, .. } => Some(until),
                Verdict::Reject(_) => None,
            }
        };
        let mut one = Queue::new(rate, Bucket::new(), START);
        let mut old = Queue::new(rate, Bucket::new(), START);
        for ticket in 0..before {
            prop_assert_eq!(departs(&mut one, ticket, START), departs(&mut old, ticket, START));
        }
        let now = START + Duration::from_nanos(gap);
        while one.take_due(now).is_some() {}
        while old.take_due(now).is_some() {}
        let saved = Account::Bucket(old.bucket()).save(rate, now);
        let bucket = saved.map(|saved| Account::restored(&saved, rate, now));
        let Some(Account::Bucket(bucket)) = bucket.or(Some(Account::Bucket(Bucket::new()))) else {
            panic!("a bucket");
        };
        let mut new = Queue::new(rate, bucket, now);
        for ticket in before..before + after {
            prop_assert_eq!(departs(&mut new, ticket, now), departs(&mut one, ticket, now));
        }
    }

    /// A departure or refund in the old process after saving is not granted to the new one too.
    ///
    /// The two together are as slow as one, or slower once.
    #[test]
    fn a_late_departure_of_the_old_process_makes_no_request_too_fast(
        rate in rates(),
        limit in limits(),
        before in prop::collection::vec(1..4_u32, 1..30),
        leaves in prop::collection::vec((any::<bool>(), 0..3_000_000_000_u64), 30),
        newcomers in requests(),
    ) {
        let free = match limit.delay {
            Delay::Above(free) => free,
            Delay::Never => limit.burst,
        };
        let limit = Limit { burst: 1_000, ..limit };
        let costing = |cost: u32| Limit { cost: Cost::new(cost).unwrap(), ..limit };
        let mut old = Queue::new(rate, Bucket::new(), START);
        // Accepted requests, each with its charge and instant.
        let (mut passed, mut waiting) = (Vec::new(), Vec::new());
        for (number, cost) in (0..).zip(&before) {
            match old.join(costing(*cost), Ticket(number), START, || *cost) {
                (Verdict::Pass { .. }, Some(charge)) => passed.push((START, *cost, Some(charge))),
                _ => waiting.push(number),
            }
        }
        let at = START + Duration::from_millis(40);
        let take = |old: &mut Queue<u32>, passed: &mut Vec<_>, until| {
            while let Some(departed) = old.take_due(until) {
                passed.push((departed.due, departed.waiter, Some(departed.charge)));
            }
        };
        take(&mut old, &mut passed, at);
        let saved = Account::Bucket(old.bucket()).save(rate, at);
        let restored = saved.map(|saved| Account::restored(&saved, rate, at));
        let bucket = match restored {
            Some(Account::Bucket(bucket)) => bucket,
            _ => Bucket::new(),
        };
        // Some waiters disconnect, and an unused slot is given back.
        let mut now = at;
        let mut given_back = Vec::new();
        for ((is_leaving, gap), number) in leaves.iter().zip(&waiting) {
            now = now + Duration::from_nanos(*gap);
            take(&mut old, &mut passed, now);
            if *is_leaving {
                old.leave(Ticket(*number));
            } else if let Some((due, cost, Some(charge))) = passed.pop() {
                old.refund(charge, now);
                given_back.push((due, cost));
            }
        }
        take(&mut old, &mut passed, now + Duration::from_secs(1_000_000));
        let mut new = Queue::new(rate, bucket, at);
        let mut now = at;
        let mut left: Vec<_> = passed.into_iter().map(|(due, cost, _)| (due, cost)).collect();
        for (number, (gap, cost)) in (0..).zip(newcomers) {
            now = now + Duration::from_nanos(gap);
            while new.take_due(now).is_some() {}
            match new.join(costing(cost), Ticket(number), now, || cost).0 {
                Verdict::Pass { .. } => left.push((now, cost)),
                Verdict::Delay { until, .. } => left.push((until, cost)),
                Verdict::Reject(_) => {}
            }
        }
        // Level that they would make in one bucket, if none had disconnected.
        left.sort_unstable();
        let mut one = Bucket::new();
        let most = f64::from(free) + 1e-3;
        for (due, cost) in left {
            let limit = Limit { burst: 1_000_000, delay: Delay::Never, ..costing(cost) };
            let Verdict::Pass { excess } = one.decide(rate, limit, due) else {
                panic!("it passes");
            };
            let level = excess.requests() - f64::from(cost - 1);
            prop_assert!(level <= most, "{} above {} at {:?}", level, most, due);
        }
    }

    #[test]
    fn no_number_in_a_file_overflows(
        ahead in any::<i128>(),
        counts in any::<(u32, u32)>(),
        ages in prop::collection::vec(any::<u64>(), 0..5),
        rate in prop_oneof![rates(), Just(Rate::UNLIMITED), Just("0.000000001r/366d".parse().unwrap())],
        limit in limits(),
    ) {
        let (previous, current) = counts;
        for saved in [
            SavedAccount::LeakyBucket { ahead },
            SavedAccount::TokenBucket { ahead },
            SavedAccount::FixedWindow { count: current },
            SavedAccount::SlidingWindowLog { ages },
            SavedAccount::SlidingWindowCounter { previous, current },
        ] {
            if rate.is_unlimited() && saved.algorithm() != Algorithm::LeakyBucket {
                continue;
            }
            let mut account = Account::restored(&saved, rate, START);
            account.decide(rate, limit, START);
            account.retune(rate, "10r/s".parse().unwrap(), START);
            let _saved = account.save("10r/s".parse().unwrap(), START);
        }
    }
}

fn moved(verdict: Verdict, there: impl Fn(Moment) -> Moment) -> Verdict {
    match verdict {
        Verdict::Delay { until, excess } => Verdict::Delay {
            until: there(until),
            excess,
        },
        Verdict::Reject(refusal) => Verdict::Reject(crate::Refusal {
            retry_at: there(refusal.retry_at),
            ..refusal
        }),
        pass @ Verdict::Pass { .. } => pass,
    }
}
