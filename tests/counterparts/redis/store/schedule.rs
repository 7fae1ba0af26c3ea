//! Tests of one schedule of departures for all gateways.

use gateway::store::{Join, Refund, StoreAnswer, StoreRate};
use limit::{Algorithm, Cost, Delay, Limit, Moment, Verdict};

use super::server::in_redis;
use super::{ask, at, pace, waiting};

const LEAKY: Algorithm = Algorithm::LeakyBucket;

fn join<'a>(key: &'a [u8], pace: &'a StoreRate, burst: u32, at: Option<Moment>) -> Join<'a> {
    super::join(key, LEAKY, pace, waiting(burst), at)
}

/// Returns the instant at which the request is due.
fn due(answer: &StoreAnswer) -> Moment {
    match answer.verdict {
        Verdict::Pass { .. } => answer.now,
        Verdict::Delay { until, .. } => until,
        Verdict::Reject(refusal) => panic!("{refusal:?}"),
    }
}

fn millis(answer: &StoreAnswer) -> u128 {
    due(answer).since(at(0)).as_millis()
}

#[test]
fn a_time_given_back_goes_to_the_next_who_joins_and_to_nobody_else() {
    in_redis(async |server, store| {
        let key = server.key();
        let pace = pace("10r/s", LEAKY, 0);
        let now = Some(at(0));
        let answers = store.decide(&vec![join(&key, &pace, 5, now); 7]).await;
        let charged = |index: usize| answers[index].as_ref().unwrap().charge;
        let refund = |index| Refund {
            key: &key,
            algorithm: LEAKY,
            pace: &pace,
            charge: charged(index).unwrap(),
            at: now,
        };
        assert_eq!(charged(6), None);

        // A freed slot in the middle is reused by the next request. It cannot be refunded twice.
        let given = store.refund(&[refund(2), refund(2)]).await;
        assert_eq!(given, [Ok(true), Ok(false)]);
        let next = ask(&store, join(&key, &pace, 5, now)).await.unwrap();
        assert_eq!(millis(&next), 200);
        let full = ask(&store, join(&key, &pace, 5, now)).await.unwrap();
        assert!(full.charge.is_none());

        // Refunds of the last two slots, in any order, shorten the schedule.
        let given = store.refund(&[refund(4), refund(5)]).await;
        assert_eq!(given, [Ok(true), Ok(true)]);
        let again = store.decide(&vec![join(&key, &pace, 5, now); 3]).await;
        let again: Vec<_> = again.into_iter().map(Result::unwrap).collect();
        assert_eq!([millis(&again[0]), millis(&again[1])], [400, 500]);
        assert!(again[2].charge.is_none());

        // A slot in the past is spent, and a free slot that passes is lost.
        let later = Some(at(150));
        let spent = Refund {
            at: later,
            ..refund(1)
        };
        assert_eq!(store.refund(&[spent]).await, [Ok(false)]);
        assert_eq!(store.refund(&[refund(3)]).await, [Ok(true)]);
        let next = ask(&store, join(&key, &pace, 9, Some(at(350)))).await;
        assert_eq!(millis(&next.unwrap()), 600);
    });
}

#[test]
fn a_retune_of_one_file_reaches_all_gateways_by_their_replies() {
    in_redis(async |server, store| {
        let key = server.key();
        let (old, new) = (pace("1r/s", LEAKY, 100), pace("10r/s", LEAKY, 200));
        let joins = vec![join(&key, &old, 9, Some(at(0))); 3];
        let first = store.decide(&joins).await;
        let first: Vec<_> = first.into_iter().map(Result::unwrap).collect();
        assert_eq!(millis(&first[2]), 2000);
        let is_in_force = |it: &StoreAnswer| !it.in_force.differs && it.in_force.since.is_none();
        assert!(first.iter().all(is_in_force));

        // Half a second of two has passed. The rest passes ten times as fast.
        let retuned = ask(&store, join(&key, &new, 9, Some(at(500)))).await;
        let retuned = retuned.unwrap();
        assert_eq!(millis(&retuned), 750);
        assert_eq!(retuned.in_force.since, Some(at(500)));
        assert!(!retuned.in_force.differs);

        // The other gateway's file is older: it does not restore its rate, and learns the effective
        // rate.
        let other = ask(&store, join(&key, &old, 9, Some(at(500)))).await;
        let other = other.unwrap();
        assert_eq!(millis(&other), 850);
        assert_eq!(other.in_force.rate, "10r/s".parse().unwrap());
        assert_eq!(other.in_force.since, Some(at(500)));
        assert!(other.in_force.differs);

        // The reply lets the gateway re-pace its waiting requests: their slots are before the new
        // ones.
        let left = due(&first[2]).since(at(500)) / 10;
        assert_eq!(at(500) + left, at(650));
    });
}

#[test]
fn windows_go_by_the_count_of_the_rate_in_force() {
    in_redis(async |server, store| {
        let named = Algorithm::NAMED.into_iter();
        for (_, algorithm) in named.filter(|(_, it)| it.has_windows()) {
            let key = server.key();
            let (old, new) = (pace("5r/m", algorithm, 100), pace("2r/m", algorithm, 200));
            let ask = async |pace, burst| {
                let join = super::join(&key, algorithm, pace, waiting(burst), Some(at(0)));
                ask(&store, join).await.unwrap()
            };
            assert!(ask(&new, 1).await.charge.is_some());
            assert!(ask(&old, 4).await.charge.is_some());
            let third = ask(&old, 4).await;
            let is_refused = third.charge.is_none() && third.in_force.differs;
            assert!(is_refused, "{algorithm}");
            // A bill is charged in full, also by the gateway whose rate is not in force.
            let nine = Cost::new(9).expect("small");
            let limit = Limit::unlimited(Delay::Never, nine);
            let bill = super::join(&key, algorithm, &old, limit, Some(at(0)));
            let billed = super::ask(&store, bill).await.unwrap();
            assert_eq!(billed.charge.map(|it| it.cost()), Some(nine));
            let refused = ask(&new, 1).await.verdict;
            let Verdict::Reject(refusal) = refused else {
                panic!("{algorithm}: {refused:?}");
            };
            assert!((refusal.excess.requests() - 12.0).abs() < 1e-9);
        }
    });
}
