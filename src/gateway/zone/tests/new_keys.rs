//! Tests of the bound on new keys: above it, unknown keys share one bucket.

use std::collections::BTreeMap;
use std::ops::Range;

use super::*;

impl Bench {
    /// Bounds the new keys from now on; key `gold` has a plan.
    fn bound(&mut self, new_keys: &str) {
        let mut settings = self.zone.settings().clone();
        settings.new_keys = Some(new_keys.parse().unwrap());
        settings.plans = plans::plans("plans.gold = { keys = [\"gold\"] }");
        self.set(settings);
    }

    /// Makes one request of each of these invented keys.
    async fn flood(&self, keys: Range<usize>) -> Vec<Joining<'static>> {
        let joins = keys.map(|key| self.join(&format!("invented{key}"), burst(2)));
        let joins = joins.collect();
        Self::settle().await;
        joins
    }
}

/// Returns the state of a join: `waits`, or by which bucket it was admitted or rejected.
async fn state_of(joining: &mut Joining<'static>) -> &'static str {
    let mut answer = peek(joining).await;
    if answer.is_none() {
        // The first poll may have sent it to the shared bucket.
        Bench::settle().await;
        answer = peek(joining).await;
    }
    match answer {
        None => "waits",
        Some(Err(rejection)) if rejection.is_flood => "rejected by shared",
        Some(Err(_)) => "rejected by own",
        Some(Ok(admission)) => {
            let is_flood = admission.is_flood();
            admission.take();
            if is_flood { "shared" } else { "own" }
        }
    }
}

/// Returns the number of joins in each state: `10 own, 1 shared`.
async fn count(joins: &mut [Joining<'static>]) -> String {
    let mut counts = BTreeMap::<_, usize>::new();
    for joining in joins {
        *counts.entry(state_of(joining).await).or_default() += 1;
    }
    let counts = counts.into_iter();
    let counts = counts.map(|(state, count)| format!("{count} {state}"));
    counts.collect::<Vec<_>>().join(", ")
}

#[actix::test]
async fn above_the_budget_unknown_keys_share_a_bucket_and_known_ones_do_not() {
    let mut bench = Bench::new("1r/s", 1_000);
    bench.pass("known", burst(0)).await;
    bench.bound("10r/s");
    bench.advance(SECOND).await;
    let mut all = bench.flood(0..30).await;
    let expected = "10 own, 17 rejected by shared, 1 shared, 2 waits";
    assert_eq!(count(&mut all).await, expected);

    let mut others = [bench.join("known", burst(2)), bench.join("gold", burst(2))];
    Bench::settle().await;
    assert_eq!(count(&mut others).await, "2 own");
    // A key that took a part of the budget is known, and its bucket is full.
    let mut again = bench.joined("invented3", burst(0)).await;
    assert_eq!(state_of(&mut again).await, "rejected by own");

    bench.advance(SECOND).await;
    // The shared bucket has the zone's rate.
    let mut waiting = all.split_off(11);
    waiting.truncate(2);
    assert_eq!(count(&mut waiting).await, "1 shared, 1 waits");
    let mut later = bench.flood(100..112).await;
    let expected = "10 own, 1 rejected by shared, 1 waits";
    assert_eq!(count(&mut later).await, expected);
    let keys = bench.zone.keys(Order::Depth, 1).await;
    assert_eq!((&*keys[0].key, keys[0].depth), (&b""[..], 2));
}

#[actix::test]
async fn a_waiter_that_leaves_the_shared_bucket_is_refunded() {
    let mut bench = Bench::new("1r/s", 1_000);
    bench.bound("1r/m");
    let mut all = bench.flood(0..4).await;
    assert_eq!(count(&mut all).await, "1 own, 1 shared, 2 waits");
    drop(all.remove(2));
    bench.advance(SECOND).await;
    assert_eq!(state_of(&mut all[2]).await, "shared", "moved up");
    // An unused admission is refunded, too.
    let mut next = bench.flood(10..11).await;
    assert_eq!(state_of(&mut next[0]).await, "waits");
    bench.advance(SECOND).await;
    let answer = peek(&mut next[0]).await.expect("an answer");
    Bench::end(answer.expect("admitted")).await;
    let mut last = bench.flood(20..21).await;
    assert_eq!(state_of(&mut last[0]).await, "shared");
}

#[actix::test]
async fn a_request_that_leaves_before_its_redirection_is_charged_nowhere() {
    let mut bench = Bench::new("1r/s", 1_000);
    bench.bound("1r/m");
    Bench::end(bench.flood(0..9).await).await;
    let mut next = bench.flood(10..11).await;
    assert_eq!(state_of(&mut next[0]).await, "shared");
}

#[actix::test]
async fn a_probe_uses_the_shared_bucket_and_takes_no_new_key() {
    let mut bench = Bench::new("1r/m", 1_000);
    bench.bound("2r/m");
    let zone = bench.zone;
    let probe = |key: &str| zone.probe(bench.request(key, burst(0)));
    assert!(probe("one").await.is_none());
    assert!(probe("one").await.is_none());
    bench.pass("one", burst(0)).await;
    assert!(probe("two").await.is_none(), "the shared bucket is empty");
    let mut two = bench.joined("two", burst(0)).await;
    assert_eq!(state_of(&mut two).await, "shared");
    let rejection = probe("three").await.expect("the shared bucket is full");
    assert!(rejection.is_flood);
    let rejection = probe("one").await.expect("its own bucket is full");
    assert!(!rejection.is_flood);
}

#[actix::test]
async fn a_changed_or_removed_bound_applies_at_once() {
    let mut bench = Bench::new("1r/m", 1_000);
    bench.bound("1r/h");
    let mut all = bench.flood(0..3).await;
    assert_eq!(count(&mut all).await, "1 own, 1 shared, 1 waits");
    let settings = config::Zone {
        new_keys: None,
        ..bench.zone.settings().clone()
    };
    bench.set(settings);
    let mut all = bench.flood(10..20).await;
    assert_eq!(count(&mut all).await, "10 own");
}
