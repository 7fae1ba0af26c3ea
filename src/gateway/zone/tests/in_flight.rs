//! Tests of `in_flight`: the bound of a key's running requests.

use super::*;

/// Uses the admission of a join, which must be there by now. Returns its permit.
async fn runs(joining: &mut Joining<'static>) -> InFlightPermit<'static> {
    used(joining).await.expect("a permit")
}

impl Bench {
    /// Returns the numbers of requests in flight and of waiters of a key.
    pub(super) async fn running_and_waiting(&self, key: &str) -> (usize, usize) {
        let keys = self.zone.keys(Order::Depth, 9).await;
        let state = keys.iter().find(|state| &*state.key == key.as_bytes());
        state.map_or((0, 0), |state| (state.in_flight, state.depth))
    }
}

#[actix::test]
async fn in_flight_requests_run_and_the_others_wait_in_order() {
    let bench = Bench::without_rate();
    let limit = at_most(2, 2);
    let mut joins = bench.joins(5, "a", limit).await;
    let mut other = bench.joined("b", limit).await;
    let first = runs(&mut joins[0]).await;
    let second = runs(&mut joins[1]).await;
    assert!(waits(&mut joins[2]).await && waits(&mut joins[3]).await);
    assert_eq!(rejected(&mut joins[4]).await, Some(Rejected::InFlight));
    runs(&mut other).await;
    assert_eq!(bench.running_and_waiting("a").await, (2, 2));
    Bench::end(second).await;
    let third = runs(&mut joins[2]).await;
    assert!(waits(&mut joins[3]).await);
    Bench::end((first, third)).await;
    let fourth = runs(&mut joins[3]).await;
    assert_eq!(bench.running_and_waiting("a").await, (1, 0));
    Bench::end(fourth).await;
    assert_eq!(bench.running_and_waiting("a").await, (0, 0));
}

#[actix::test]
async fn a_request_waits_for_its_slot_and_then_for_a_permit() {
    let bench = Bench::new("10r/s", 10);
    let limit = at_most(1, 3);
    let mut joins = bench.joins(4, "a", limit).await;
    drop(runs(&mut joins[0]).await);
    let second = bench.admits_after(100 * MS, &mut joins[1]).await;
    bench.advance(300 * MS).await;
    assert!(waits(&mut joins[2]).await, "no permit is free");
    // Two of three may wait, although the bucket is empty.
    let mut more = bench.joins(2, "a", limit).await;
    assert!(waits(&mut more[0]).await);
    assert_eq!(rejected(&mut more[1]).await, Some(Rejected::InFlight));
    Bench::end(second.expect("a permit")).await;
    let _third = runs(&mut joins[2]).await;
    assert!(waits(&mut joins[3]).await);
}

#[actix::test]
async fn a_request_rejected_for_in_flight_is_not_charged() {
    let bench = Bench::new("1r/m", 10);
    let nodelay = nodelay(at_most(1, 0));
    let permit = bench.pass("a", nodelay).await.expect("a permit");
    bench.advance(60 * SECOND).await;
    for _ in 0..3 {
        let rejection = bench.join("a", nodelay).await.err().expect("rejected");
        assert_eq!(rejection.reason, Rejected::InFlight);
        assert_eq!(rejection.retry_after, SECOND);
    }
    Bench::end(permit).await;
    assert!(bench.join("a", nodelay).await.is_ok());
}

#[actix::test]
async fn a_waiter_that_leaves_and_an_unused_admission_return_their_permits() {
    let bench = Bench::without_rate();
    let limit = at_most(1, 5);
    let mut joins = bench.joins(4, "a", limit).await;
    let first = runs(&mut joins[0]).await;
    drop(joins.remove(1));
    Bench::end(first).await;
    // The next request is admitted, but its client disconnects before it uses the admission.
    Bench::end(joins.remove(1)).await;
    runs(&mut joins[1]).await;
    let unused = bench.join("b", limit).await.expect("admitted");
    Bench::end(unused).await;
    assert_eq!(bench.running_and_waiting("b").await, (0, 0));
}

#[actix::test]
async fn a_key_is_neither_parked_nor_evicted_while_its_requests_run() {
    let mut bench = Bench::new("1r/s", 1);
    bench.retune(Rate::UNLIMITED);
    let limit = at_most(1, 0);
    let permit = bench.pass("a", limit).await.expect("a permit");
    bench.advance_seconds(90).await;
    assert_eq!(bench.rejection("b", limit).await, Rejected::Keys);
    assert_eq!(bench.rejection("a", limit).await, Rejected::InFlight);
    Bench::end(permit).await;
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
    let mut next = bench.joined("a", limit).await;
    assert!(waits(&mut next).await);
    Bench::end(permit).await;
    runs(&mut next).await;
}

#[test]
fn permits_from_before_a_panic_do_not_free_later_permits() {
    run_alone(async {
        let bench = Bench::without_rate();
        let limit = at_most(1, 1);
        let old = bench.pass("a", limit).await.expect("a permit");
        bench.crash_supervisor().await;
        let mut joins = bench.joins(2, "a", limit).await;
        let _new = runs(&mut joins[0]).await;
        Bench::end(old).await;
        assert!(waits(&mut joins[1]).await);
        assert_eq!(bench.running_and_waiting("a").await, (1, 1));
    });
}

#[actix::test]
async fn a_dry_run_counts_what_would_wait_and_what_would_be_rejected() {
    let bench = Bench::without_rate();
    let join = || bench.zone.join(bench.dry_run("a", at_most(1, 1)));
    let would_run = join().await.expect("admitted");
    assert!(would_run.grant().due.is_none());
    let would_wait = join().await.expect("admitted");
    assert!(would_wait.grant().due.is_some());
    let rejection = join().await.err().expect("rejected");
    assert_eq!(rejection.reason, Rejected::InFlight);
    Bench::end(would_wait.take()).await;
    let would_wait = join().await.expect("admitted");
    assert!(would_wait.grant().due.is_some());
}

#[actix::test]
async fn a_rate_that_is_added_and_removed_paces_later_requests() {
    let mut bench = Bench::without_rate();
    for _ in 0..100 {
        bench.pass("a", burst(0)).await;
    }
    bench.retune("10r/s".parse().unwrap());
    let mut joins = bench.joins(5, "a", burst(9)).await;
    used(&mut joins[0]).await;
    bench.advance(100 * MS).await;
    used(&mut joins[1]).await;
    assert!(waits(&mut joins[2]).await);
    bench.retune(Rate::UNLIMITED);
    Bench::settle().await;
    for joining in &mut joins[2..] {
        used(joining).await;
    }
}

#[actix::test]
async fn a_removed_zone_ends_once_nothing_runs() {
    let bench = Bench::without_rate();
    let mut joins = bench.joins(2, "a", at_most(1, 1)).await;
    let first = runs(&mut joins[0]).await;
    bench.zone.retire();
    bench.advance_seconds(5).await;
    Bench::end(first).await;
    let second = runs(&mut joins[1]).await;
    bench.advance(2 * SECOND).await;
    assert!(!bench.zone.has_ended());
    drop(second);
    bench.advance_seconds(5).await;
    assert!(bench.zone.has_ended());
}

#[actix::test]
async fn a_new_in_flight_applies_to_waiters() {
    let mut bench = Bench::new("10r/s", 10);
    let mut joins = bench.joins(5, "a", at_most(1, 9)).await;
    let mut permits = vec![runs(&mut joins[0]).await];
    bench.advance(200 * MS).await;
    assert_eq!(bench.running_and_waiting("a").await, (1, 4), "two are due");
    let one_to_four = (NonZeroU32::MIN, NonZeroU32::new(4).unwrap());
    bench.set_with(bench.zone.settings().clone(), vec![one_to_four]);
    Bench::settle().await;
    for joining in &mut joins[1..3] {
        permits.push(runs(joining).await);
    }
    bench.advance(200 * MS).await;
    permits.push(runs(&mut joins[3]).await);
    assert!(waits(&mut joins[4]).await);
}

#[actix::test]
async fn a_request_to_an_ended_zone_is_admitted() {
    let bench = Bench::without_rate();
    bench.zone.retire();
    bench.advance_seconds(3).await;
    assert!(bench.zone.has_ended());
    let permit = bench.pass("a", at_most(1, 0)).await;
    assert!(permit.is_none(), "no permit is held");
    drop(bench.join("a", at_most(1, 0)).await.expect("admitted"));
}
