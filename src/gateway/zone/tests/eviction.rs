//! Tests of the start, parking and eviction of actors.

use super::*;

#[actix::test]
async fn a_key_gets_an_actor_when_a_request_finds_a_level() {
    let bench = Bench::new("1r/s", 10);
    for _ in 0..3 {
        bench.pass("a", burst(1)).await;
        assert_eq!(bench.active_and_parked().await, (0, 1));
        bench.advance(SECOND).await;
    }
    bench.pass("a", burst(1)).await;
    let _waiting = bench.joined("a", burst(1)).await;
    assert_eq!(bench.active_and_parked().await, (1, 0));
    assert_eq!(bench.zone.stats(1).await.depth, 1);
}

#[actix::test]
async fn the_least_recently_used_key_is_evicted_with_or_without_an_actor() {
    for has_actor in [true, false] {
        let bench = Bench::new("1r/s", 2);
        bench.pass("a", burst(1)).await;
        if has_actor {
            let mut waiting = bench.join("a", burst(1));
            bench.advance(SECOND).await;
            let _used = used(&mut waiting).await;
        }
        bench.advance(100 * MS).await;
        bench.pass("b", burst(1)).await;
        bench.advance(100 * MS).await;
        bench.pass("c", burst(1)).await;
        // "b" is remembered, so its next request is rejected.
        assert!(bench.join("b", burst(0)).await.is_err(), "{has_actor}");
        assert!(bench.join("a", burst(0)).await.is_ok(), "{has_actor}");
    }
}

#[actix::test]
async fn many_new_keys_create_few_actors() {
    let bench = Bench::new("1r/d", 100_000);
    let limit = nodelay(burst(1));
    // A key with a waiter keeps its actor, however many other keys arrive.
    bench.pass("waits", burst(1)).await;
    let mut waiting = bench.join("waits", burst(1));
    for round in 0..3 {
        for key in 0..6_000 {
            let joined = bench.join(&key.to_string(), limit).await;
            // The charge is remembered, whether the key is parked or not.
            assert_eq!(joined.is_ok(), round < 2, "{key}");
            joined.ok().map(ZoneAdmission::take);
        }
    }
    let (active, parked) = bench.active_and_parked().await;
    assert!((4_000..4_100).contains(&active), "{active}");
    assert_eq!(active + parked, 6_001);
    assert!(waits(&mut waiting).await);
    bench.advance(24 * 60 * 60 * SECOND).await;
    used(&mut waiting).await;
}

#[actix::test]
async fn many_new_keys_create_few_actors_while_many_keys_have_waiters() {
    let bench = Bench::new("1r/d", 100_000);
    let limit = nodelay(burst(1));
    let mut waiting = Vec::new();
    for key in 0..4_500 {
        let key = format!("waits {key}");
        bench.pass(&key, burst(1)).await;
        waiting.push(bench.join(&key, burst(1)));
        peek(waiting.last_mut().unwrap()).await;
    }
    for key in 0..30_000 {
        let joined = bench.join(&key.to_string(), limit).await;
        joined.ok().map(ZoneAdmission::take);
    }
    let (active, parked) = bench.active_and_parked().await;
    assert!(active < 9_200, "{active}");
    assert_eq!(active + parked, 34_500);
}
