//! Tests of the heaviest keys: those with the most requests, rejections or waiting time.

use limit::{Measure, Window};

use super::super::HeavyKeys;
use super::*;

impl Bench {
    /// Returns the heaviest keys of the last minute.
    async fn heavy(&self, measure: Measure) -> HeavyKeys {
        self.zone.heavy_keys(measure, Window::Minute, 9).await
    }

    /// Returns key, requests, rejections and waited seconds of the last minute's keys.
    async fn summary(&self) -> Vec<(String, u64, u64, u64)> {
        let heavy = self.heavy(Measure::Requests).await;
        assert_eq!(heavy.error, 0, "few keys are counted exactly");
        let keys = heavy.keys.into_iter();
        keys.map(|it| {
            let name = String::from_utf8_lossy(it.name.beginning()).into_owned();
            (name, it.requests, it.rejections, it.wait.as_secs())
        })
        .collect()
    }
}

#[actix::test]
async fn requests_rejections_and_waits_count_for_their_key() {
    let bench = Bench::new("1r/s", 10);
    let mut of_a = bench.joins(5, "a", burst(2)).await;
    bench.pass("b", burst(2)).await;
    assert_eq!(
        bench.summary().await,
        [("a".to_owned(), 5, 2, 0), ("b".to_owned(), 1, 0, 0)],
        "a wait counts when it ends"
    );
    bench.advance(SECOND).await;
    bench.advance(SECOND).await;
    for (nth, joining) in of_a.iter_mut().enumerate() {
        let answer = peek(joining).await.expect("an answer");
        assert_eq!(answer.is_ok(), nth < 3);
        answer.map(ZoneAdmission::take).ok();
    }
    assert_eq!(bench.summary().await[0], ("a".to_owned(), 5, 2, 3));
    let waits = bench.heavy(Measure::Waits).await;
    assert_eq!((waits.keys.len(), waits.total), (1, 3_000_000_000));
    let state = waits.keys[0].state.as_ref().expect("a remembered key");
    assert_eq!((state.depth, state.active), (0, true));
    let rejections = bench.heavy(Measure::Rejections).await;
    assert_eq!((rejections.keys.len(), rejections.total), (1, 2));
}

#[actix::test]
async fn disconnects_and_dry_runs_do_not_count_as_rejections() {
    let bench = Bench::new("1r/m", 10);
    bench.pass("a", burst(1)).await;
    let waiting = bench.joined("a", burst(1)).await;
    drop(bench.join("a", burst(9)));
    let dry = bench.zone.join(bench.dry_run("a", burst(0))).await;
    assert!(dry.is_err(), "it would be rejected");
    let probed = bench.zone.probe(bench.dry_run("a", burst(0))).await;
    assert!(probed.is_some());
    Bench::settle().await;
    assert_eq!(bench.summary().await, [("a".to_owned(), 5, 0, 0)]);
    let probed = bench.zone.probe(bench.request("a", burst(1))).await;
    assert!(probed.is_some(), "such a request does not join any more");
    let probed = bench.zone.probe(bench.request("b", burst(1))).await;
    assert!(probed.is_none(), "such a request joins, and counts then");
    assert_eq!(bench.summary().await, [("a".to_owned(), 6, 1, 0)]);
    Bench::end(waiting).await;
    assert_eq!(bench.summary().await, [("a".to_owned(), 6, 1, 0)]);
}

#[actix::test]
async fn a_long_key_is_kept_by_its_beginning_and_counted_apart_from_others() {
    let bench = Bench::new("1r/s", 10);
    let long = "x".repeat(128);
    for key in [long.clone() + "1", long.clone() + "2", long.clone()] {
        bench.pass(&key, burst(0)).await;
    }
    let heavy = bench.heavy(Measure::Requests).await;
    // Whether the key is cut, its requests, and whether its state is known.
    let keys = heavy.keys.iter();
    let keys = keys.map(|it| (it.name.whole().is_none(), it.requests, it.state.is_some()));
    let mut keys: Vec<_> = keys.collect();
    keys.sort_unstable();
    assert_eq!(keys, [(false, 1, true), (true, 1, false), (true, 1, false)]);
    let mut begins = heavy.keys.iter().map(|it| it.name.beginning());
    assert!(begins.all(|it| it == long.as_bytes()));
}
