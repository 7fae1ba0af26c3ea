//! Tests of `in_flight`: the bound of a key's running requests.

use super::*;

/// Returns the permit of a join that was admitted.
async fn runs(joining: &mut Joining<'static>) -> InFlightPermit<'static> {
    used(joining).await.expect("a place")
}

impl Bench {
    async fn state(&self, key: &str) -> (usize, usize) {
        let keys = self.zone.keys(Order::Depth, 9).await;
        let state = keys.iter().find(|state| &*state.key == key.as_bytes());
        state.map_or((0, 0), |state| (state.in_flight, state.depth))
    }
}

#[actix::test]
async fn in_flight_requests_run_and_the_others_wait_in_order() {
    let bench = Bench::without_rate();
    let limit = at_most(2, 2);
    let mut joins: Vec<_> = (0..5).map(|_| bench.join("a", limit)).collect();
    let mut other = bench.join("b", limit);
    Bench::settle().await;
    let first = runs(&mut joins[0]).await;
    let second = runs(&mut joins[1]).await;
    assert!(peek(&mut joins[2]).await.is_none());
    assert!(peek(&mut joins[3]).await.is_none());
    assert_eq!(rejected(&mut joins[4]).await, Some(Rejected::InFlight));
    runs(&mut other).await;
    assert_eq!(bench.state("a").await, (2, 2));
    drop(second);
    Bench::settle().await;
    let third = runs(&mut joins[2]).await;
    assert!(peek(&mut joins[3]).await.is_none());
    drop((first, third));
    Bench::settle().await;
    let fourth = runs(&mut joins[3]).await;
    assert_eq!(bench.state("a").await, (1, 0));
    drop(fourth);
    Bench::settle().await;
    assert_eq!(bench.state("a").await, (0, 0));
}

#[actix::test]
async fn a_request_waits_for_its_slot_and_then_for_a_permit() {
    let bench = Bench::new("10r/s", 10);
    let limit = at_most(1, 3);
    let mut joins = bench.joins(4, "a", limit).await;
    let first = runs(&mut joins[0]).await;
    drop(first);
    bench.advance(Duration::from_millis(99)).await;
    assert!(peek(&mut joins[1]).await.is_none(), "its time is at 0.1 s");
    bench.advance(Duration::from_millis(1)).await;
    let second = runs(&mut joins[1]).await;
    bench.advance(Duration::from_millis(300)).await;
    assert!(peek(&mut joins[2]).await.is_none(), "no place is free");
    // Two of three may wait, although the bucket is empty.
    let mut more = bench.joins(2, "a", limit).await;
    assert!(peek(&mut more[0]).await.is_none());
    assert_eq!(rejected(&mut more[1]).await, Some(Rejected::InFlight));
    drop(second);
    Bench::settle().await;
    let _third = runs(&mut joins[2]).await;
    assert!(peek(&mut joins[3]).await.is_none());
}

#[actix::test]
async fn a_request_rejected_for_in_flight_is_not_charged() {
    let bench = Bench::new("1r/m", 10);
    let nodelay = nodelay(at_most(1, 0));
    let permit = bench.pass("a", nodelay).await.expect("a place");
    bench.advance(Duration::from_secs(60)).await;
    for _ in 0..3 {
        let rejection = bench.join("a", nodelay).await.err().expect("no place");
        assert_eq!(rejection.reason, Rejected::InFlight);
        assert_eq!(rejection.retry_after, Duration::from_secs(1));
    }
    drop(permit);
    Bench::settle().await;
    assert!(bench.join("a", nodelay).await.is_ok());
}

#[actix::test]
async fn a_waiter_that_leaves_and_an_unused_admission_return_their_permits() {
    let bench = Bench::without_rate();
    let limit = at_most(1, 5);
    let mut joins = bench.joins(4, "a", limit).await;
    let first = runs(&mut joins[0]).await;
    drop(joins.remove(1));
    drop(first);
    Bench::settle().await;
    // The next request is admitted, but its client disconnects before it uses the admission.
    drop(joins.remove(1));
    Bench::settle().await;
    runs(&mut joins[1]).await;
    let turn = bench.join("b", limit).await.expect("a turn");
    drop(turn);
    Bench::settle().await;
    assert_eq!(bench.state("b").await, (0, 0));
}

#[actix::test]
async fn a_key_is_neither_parked_nor_evicted_while_its_requests_run() {
    let mut bench = Bench::new("1r/s", 1);
    bench.retune(Rate::UNLIMITED);
    let limit = at_most(1, 0);
    let permit = bench.pass("a", limit).await.expect("a place");
    for _ in 0..90 {
        bench.advance(Duration::from_secs(1)).await;
    }
    let newcomer = bench.join("b", limit).await;
    assert_eq!(newcomer.err().expect("no room").reason, Rejected::Keys);
    let again = bench.join("a", limit).await;
    assert_eq!(again.err().expect("no place").reason, Rejected::InFlight);
    drop(permit);
    Bench::settle().await;
    assert!(bench.join("b", limit).await.is_ok());
}

#[actix::test]
async fn a_key_that_panics_still_counts_its_requests_in_flight() {
    let bench = Bench::without_rate();
    let limit = at_most(1, 1);
    let mut joins = bench.joins(2, "a", limit).await;
    let permit = runs(&mut joins[0]).await;
    bench.crash_key("a").await;
    assert_eq!(rejected(&mut joins[1]).await, Some(Rejected::Restart));
    let mut next = bench.join("a", limit);
    Bench::settle().await;
    assert!(peek(&mut next).await.is_none());
    drop(permit);
    Bench::settle().await;
    runs(&mut next).await;
}

#[test]
fn permits_from_before_a_panic_do_not_free_later_permits() {
    let _counted = crate::observe::metrics::count_alone();
    run(async {
        let bench = Bench::without_rate();
        let limit = at_most(1, 1);
        let old = bench.pass("a", limit).await.expect("a place");
        bench.crash_supervisor().await;
        let mut joins = bench.joins(2, "a", limit).await;
        let _new = runs(&mut joins[0]).await;
        drop(old);
        Bench::settle().await;
        assert!(peek(&mut joins[1]).await.is_none());
        assert_eq!(bench.state("a").await, (1, 1));
    });
}

#[actix::test]
async fn a_dry_run_counts_what_would_wait_and_what_would_be_rejected() {
    let bench = Bench::without_rate();
    let join = || bench.zone.join(bench.dry_run("a", at_most(1, 1)));
    let runs = join().await.expect("a turn");
    let waits = join().await.expect("a turn");
    assert!(runs.grant().due.is_none());
    assert!(waits.grant().due.is_some());
    assert_eq!(join().await.err().expect("full").reason, Rejected::InFlight);
    drop(waits.take());
    Bench::settle().await;
    let waits = join().await.expect("a turn");
    assert!(waits.grant().due.is_some());
}

#[actix::test]
async fn a_rate_that_is_added_and_removed_paces_later_requests() {
    let mut bench = Bench::without_rate();
    for _ in 0..100 {
        bench.pass("a", burst(0)).await;
    }
    bench.retune("10r/s".parse().unwrap());
    let mut joins = bench.joins(5, "a", burst(9)).await;
    peek(&mut joins[0]).await.expect("a turn").unwrap().take();
    bench.advance(Duration::from_millis(100)).await;
    peek(&mut joins[1]).await.expect("a turn").unwrap().take();
    assert!(peek(&mut joins[2]).await.is_none());
    bench.retune(Rate::UNLIMITED);
    Bench::settle().await;
    for joining in &mut joins[2..] {
        let turn = peek(joining).await.expect("they leave at once");
        turn.unwrap().take();
    }
}

#[actix::test]
async fn a_removed_zone_ends_once_nothing_runs() {
    let bench = Bench::without_rate();
    let limit = at_most(1, 1);
    let mut joins = bench.joins(2, "a", limit).await;
    let first = runs(&mut joins[0]).await;
    bench.zone.retire();
    for _ in 0..5 {
        bench.advance(Duration::from_secs(1)).await;
    }
    drop(first);
    Bench::settle().await;
    let second = runs(&mut joins[1]).await;
    bench.advance(Duration::from_secs(2)).await;
    assert!(!bench.zone.has_ended());
    drop(second);
    for _ in 0..5 {
        bench.advance(Duration::from_secs(1)).await;
    }
    assert!(bench.zone.has_ended());
}

#[actix::test]
async fn a_new_in_flight_applies_to_waiters() {
    let mut bench = Bench::new("10r/s", 10);
    let mut joins = bench.joins(5, "a", at_most(1, 9)).await;
    let mut permits = vec![runs(&mut joins[0]).await];
    bench.advance(Duration::from_millis(200)).await;
    assert_eq!(bench.state("a").await, (1, 4), "two are due");
    let changes = vec![(NonZeroU32::MIN, NonZeroU32::new(4).unwrap())];
    let settings = bench.zone.settings().clone();
    bench.zone = Box::leak(Box::new(bench.zone.retune(
        settings,
        changes,
        None,
        clock::now(),
    )));
    Bench::settle().await;
    for joining in &mut joins[1..3] {
        permits.push(runs(joining).await);
    }
    bench.advance(Duration::from_millis(200)).await;
    permits.push(runs(&mut joins[3]).await);
    assert!(peek(&mut joins[4]).await.is_none());
}

#[actix::test]
async fn a_request_to_an_ended_zone_is_admitted() {
    let bench = Bench::without_rate();
    bench.zone.retire();
    for _ in 0..3 {
        bench.advance(Duration::from_secs(1)).await;
    }
    assert!(bench.zone.has_ended());
    let turn = bench.join("a", at_most(1, 0)).await.expect("no limit");
    assert!(turn.take().is_none(), "no place is held");
    drop(bench.join("a", at_most(1, 0)).await.expect("no limit"));
}
