//! Tests of calls with several keys. `traces` tests that they decide like single calls.

use std::collections::BTreeMap;
use std::time::Duration;

use gateway::store::{Error, Store, StoreAnswer, form};
use limit::Algorithm;

use super::server::{Server, in_redis, run};
use super::{ask, at, join, nodelay, pace, waiting};
use crate::programs::redis::Redis;

fn is_charged(answer: &Result<StoreAnswer, Error>) -> bool {
    answer.as_ref().expect("an answer").charge.is_some()
}

#[test]
fn a_held_request_gets_its_slot_by_the_rate_of_its_own_gateway() {
    in_redis(async |server, store| {
        let algorithm = Algorithm::LeakyBucket;
        // Within a minute, the slow rate admits one request, and the fast rate admits all.
        for (own, newer, most) in [("1r/m", "1000r/s", 3), ("1000r/s", "1r/m", 12)] {
            let (own, newer) = (pace(own, algorithm, 1), pace(newer, algorithm, 2));
            let key = server.key();
            let join = |pace, limit| join(&key, algorithm, pace, limit, Some(at(0)));
            ask(&store, join(&newer, waiting(2)))
                .await
                .expect("an answer");
            let all = [join(&own, waiting(2).with_above_burst(9)); 20];
            let answers = store.decide(&all).await;
            let accepted = answers.iter().filter(|it| is_charged(it)).count();
            assert_eq!(accepted, most - 1, "{:?}", own.rate());
        }
    });
}

/// Returns how often Redis ran each command since `CONFIG RESETSTAT`.
fn commands(server: &Server) -> BTreeMap<String, u64> {
    let info: String = server.ask("INFO commandstats", &[]);
    let count = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(':')?;
        let calls = rest.strip_prefix("calls=")?.split(',').next()?;
        Some((name.to_owned(), calls.parse().ok()?))
    };
    info.lines().filter_map(count).collect()
}

#[test]
fn a_batch_reads_and_writes_each_key_once() {
    in_redis(async |server, store| {
        let pace = pace("1000r/s", Algorithm::LeakyBucket, 0);
        let keys: Vec<_> = (0..130).map(|_| server.key()).collect();
        let join = |key, burst| join(key, Algorithm::LeakyBucket, &pace, waiting(burst), None);
        // This call loads the scripts.
        ask(&store, join(&keys[0], 9)).await.expect("an answer");
        let () = server.ask("CONFIG RESETSTAT", &[]);
        // Two routes with different limits, and each key four times.
        let all: Vec<_> = [90, 90, 80, 80]
            .into_iter()
            .flat_map(|burst| keys.iter().map(move |key| (key, burst)))
            .map(|(key, burst)| join(key, burst))
            .collect();
        let answers = store.decide(&all).await;
        assert!(answers.iter().all(is_charged));
        let counted = commands(server);
        let count = |name: &str| counted.get(name).copied().unwrap_or_default();
        // A call has at most 64 keys.
        let expected = [("evalsha", 3), ("mget", 3), ("set", 130), ("time", 3)];
        assert_eq!(expected.map(|(name, _)| (name, count(name))), expected);
        let known = ["evalsha", "mget", "set", "time", "config|resetstat", "info"];
        let is_known = |name: &String| known.contains(&name.as_str());
        assert!(counted.keys().all(is_known), "{counted:?}");
    });
}

#[test]
fn of_a_long_log_a_batch_reads_and_writes_only_parts() {
    const SECONDS: u64 = 1000;
    in_redis(async |server, store| {
        let algorithm = Algorithm::SlidingWindowLog;
        let pace = pace("2000r/2000s", algorithm, 0);
        let key = server.key();
        let join = |millis| join(&key, algorithm, &pace, nodelay(1999), Some(at(millis)));
        for second in 0..SECONDS {
            let answer = ask(&store, join(1000 * second)).await.expect("an answer");
            assert!(answer.charge.is_some());
        }
        let name = [b"drip:".as_slice(), &key].concat();
        let head: Vec<u8> = server.ask("HGET", &[&name, b"head"]);
        assert_eq!(head[0], form(algorithm));
        assert!(head.len() < 300, "{}", head.len());
        let parts: u64 = server.ask("HLEN", &[&name]);
        assert!((80..120).contains(&parts), "{parts}");

        // As many keys expire as are added.
        let () = server.ask("CONFIG RESETSTAT", &[]);
        for second in 2 * SECONDS..3 * SECONDS {
            let answer = ask(&store, join(1000 * second)).await.expect("an answer");
            assert!(answer.charge.is_some());
        }
        let counted = commands(server);
        let count = |name: &str| counted.get(name).copied().unwrap_or_default();
        assert_eq!(count("evalsha"), SECONDS);
        for (name, most) in [
            ("mget", SECONDS),
            ("hget", SECONDS * 5 / 4),
            ("hset", SECONDS * 5 / 4),
            ("hdel", SECONDS / 4),
            ("pexpire", 5),
            ("set", 0),
        ] {
            assert!(count(name) <= most, "{name}: {counted:?}");
        }

        // Expired entries are gone, and the few that remain are one string again.
        let answer = ask(&store, join(1_000_000 * SECONDS)).await;
        assert!(answer.expect("an answer").charge.is_some());
        let state: Vec<u8> = server.ask("GET", &[&name]);
        assert_eq!(state[0], form(algorithm));
    });
}

