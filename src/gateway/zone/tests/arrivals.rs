//! Tests of the recording of arrivals.

use super::*;

/// Returns the time since the start, key, cost and dry run of each recorded arrival.
async fn recorded(bench: &Bench) -> Vec<(Duration, String, u32, bool)> {
    let arrivals = bench.zone.arrivals().await;
    let entries = arrivals.in_order().map(|arrival| {
        let key = String::from_utf8_lossy(arrival.key).into_owned();
        let (since, cost) = (arrival.time.since(START), arrival.limit.cost.get());
        (since, key, cost, arrival.dry_run)
    });
    entries.collect()
}

#[actix::test]
async fn each_join_and_each_rejected_probe_is_recorded_once() {
    let bench = Bench::new("1r/s", 100);
    let probe = |key: &str, limit, dry_run| {
        bench.zone.probe(Join {
            dry_run,
            ..bench.request(key, limit)
        })
    };
    bench.pass("a", costing(7, nodelay(burst(9)))).await;
    bench.advance(SECOND).await;
    // The key has an actor, which would reject the first probe and accept the second one.
    assert!(probe("a", burst(0), true).await.is_some());
    assert!(probe("a", burst(99), true).await.is_none());
    assert!(bench.join("a", burst(0)).await.is_err());
    bench.advance(3 * SECOND).await;
    // The actor has ended.
    assert!(probe("a", burst(0), false).await.is_some());
    assert!(probe("b", burst(0), false).await.is_none());
    // Second, cost and dry run.
    let expected = [(0, 7, false), (1, 1, true), (1, 1, false), (4, 1, false)];
    let expected = expected.map(|(at, cost, dry)| (at * SECOND, "a".to_owned(), cost, dry));
    assert_eq!(recorded(&bench).await, expected);

    // No request arrives for ten minutes.
    for _ in 0..301 {
        bench.advance(2 * SECOND).await;
    }
    assert_eq!(recorded(&bench).await, []);
}
