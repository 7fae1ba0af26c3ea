//! Properties of saved accounts: the next process continues as if nothing had happened.
//!
//! An *account* is a bucket or a *meter* (which never makes a request wait), with what the earlier
//! requests of a key were charged.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::fixtures::{any_gap, any_rate, cost, limit, ms, rate, secs};
use crate::{Delay, Limit, Queue, Ticket, Verdict};

const START: Moment = Moment::from_nanos(1_800_000_000_123_456_789);

/// Generates requests: the nanoseconds before each of them, and its cost.
fn requests() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let cost = prop_oneof![4 => Just(1), 1 => 1..4_u32];
    prop::collection::vec((any_gap(), cost), 0..60)
}

fn limits() -> impl Strategy<Value = Limit> {
    let delay = prop_oneof![Just(Delay::Above(0)), (0..6_u32).prop_map(Delay::Above)];
    (0..20_u32, delay).prop_map(|(burst, delay)| limit(burst, delay))
}

/// Returns the account with which the next process continues. `None`: it begins anew.
fn restored(saved: Option<SavedAccount>, algorithm: Algorithm, rate: Rate, at: Moment) -> Account {
    saved.map_or_else(
        || Account::new(algorithm),
        |saved| Account::restored(&saved, rate, at),
    )
}

/// Saves a bucket, and returns the bucket with which the next process continues.
fn saved_and_restored(bucket: Bucket, rate: Rate, at: Moment) -> Bucket {
    let saved = Account::Bucket(bucket).save(rate, at);
    match restored(saved, Algorithm::LeakyBucket, rate, at) {
        Account::Bucket(bucket) => bucket,
        Account::Meter(_) => panic!("a bucket"),
    }
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
        let cost = self::cost((*cost).min(limit.burst + 1));
        account.decide(rate, Limit { cost, ..limit }, now)
    };
    requests.iter().map(verdict).collect()
}

/// Returns the instant of the last request.
fn last(start: Moment, requests: &[(u64, u32)]) -> Moment {
    let gaps = requests.iter().map(|(gap, _)| gap).sum();
    start + Duration::from_nanos(gaps)
}

proptest! {
    #![proptest_config(testing::config())]

    #[test]
    fn a_restored_account_continues_as_if_nothing_had_happened(
        algorithm in prop::sample::select(Algorithm::NAMED.map(|(_, it)| it).to_vec()),
        rate in any_rate(),
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
        let mut restored = restored(saved, algorithm, rate, saved_at);
        let again = saved_at + Duration::from_nanos(pause);
        let expected = verdicts(&mut account, rate, limit, again, &after);
        prop_assert_eq!(verdicts(&mut restored, rate, limit, again, &after), expected);
    }

    /// The clock of the next process may differ: only the age of the saved account counts.
    #[test]
    fn a_bucket_continues_alike_on_another_clock(
        rate in any_rate(),
        limit in limits(),
        before in requests(),
        after in requests(),
        ahead in 0..1_000_000_000_000_000_u64,
        is_behind in any::<bool>(),
    ) {
        let shift = Duration::from_nanos(ahead);
        let mut account = Account::new(Algorithm::LeakyBucket);
        verdicts(&mut account, rate, limit, START, &before);
        let saved_at = last(START, &before);
        // The instant `saved_at` on the other clock.
        let there = if is_behind { saved_at.before(shift) } else { saved_at + shift };
        let saved = account.save(rate, saved_at);
        let mut restored = restored(saved, Algorithm::LeakyBucket, rate, there);
        let expected = verdicts(&mut account, rate, limit, saved_at, &after);
        let expected = expected.into_iter().map(|verdict| verdict.on_clock(saved_at, there));
        let found = verdicts(&mut restored, rate, limit, there, &after);
        prop_assert_eq!(found, expected.collect::<Vec<_>>());
    }

    /// Two queues, the old one draining and the new one filling, are one stream.
    #[test]
    fn new_requests_depart_after_waiters_of_the_old_process(
        rate in any_rate(),
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
        let mut new = Queue::new(rate, saved_and_restored(old.bucket(), rate, now), now);
        for ticket in before..before + after {
            prop_assert_eq!(departs(&mut new, ticket, now), departs(&mut one, ticket, now));
        }
    }

    /// A departure or refund in the old process after saving is not granted to the new one too.
    ///
    /// The two together are as slow as one, or slower once.
    #[test]
    fn a_late_departure_of_the_old_process_makes_no_request_too_fast(
        rate in any_rate(),
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
        let costing = |cost: u32| Limit { cost: self::cost(cost), ..limit };
        let mut old = Queue::new(rate, Bucket::new(), START);
        // Accepted requests, each with its charge and instant.
        let (mut passed, mut waiting) = (Vec::new(), Vec::new());
        for (number, cost) in (0..).zip(&before) {
            match old.join(costing(*cost), Ticket(number), START, || *cost) {
                (Verdict::Pass { .. }, Some(charge)) => passed.push((START, *cost, Some(charge))),
                _ => waiting.push(number),
            }
        }
        let at = START + ms(40);
        let take = |old: &mut Queue<u32>, passed: &mut Vec<_>, until| {
            while let Some(departed) = old.take_due(until) {
                passed.push((departed.due, departed.waiter, Some(departed.charge)));
            }
        };
        take(&mut old, &mut passed, at);
        let bucket = saved_and_restored(old.bucket(), rate, at);
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
        take(&mut old, &mut passed, now + secs(1_000_000));
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
        from in prop_oneof![any_rate(), Just(Rate::UNLIMITED), Just(rate("0.000000001r/366d"))],
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
            if from.is_unlimited() && saved.algorithm() != Algorithm::LeakyBucket {
                continue;
            }
            let mut account = Account::restored(&saved, from, START);
            account.decide(from, limit, START);
            account.retune(from, rate("10r/s"), START);
            let _saved = account.save(rate("10r/s"), START);
        }
    }
}
