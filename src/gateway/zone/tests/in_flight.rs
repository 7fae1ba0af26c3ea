//! Limits on the running requests of a key.

use std::num::NonZeroU32;

use super::super::OccupiedPlace;
use super::*;

/// At most so many requests run, and so many wait.
fn at_most(in_flight: u32, waiting: u32) -> Limit {
    Limit {
        in_flight: NonZeroU32::new(in_flight),
        ..burst(waiting)
    }
}

/// A zone whose keys have no rate.
fn without_rate() -> Bench {
    let mut bench = Bench::new("1r/s", 10);
    bench.retune(Rate::UNLIMITED);
    bench
}

/// The place of a join that has its turn, or why it was rejected; `None` if it waits.
async fn now(joining: &mut Joining<'static>) -> Option<Result<OccupiedPlace<'static>, Rejected>> {
    let answer = peek(joining).await?;
    let turn = answer.map_err(|rejection| rejection.reason);
    Some(turn.map(|turn| turn.take().expect("a place")))
}

impl Bench {
    async fn state(&self, key: &str) -> (usize, usize) {
        let keys = self.zone.keys(Order::Depth, 9).await;
        let state = keys.iter().find(|state| &*state.key == key.as_bytes());
        state.map_or((0, 0), |state| (state.in_flight, state.depth))
    }
}

#[test]
fn as_many_run_as_may_and_the_others_wait_in_their_order() {
    run(async {
        let bench = without_rate();
        let limit = at_most(2, 2);
        let mut joins: Vec<_> = (0..5).map(|_| bench.join("a", limit)).collect();
        let mut other = bench.join("b", limit);
        Bench::settle().await;
        let first = now(&mut joins[0]).await.expect("runs").expect("a turn");
        let second = now(&mut joins[1]).await.expect("runs").expect("a turn");
        assert!(now(&mut joins[2]).await.is_none());
        assert!(now(&mut joins[3]).await.is_none());
        let rejected = now(&mut joins[4]).await.expect("an answer");
        assert_eq!(rejected.err(), Some(Rejected::InFlight));
        assert!(now(&mut other).await.is_some(), "keys do not share places");
        assert_eq!(bench.state("a").await, (2, 2));
        drop(second);
        Bench::settle().await;
        let third = now(&mut joins[2]).await.expect("runs").expect("a turn");
        assert!(now(&mut joins[3]).await.is_none());
        drop((first, third));
        Bench::settle().await;
        let fourth = now(&mut joins[3]).await.expect("runs").expect("a turn");
        assert_eq!(bench.state("a").await, (1, 0));
        drop(fourth);
        Bench::settle().await;
        assert_eq!(bench.state("a").await, (0, 0));
    });
}

#[test]
fn a_request_waits_for_its_time_and_then_for_a_place() {
    run(async {
        let bench = Bench::new("10r/s", 10);
        let limit = at_most(1, 3);
        let mut joins: Vec<_> = (0..4).map(|_| bench.join("a", limit)).collect();
        Bench::settle().await;
        let first = now(&mut joins[0]).await.expect("runs").expect("a turn");
        drop(first);
        bench.advance(Duration::from_millis(99)).await;
        assert!(now(&mut joins[1]).await.is_none(), "its time is at 0.1 s");
        bench.advance(Duration::from_millis(1)).await;
        let second = now(&mut joins[1]).await.expect("runs").expect("a turn");
        bench.advance(Duration::from_millis(300)).await;
        assert!(now(&mut joins[2]).await.is_none(), "no place is free");
        // Two of three may wait, although the bucket has run empty.
        let mut more: Vec<_> = (0..2).map(|_| bench.join("a", limit)).collect();
        Bench::settle().await;
        assert!(now(&mut more[0]).await.is_none());
        let rejected = now(&mut more[1]).await.expect("an answer");
        assert_eq!(rejected.err(), Some(Rejected::InFlight));
        drop(second);
        Bench::settle().await;
        let _third = now(&mut joins[2]).await.expect("runs").expect("a turn");
        assert!(now(&mut joins[3]).await.is_none());
    });
}

#[test]
fn a_request_that_is_rejected_for_a_place_is_not_charged() {
    run(async {
        let bench = Bench::new("1r/m", 10);
        let nodelay = Limit {
            delay: Delay::Never,
            ..at_most(1, 0)
        };
        let mut first = bench.join("a", nodelay);
        Bench::settle().await;
        let place = now(&mut first).await.expect("runs").expect("a turn");
        bench.advance(Duration::from_secs(60)).await;
        for _ in 0..3 {
            let rejection = bench.join("a", nodelay).await.expect_err("no place");
            assert_eq!(rejection.reason, Rejected::InFlight);
            assert_eq!(rejection.retry_after, Duration::from_secs(1));
        }
        drop(place);
        Bench::settle().await;
        assert!(bench.join("a", nodelay).await.is_ok());
    });
}

#[test]
fn a_waiter_that_leaves_and_a_turn_that_is_not_used_give_their_places_back() {
    run(async {
        let bench = without_rate();
        let limit = at_most(1, 5);
        let mut joins: Vec<_> = (0..4).map(|_| bench.join("a", limit)).collect();
        Bench::settle().await;
        let first = now(&mut joins[0]).await.expect("runs").expect("a turn");
        drop(joins.remove(1));
        drop(first);
        Bench::settle().await;
        // The next one has its turn, but its client leaves before it takes it.
        drop(joins.remove(1));
        Bench::settle().await;
        assert!(now(&mut joins[1]).await.is_some());
        let turn = bench.join("b", limit).await.expect("a turn");
        drop(turn);
        Bench::settle().await;
        assert_eq!(bench.state("b").await, (0, 0));
    });
}

#[test]
fn a_key_is_neither_parked_nor_evicted_while_its_requests_run() {
    run(async {
        let mut bench = Bench::new("1r/s", 1);
        bench.retune(Rate::UNLIMITED);
        let limit = at_most(1, 0);
        let mut first = bench.join("a", limit);
        Bench::settle().await;
        let place = now(&mut first).await.expect("runs").expect("a turn");
        for _ in 0..90 {
            bench.advance(Duration::from_secs(1)).await;
        }
        let newcomer = bench.join("b", limit).await;
        assert_eq!(newcomer.expect_err("no room").reason, Rejected::Keys);
        let again = bench.join("a", limit).await;
        assert_eq!(again.expect_err("no place").reason, Rejected::InFlight);
        drop(place);
        Bench::settle().await;
        assert!(bench.join("b", limit).await.is_ok());
    });
}

#[test]
fn a_key_that_panics_still_counts_what_runs() {
    run(async {
        let bench = without_rate();
        let limit = at_most(1, 1);
        let mut joins: Vec<_> = (0..2).map(|_| bench.join("a", limit)).collect();
        Bench::settle().await;
        let place = now(&mut joins[0]).await.expect("runs").expect("a turn");
        bench.crash_key("a").await;
        let rejected = now(&mut joins[1]).await.expect("an answer");
        assert_eq!(rejected.err(), Some(Rejected::Restart));
        let mut next = bench.join("a", limit);
        Bench::settle().await;
        assert!(now(&mut next).await.is_none());
        drop(place);
        Bench::settle().await;
        assert!(now(&mut next).await.is_some());
    });
}

#[test]
fn places_of_a_supervisor_that_panicked_free_nobody_elses() {
    let _counted = crate::observe::metrics::count_alone();
    run(async {
        let bench = without_rate();
        let limit = at_most(1, 1);
        let mut first = bench.join("a", limit);
        Bench::settle().await;
        let old = now(&mut first).await.expect("runs").expect("a turn");
        bench.crash_supervisor().await;
        let mut joins: Vec<_> = (0..2).map(|_| bench.join("a", limit)).collect();
        Bench::settle().await;
        let _new = now(&mut joins[0]).await.expect("runs").expect("a turn");
        drop(old);
        Bench::settle().await;
        assert!(now(&mut joins[1]).await.is_none());
        assert_eq!(bench.state("a").await, (1, 1));
    });
}

#[test]
fn a_dry_run_counts_what_would_wait_and_what_would_be_rejected() {
    run(async {
        let bench = without_rate();
        let join = || bench.zone.join(bench.dry_run("a", at_most(1, 1)));
        let runs = join().await.expect("a turn");
        let waits = join().await.expect("a turn");
        assert!(runs.grant().due.is_none());
        assert!(waits.grant().due.is_some());
        assert_eq!(join().await.expect_err("full").reason, Rejected::InFlight);
        drop(waits.take());
        Bench::settle().await;
        let waits = join().await.expect("a turn");
        assert!(waits.grant().due.is_some());
    });
}

#[test]
fn a_rate_that_comes_and_goes_paces_those_who_come_after_it() {
    run(async {
        let mut bench = without_rate();
        for _ in 0..100 {
            bench.join("a", burst(0)).await.expect("no rate").take();
        }
        bench.retune("10r/s".parse().unwrap());
        let mut joins: Vec<_> = (0..5).map(|_| bench.join("a", burst(9))).collect();
        Bench::settle().await;
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
    });
}

#[test]
fn a_zone_that_leaves_the_file_ends_once_nothing_runs() {
    run(async {
        let bench = without_rate();
        let limit = at_most(1, 1);
        let mut joins: Vec<_> = (0..2).map(|_| bench.join("a", limit)).collect();
        Bench::settle().await;
        let first = now(&mut joins[0]).await.expect("runs").expect("a turn");
        bench.zone.retire();
        for _ in 0..5 {
            bench.advance(Duration::from_secs(1)).await;
        }
        drop(first);
        Bench::settle().await;
        let second = now(&mut joins[1]).await.expect("runs").expect("a turn");
        bench.advance(Duration::from_secs(2)).await;
        assert!(!bench.zone.has_ended());
        drop(second);
        for _ in 0..5 {
            bench.advance(Duration::from_secs(1)).await;
        }
        assert!(bench.zone.has_ended());
    });
}

#[test]
fn a_new_number_applies_to_those_who_wait() {
    run(async {
        let mut bench = Bench::new("10r/s", 10);
        let mut joins: Vec<_> = (0..5).map(|_| bench.join("a", at_most(1, 9))).collect();
        Bench::settle().await;
        let mut places = vec![now(&mut joins[0]).await.expect("runs").expect("a turn")];
        bench.advance(Duration::from_millis(200)).await;
        assert_eq!(bench.state("a").await, (1, 4), "two are due");
        let changes = vec![(NonZeroU32::MIN, NonZeroU32::new(4).unwrap())];
        let settings = bench.zone.settings().clone();
        bench.zone = Box::leak(Box::new(bench.zone.retune(settings, changes, None)));
        Bench::settle().await;
        for joining in &mut joins[1..3] {
            places.push(now(joining).await.expect("runs").expect("a turn"));
        }
        bench.advance(Duration::from_millis(200)).await;
        places.push(now(&mut joins[3]).await.expect("runs").expect("a turn"));
        assert!(now(&mut joins[4]).await.is_none());
    });
}

#[test]
fn a_request_that_comes_when_nothing_is_left_of_its_zone_goes_on() {
    run(async {
        let bench = without_rate();
        bench.zone.retire();
        for _ in 0..3 {
            bench.advance(Duration::from_secs(1)).await;
        }
        assert!(bench.zone.has_ended());
        let turn = bench.join("a", at_most(1, 0)).await.expect("no limit");
        assert!(turn.take().is_none(), "no place is held");
        drop(bench.join("a", at_most(1, 0)).await.expect("no limit"));
    });
}
