//! Tests of the store with Redis's own clock, over real connections.

use std::time::Duration;

use gateway::store::{Error, Join, Store};
use limit::{Algorithm, Verdict};

use super::server::{Server, in_redis, run, timed};
use super::{ask, join, nodelay, pace, waiting};
use crate::redis::shared::relay::Relay;

fn passes(verdict: Verdict) -> bool {
    !matches!(verdict, Verdict::Reject(_))
}

#[test]
fn many_at_once_never_exceed_the_limit() {
    let server = Server::start();
    for (_, algorithm) in Algorithm::NAMED {
        let (key, url) = (server.key(), server.url());
        let gateway = || {
            run(async {
                let store = Store::new(url.parse().unwrap(), "drip:", Duration::from_secs(20));
                let pace = pace("100r/366d", algorithm, 0);
                let join = join(&key, algorithm, &pace, nodelay(99), None);
                let mut passed = 0;
                for batch in [1, 9, 90, 100, 300, 500] {
                    let answers = store.decide(&vec![join; batch]).await;
                    let verdicts = answers.into_iter().map(|it| it.unwrap().verdict);
                    passed += verdicts.filter(|it| passes(*it)).count();
                }
                passed
            })
        };
        let passed: usize = std::thread::scope(|threads| {
            let gateways: Vec<_> = (0..8).map(|_| threads.spawn(gateway)).collect();
            gateways.into_iter().map(|it| it.join().unwrap()).sum()
        });
        assert_eq!(passed, 100, "{algorithm}");
    }
}

#[test]
fn idle_keys_vanish_by_themselves() {
    in_redis(async |server, store| {
        for (_, algorithm) in Algorithm::NAMED {
            let key = server.key();
            let pace = pace("5r/s", algorithm, 0);
            let join = join(&key, algorithm, &pace, nodelay(4), None);
            ask(&store, join).await.unwrap();
            let name = [b"drip:".as_slice(), &key].concat();
            let left: i64 = server.ask("PTTL", &[&name]);
            // One interval, one window, or the current window and the next.
            let longest = match algorithm {
                Algorithm::LeakyBucket | Algorithm::TokenBucket => 202,
                Algorithm::SlidingWindowCounter => 2002,
                _ => 1002,
            };
            assert!((1..=longest).contains(&left), "{algorithm}: {left} ms");
        }
        tokio::time::sleep(Duration::from_millis(2100)).await;
        assert_eq!(server.ask::<u64>("DBSIZE", &[]), 0);
    });
}

/// A gateway never calls a script before it has sent it.
///
/// A batch whose script Redis does not know is sent again, so a later batch could be decided first.
#[test]
fn a_gateway_never_calls_a_script_before_it_has_sent_it() {
    let server = Server::start();
    run(async {
        for _ in 0..2 {
            let store = server.store();
            for (_, algorithm) in Algorithm::NAMED {
                let key = server.key();
                let pace = pace("1r/s", algorithm, 0);
                let join = join(&key, algorithm, &pace, nodelay(1), None);
                // The calls share the connection, so the second one is sent before the first is
                // answered.
                let (one, other) = (&[join; 1], &[join; 2]);
                let (one, other) = tokio::join!(store.decide(one), store.decide(other));
                let passed = one.into_iter().chain(other);
                let passed: Vec<_> = passed.map(|it| passes(it.unwrap().verdict)).collect();
                assert_eq!(passed, [true, true, false], "{algorithm}");
            }
            // Also if the server has lost the scripts that the gateway has sent.
            let () = server.ask("SCRIPT FLUSH", &[]);
        }
        let errors: String = server.ask("INFO", &[b"errorstats"]);
        assert!(!errors.contains("NOSCRIPT"), "{errors}");
    });
}

#[test]
fn a_thousand_joins_are_one_round_trip() {
    let server = Server::start();
    run(async {
        let way = Duration::from_millis(250);
        let relay = Relay::to(server.redis.address);
        relay.slow_down(2 * way);
        let url = format!("redis://{}", relay.address);
        let store = Store::new(url.parse().unwrap(), "drip:", Duration::from_secs(10));
        let keys: Vec<_> = (0..1000).map(|_| server.key()).collect();
        let pace = pace("1r/s", Algorithm::LeakyBucket, 0);
        let join = |key| join(key, Algorithm::LeakyBucket, &pace, waiting(9), None);
        // The first call connects and loads the scripts.
        ask(&store, join(&keys[0])).await.unwrap();
        let joins: Vec<_> = keys.iter().map(|key| join(key)).collect();
        let (answers, took) = timed(store.decide(&joins)).await;
        assert!(answers.iter().all(Result::is_ok));
        // Duration of a thousand decisions without the latency, on a machine as busy as this one.
        let url = server.url().parse().unwrap();
        let near = Store::new(url, "drip:", Duration::from_secs(10));
        ask(&near, join(&keys[0])).await.unwrap();
        let (_, alone) = timed(near.decide(&joins)).await;
        let is_one_way = took >= 2 * way && took < 4 * way + 2 * alone;
        assert!(is_one_way, "{took:?} {alone:?}");
    });
}