#[test]
fn a_key_of_others_is_refused_alone_and_left_as_it_is() {
    in_redis(async |server, store| {
        // State written by the previous version must be ignored.
        let old = b"3|0|1800000000000000|1800000000000003|-|1000000000;10000;1000000;10;10r/s|0|0";
        let () = server.ask("SET drip:text", &[b"by others"]);
        let () = server.ask("SET drip:old", &[old]);
        let _: u64 = server.ask("RPUSH drip:list", &[b"by others"]);
        let _: u64 = server.ask("HSET drip:hash by others", &[]);
        let taken: [&[u8]; 4] = [b"text", b"old", b"list", b"hash"];
        for (_, algorithm) in Algorithm::NAMED {
            let pace = pace("1r/h", algorithm, 0);
            let (before, behind) = (server.key(), server.key());
            let mut keys: Vec<&[u8]> = taken.to_vec();
            keys.insert(0, &before);
            keys.push(&behind);
            let joins: Vec<_> = keys
                .iter()
                .flat_map(|key| [*key; 2])
                .map(|key| join(key, algorithm, &pace, nodelay(0), None))
                .collect();
            for round in 0..2 {
                let answers = store.decide(&joins).await;
                let received: Vec<_> = answers
                    .iter()
                    .map(|it| it.as_ref().map(|it| it.charge.is_some()))
                    .collect();
                // Each key admits one request, and only once.
                let first = [Ok(round == 0), Ok(false)];
                assert_eq!([received[0], received[1]], first, "{algorithm}");
                assert_eq!([received[10], received[11]], first, "{algorithm}");
                let refused = |it: &Result<bool, &Error>| matches!(it, Err(Error::Refused(_)));
                let are_refused = received[2..10].iter().all(refused);
                assert!(are_refused, "{algorithm}: {received:?}");
            }
        }
        let text: Vec<u8> = server.ask("GET drip:text", &[]);
        assert_eq!(text, b"by others");
        let kept: Vec<u8> = server.ask("GET drip:old", &[]);
        assert_eq!(kept, old);
        let list: Vec<Vec<u8>> = server.ask("LRANGE drip:list 0 -1", &[]);
        assert_eq!(list, [b"by others"]);
        assert_eq!(server.ask::<u64>("HLEN drip:hash", &[]), 1);
    });
}

#[test]
fn a_node_of_a_cluster_that_is_asked_alone_decides_on_all_keys_it_has() {
    let port = crate::support::free_address().port().to_string();
    let node = Redis::with(&["--cluster-enabled", "yes", "--cluster-port", &port]);
    assert_eq!(node.ask("CLUSTER ADDSLOTSRANGE 0 16383"), "+OK");
    crate::support::eventually("the cluster is up", || node.ask("SET some thing") == "+OK");
    run(async {
        let url = node.url().parse().expect("a URL");
        let store = Store::new(url, "drip:", Duration::from_secs(10));
        let pace = pace("1r/h", Algorithm::LeakyBucket, 0);
        let keys: Vec<_> = (0..50).map(|nth| format!("z:{nth}").into_bytes()).collect();
        let join = |key| join(key, Algorithm::LeakyBucket, &pace, nodelay(1), None);
        let joins: Vec<_> = keys.iter().map(|key| join(key)).collect();
        // All batches are sent before the first is refused.
        let batches = [(); 3].map(|()| store.decide(&joins));
        let answers = futures_util::future::join_all(batches).await.concat();
        let charged = answers
            .iter()
            .map(|it| it.as_ref().expect("an answer").charge);
        let passed = charged.flatten().count();
        assert_eq!(passed, 2 * keys.len());
    });
}
