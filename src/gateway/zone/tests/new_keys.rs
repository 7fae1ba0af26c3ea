//! Tests of the bound on new keys.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

impl Bench {
    /// Bounds the new keys from now on; key `gold` has a plan.
    fn bound(&mut self, new_keys: &str) {
        let mut settings = self.zone.settings().clone();
        settings.new_keys = Some(new_keys.parse().unwrap());
        settings.plans = plans::plans("plans.gold = { keys = [\"gold\"] }");
        self.set(settings);
    }
}

/// Returns the state of a join: waits, or passed or rejected, by its own or the shared bucket.
async fn state_of(joining: &mut Joining<'static>) -> &'static str {
    // The first poll may send it to the shared bucket.
    if let Some(answer) = peek(joining).await {
        return name(answer);
    }
    Bench::settle().await;
    peek(joining).await.map_or("waits", name)
}

fn name(answer: Result<ZoneAdmission<'static>, Rejection>) -> &'static str {
    match answer {
        Ok(turn) => {
            let is_flood = turn.is_flood();
            turn.take();
            if is_flood { "shared" } else { "own" }
        }
        Err(rejection) if rejection.is_flood => "rejected shared",
        Err(_) => "rejected own",
    }
}

/// Makes one request of each of these invented keys.
async fn flood(bench: &Bench, keys: std::ops::Range<usize>) -> Vec<Joining<'static>> {
    let joins = keys.map(|key| bench.join(&format!("invented{key}"), burst(2)));
    let joins = joins.collect();
    Bench::settle().await;
    joins
}

async fn count(joins: &mut [Joining<'static>]) -> HashMap<&'static str, usize> {
    let mut counts = HashMap::new();
    for joining in joins {
        *counts.entry(state_of(joining).await).or_default() += 1;
    }
    counts
}

#[actix::test]
async fn above_the_budget_unknown_keys_share_a_bucket_and_known_ones_do_not() {
    let mut bench = Bench::new("1r/s", 1_000);
    bench.pass("known", burst(0)).await;
    bench.bound("10r/s");
    bench.advance(SECOND).await;
    let mut all = flood(&bench, 0..30).await;
    let expected = [
        ("own", 10),
        ("shared", 1),
        ("waits", 2),
        ("rejected shared", 17),
    ];
    assert_eq!(count(&mut all).await, HashMap::from(expected));

    let mut others = vec![bench.join("known", burst(2)), bench.join("gold", burst(2))];
    Bench::settle().await;
    assert_eq!(count(&mut others).await, HashMap::from([("own", 2)]));
    let mut again = vec![bench.join("invented3", burst(0))];
    Bench::settle().await;
    assert_eq!(
        count(&mut again).await,
        HashMap::from([("rejected own", 1)]),
        "a key that was taken is known, and its bucket is full"
    );

    bench.advance(SECOND).await;
    let mut waiting = all.split_off(11);
    waiting.truncate(2);
    assert_eq!(
        count(&mut waiting).await,
        HashMap::from([("shared", 1), ("waits", 1)]),
        "the shared bucket has the zone's pace"
    );
    let mut later = flood(&bench, 100..112).await;
    let expected = [("own", 10), ("waits", 1), ("rejected shared", 1)];
    assert_eq!(count(&mut later).await, HashMap::from(expected));
    let keys = bench.zone.keys(Order::Depth, 1).await;
    assert_eq!((&*keys[0].key, keys[0].depth), (&b""[..], 2));
}

#[actix::test]
async fn a_waiter_that_leaves_the_shared_bucket_is_refunded() {
    let mut bench = Bench::new("1r/s", 1_000);
    bench.bound("1r/m");
    let mut all = flood(&bench, 0..4).await;
    let expected = [("own", 1), ("shared", 1), ("waits", 2)];
    assert_eq!(count(&mut all).await, HashMap::from(expected));
    drop(all.remove(2));
    bench.advance(SECOND).await;
    assert_eq!(state_of(&mut all[2]).await, "shared", "it has moved up");
    // An unused admission is given back, too.
    let mut next = flood(&bench, 10..11).await;
    assert_eq!(state_of(&mut next[0]).await, "waits");
    bench.advance(SECOND).await;
    let turn = peek(&mut next[0])
        .await
        .expect("its turn")
        .expect("granted");
    drop(turn);
    Bench::settle().await;
    let mut last = flood(&bench, 20..21).await;
    assert_eq!(state_of(&mut last[0]).await, "shared");
}

#[actix::test]
async fn a_request_that_leaves_before_its_redirection_is_charged_nowhere() {
    let mut bench = Bench::new("1r/s", 1_000);
    bench.bound("1r/m");
    let all = flood(&bench, 0..9).await;
    drop(all);
    Bench::settle().await;
    let mut next = flood(&bench, 10..11).await;
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
    let mut two = vec![bench.join("two", burst(0))];
    Bench::settle().await;
    assert_eq!(count(&mut two).await, HashMap::from([("shared", 1)]));
    let rejection = probe("three").await.expect("the shared bucket is full");
    assert!(rejection.is_flood);
    let rejection = probe("one").await.expect("its own bucket is full");
    assert!(!rejection.is_flood);
}

#[actix::test]
async fn a_changed_or_removed_bound_applies_at_once() {
    let mut bench = Bench::new("1r/m", 1_000);
    bench.bound("1r/h");
    let mut all = flood(&bench, 0..3).await;
    let expected = [("own", 1), ("shared", 1), ("waits", 1)];
    assert_eq!(count(&mut all).await, HashMap::from(expected));
    let settings = config::Zone {
        new_keys: None,
        ..bench.zone.settings().clone()
    };
    bench.set(settings);
    let mut all = flood(&bench, 10..20).await;
    assert_eq!(count(&mut all).await, HashMap::from([("own", 10)]));
}
