//! Tests of a zone whose actors panic.

use super::super::parameters::PublishedParameters;
use super::super::restart::{PausedActors, start_on};
use super::super::supervisor::{
    Crash, SupervisorActor, SupervisorAddress, SupervisorId, ZoneSupervisor,
};
use super::*;
use crate::store::simulated;

impl Bench {
    pub(super) async fn crash_key(&self, key: &str) {
        let key = Key::from(key.as_bytes());
        self.zone.crash(&key, Crash::Key(Key::clone(&key)));
        Self::settle().await;
    }

    pub(super) async fn crash_supervisor(&self) {
        self.zone.crash(&Key::from(&b"any"[..]), Crash::Supervisor);
        Self::settle().await;
    }
}

#[actix::test]
async fn waiters_of_a_key_that_panics_are_answered_and_the_key_keeps_its_rate() {
    let bench = Bench::new("1r/s", 9);
    let mut of_a = bench.joins(5, "a", burst(5)).await;
    let mut of_b = bench.joins(2, "b", burst(5)).await;
    used(&mut of_a[0]).await;
    used(&mut of_b[0]).await;
    bench.crash_key("a").await;
    all_rejected(&mut of_a[1..], Rejected::Restart).await;
    assert!(waits(&mut of_b[1]).await, "others wait on");
    let stats = bench.zone.stats(9).await;
    assert_eq!((stats.depth, stats.active), (1, 2));
    // The state is as if the waiters had left: admitted requests stay charged, waiters do not.
    let mut next = bench.join("a", burst(5));
    bench.admits_after(SECOND, &mut next).await;
    used(&mut of_b[1]).await;
}

#[actix::test]
async fn waiters_of_a_shared_key_that_panics_are_refunded_in_full() {
    let _network = simulated::set_network(Rc::new(simulated::NoStore));
    let settings = config::Zone {
        store: config::StoreKind::Redis,
        ..settings("1r/s", 9)
    };
    let store_health = Arc::new(StoreHealth::new(config::Redis::default()));
    let bench = Bench::with(settings, Some(Arc::clone(&store_health)));
    bench.pass("a", burst(20)).await;
    assert!(store_health.outage().is_some());
    let mut waiting = bench.joins(2, "a", costing(3, burst(20))).await;
    bench.crash_key("a").await;
    all_rejected(&mut waiting, Rejected::Restart).await;
    // The level is that of the admitted request.
    let mut next = bench.join("a", burst(20));
    bench.admits_after(SECOND, &mut next).await;
}

#[actix::test]
async fn repeated_panics_of_a_key_leave_no_message_pending() {
    let bench = Bench::new("1r/s", 1);
    bench.pass("a", burst(5)).await;
    for _ in 0..20 {
        let mut waiting = bench.join("a", burst(5));
        bench.crash_key("a").await;
        assert_eq!(rejected(&mut waiting).await, Some(Rejected::Restart));
    }
    // With a pending message or a counted waiter, the key could not be evicted for another.
    bench.advance(3 * SECOND).await;
    bench.pass("b", burst(5)).await;
}

#[test]
fn a_supervisor_that_panics_answers_all_waiters_and_restarts_empty() {
    run_alone(async {
        let bench = Bench::new("1r/s", 9);
        let mut waiting = Vec::new();
        for key in ["a", "b", "c"] {
            let mut joins = bench.joins(4, key, burst(5)).await;
            used(&mut joins[0]).await;
            waiting.extend(joins.drain(1..));
        }
        bench.crash_supervisor().await;
        all_rejected(&mut waiting, Rejected::Restart).await;
        assert_eq!(bench.active_and_parked().await, (0, 0));
        assert_eq!(bench.zone.stats(9).await.depth, 0);
        let mut joins = bench.joins(2, "a", burst(5)).await;
        used(&mut joins[0]).await;
        bench.admits_after(SECOND, &mut joins[1]).await;
    });
}

#[test]
fn pending_messages_survive_a_panic_of_the_supervisor() {
    run_alone(async {
        let bench = Bench::new("1r/s", 9);
        let any = Key::from(&b"any"[..]);
        bench.zone.crash(&any, Crash::Supervisor);
        bench.pass("a", burst(5)).await;
    });
}

#[test]
fn a_zone_ends_although_its_actors_panicked() {
    run_alone(async {
        let bench = Bench::new("1r/s", 9);
        let mut joins = bench.joins(2, "a", burst(5)).await;
        bench.zone.retire();
        bench.crash_key("a").await;
        all_rejected(&mut joins[1..], Rejected::Restart).await;
        bench.crash_supervisor().await;
        bench.advance(3 * SECOND).await;
        bench.advance(3 * SECOND).await;
        assert!(bench.zone.has_ended());
    });
}

#[test]
fn a_supervisor_that_panics_twice_pauses_for_less_than_a_second() {
    run_alone(async {
        let parameters = PublishedParameters::new(settings("1r/s", 9), None);
        let (tuning, paused) = (parameters.tuning(0, 1), PausedActors::default());
        let worker = actix_rt::Arbiter::current();
        let id = SupervisorId::new();
        let supervisor = start_on(&worker, paused.clone(), move || {
            let supervisor = ZoneSupervisor::new(tuning, Arc::default(), Pacer::here());
            SupervisorActor::new(id, supervisor)
        });
        let supervisor = SupervisorAddress::new(id, supervisor);
        let zone = Zone::on_this_thread(parameters, supervisor.clone());
        supervisor.post(|zone| zone.crash(Crash::Supervisor));
        Bench::settle().await;
        assert!(!paused.any(), "it restarts at once for the first time");
        supervisor.post(|zone| zone.crash(Crash::Supervisor));
        Bench::settle().await;
        assert!(paused.any());
        let began = clock::now();
        let join = Join::new(Key::from(&b"a"[..]), None, burst(5));
        let _used = zone.join(join).await.unwrap().take();
        let took = clock::now().since(began);
        assert!(took >= 400 * MS, "{took:?}");
        assert!(!paused.any());
        supervisor.post(ZoneSupervisor::retire);
    });
}