#[test]
fn failures_are_reported_in_time_and_end_with_their_cause() {
    run(async {
        let pace = pace("1r/s", Algorithm::TokenBucket, 0);
        let join = join(b"zone:key", Algorithm::TokenBucket, &pace, nodelay(9), None);
        let nowhere = "redis+unix:///nowhere/at/all".parse().unwrap();
        let nobody = Store::new(nowhere, "", Duration::from_secs(1));
        let answer = ask(&nobody, join).await;
        assert!(matches!(answer, Err(Error::Unreachable(_))));

        let server = Server::start();
        let url = server.url().parse().unwrap();
        let store = Store::new(url, "drip:", Duration::from_millis(100));
        assert!(ask(&store, join).await.is_ok());
        let () = server.ask("CLIENT PAUSE 700 ALL", &[]);
        let (answer, took) = timed(ask(&store, join)).await;
        assert_eq!(answer, Err(Error::Late));
        assert!(took < Duration::from_millis(600), "{took:?}");
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert!(ask(&store, join).await.is_ok());

        // The store reconnects after its connections are cut. At most one batch fails.
        let _: u64 = server.ask("CLIENT KILL TYPE normal", &[]);
        let _ = ask(&store, join).await;
        assert!(ask(&store, join).await.is_ok());

        // A key with foreign data: only that join fails.
        let () = server.ask("SET drip:taken", &[b"by others"]);
        let taken = Join {
            key: b"taken",
            algorithm: Algorithm::SlidingWindowLog,
            ..join
        };
        let answers = store.decide(&[taken, join]).await;
        assert!(matches!(answers[0], Err(Error::Refused(_))), "{answers:?}");
        assert!(answers[1].is_ok());
    });
}

#[test]
fn a_redis_that_is_too_small_drops_keys_and_goes_on_deciding() {
    const MANY: usize = 40_000;
    let server = Server::start();
    let used: String = server.ask("INFO memory", &[]);
    let used = used
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"));
    let used: usize = used.expect("a line").trim().parse().expect("a number");
    // Memory for a third of the keys.
    let most = used + MANY * 240 / 3;
    server.ask::<()>(&format!("CONFIG SET maxmemory {most}"), &[]);
    server.ask::<()>("CONFIG SET maxmemory-policy volatile-ttl", &[]);
    run(async {
        let store = server.store();
        let pace = pace("100r/h", Algorithm::LeakyBucket, 0);
        let join = |key| join(key, Algorithm::LeakyBucket, &pace, nodelay(99), None);
        // This key takes an hour to drain, and the others half a minute.
        let busy = server.key();
        let passed = store.decide(&vec![join(&busy); 200]).await;
        let passed = passed.iter().flatten().filter(|it| passes(it.verdict));
        assert_eq!(passed.count(), 100);
        let names = (0..MANY).map(|nth| format!("flood:{nth}").into_bytes());
        let names: Vec<Vec<u8>> = names.collect();
        for names in names.chunks(256) {
            let joins: Vec<Join> = names.iter().map(|name| join(name)).collect();
            for answer in store.decide(&joins).await {
                assert!(passes(answer.expect("a decision").verdict));
            }
        }
        let left: usize = server.ask("DBSIZE", &[]);
        assert!((1000..MANY * 2 / 3).contains(&left), "{left}");
        let again = store.decide(&[join(&busy)]).await;
        assert!(!passes(again[0].as_ref().expect("a decision").verdict));

        // If no key may be evicted, a full Redis counts as out.
        server.ask::<()>("CONFIG SET maxmemory-policy noeviction", &[]);
        server.ask::<()>("CONFIG SET maxmemory 1000000", &[]);
        let refused = store.decide(&[join(b"one more")]).await;
        let is_out = refused[0].as_ref().is_err_and(Error::is_outage);
        assert!(is_out, "{refused:?}");
    });
}
