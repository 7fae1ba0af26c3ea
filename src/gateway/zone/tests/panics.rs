//! Tests of a zone whose actors panic.

use super::super::restart::{PausedActors, start_on};
use super::super::store_link::{Paces, Sharing};
use super::super::supervisor::Crash;
use super::super::supervisor::{SupervisorAddress, SupervisorId};
use super::*;
use crate::observe::metrics::count_alone;
use crate::store::{StoreHealth, simulated};
use crate::time::clock;

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
    let mut passed = bench.join("a", burst(5));
    let mut waiting: Vec<_> = (0..4).map(|_| bench.join("a", burst(5))).collect();
    let mut elsewhere = [bench.join("b", burst(5)), bench.join("b", burst(5))];
    Bench::settle().await;
    let _used = used(&mut passed).await;
    let _used = used(&mut elsewhere[0]).await;
    bench.crash_key("a").await;
    for joining in &mut waiting {
        assert_eq!(rejected(joining).await, Some(Rejected::Restart));
    }
    assert!(peek(&mut elsewhere[1]).await.is_none(), "others wait on");
    let stats = bench.zone.stats(9).await;
    assert_eq!((stats.depth, stats.active), (1, 2));
    // The state is as if the waiters had left: admitted requests stay charged, waiters do not.
    let mut next = bench.join("a", burst(5));
    bench.advance(Duration::from_millis(999)).await;
    assert!(peek(&mut next).await.is_none());
    bench.advance(Duration::from_millis(1)).await;
    let _used = used(&mut next).await;
    let _used = used(&mut elsewhere[1]).await;
}

#[actix::test]
async fn waiters_of_a_shared_key_that_panics_are_refunded_in_full() {
    let _network = simulated::set_network(Rc::new(simulated::NoStore));
    let (settings, tuning) = settings("1r/s", 9);
    let store_health = Arc::new(StoreHealth::new(config::Redis::default()));
    let sharing = Sharing {
        store_health: Arc::clone(&store_health),
        paces: Paces::new(&settings, START).unwrap(),

        divergence: Arc::default(),
    };
    let sharing = Some(sharing);
    let bench = Bench::with((settings, Tuning { sharing, ..tuning }));
    let costly = Limit {
        cost: Cost::new(3).unwrap(),
        ..burst(20)
    };
    bench.pass("a", burst(20)).await;
    assert!(store_health.outage().is_some());
    let mut waiting = [bench.join("a", costly), bench.join("a", costly)];
    Bench::settle().await;
    bench.crash_key("a").await;
    for joining in &mut waiting {
        assert_eq!(rejected(joining).await, Some(Rejected::Restart));
    }
    // The level is that of the admitted request.
    let mut next = bench.join("a", burst(20));
    bench.advance(Duration::from_millis(999)).await;
    assert!(peek(&mut next).await.is_none());
    bench.advance(Duration::from_millis(1)).await;
    let _used = used(&mut next).await;
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
    bench.advance(Duration::from_secs(3)).await;
    bench.pass("b", burst(5)).await;
}

#[test]
fn a_supervisor_that_panics_answers_all_waiters_and_restarts_empty() {
    let _counted = count_alone();
    run(async {
        let bench = Bench::new("1r/s", 9);
        let mut waiting = Vec::new();
        for key in ["a", "b", "c"] {
            let mut passed = bench.join(key, burst(5));
            waiting.extend((0..3).map(|_| bench.join(key, burst(5))));
            Bench::settle().await;
            let _used = used(&mut passed).await;
        }
        bench.crash_supervisor().await;
        for joining in &mut waiting {
            assert_eq!(rejected(joining).await, Some(Rejected::Restart));
        }
        let stats = bench.zone.stats(9).await;
        assert_eq!((stats.depth, stats.active, stats.parked), (0, 0, 0));
        let mut next = bench.join("a", burst(5));
        let mut behind = bench.join("a", burst(5));
        Bench::settle().await;
        let _used = used(&mut next).await;
        assert!(peek(&mut behind).await.is_none());
        bench.advance(Duration::from_secs(1)).await;
        let _used = used(&mut behind).await;
    });
}

#[test]
fn pending_messages_survive_a_panic_of_the_supervisor() {
    let _counted = count_alone();
    run(async {
        let bench = Bench::new("1r/s", 9);
        let any = Key::from(&b"any"[..]);
        bench.zone.crash(&any, Crash::Supervisor);
        bench.pass("a", burst(5)).await;
    });
}

#[test]
fn a_zone_ends_although_its_actors_panicked() {
    let _counted = count_alone();
    run(async {
        let bench = Bench::new("1r/s", 9);
        let _passed = bench.join("a", burst(5));
        let mut waiting = bench.join("a", burst(5));
        Bench::settle().await;
        bench.zone.retire();
        bench.crash_key("a").await;
        assert_eq!(rejected(&mut waiting).await, Some(Rejected::Restart));
        bench.crash_supervisor().await;
        bench.advance(Duration::from_secs(3)).await;
        bench.advance(Duration::from_secs(3)).await;
        assert!(bench.zone.has_ended());
    });
}

#[test]
fn a_supervisor_that_panics_twice_pauses_for_less_than_a_second() {
    let _counted = count_alone();
    run(async {
        let (settings, tuning) = settings("1r/s", 9);
        let (paused, metrics) = (PausedActors::default(), Arc::<ZoneMetrics>::default());
        let worker = actix_rt::Arbiter::current();
        let id = SupervisorId::new();
        let supervisor = start_on(&worker, paused.clone(), move || {
            let supervisor = ZoneSupervisor::new(tuning, metrics, Pacer::here());
            SupervisorActor::new(id, supervisor)
        });
        let supervisor = SupervisorAddress::new(id, supervisor);
        let zone =
            Zone::on_this_thread(PublishedParameters::new(settings, None), supervisor.clone());
        supervisor.post(|zone| zone.crash(Crash::Supervisor));
        Bench::settle().await;
        assert!(!paused.any(), "the first time it starts again at once");
        supervisor.post(|zone| zone.crash(Crash::Supervisor));
        Bench::settle().await;
        assert!(paused.any());
        let began = clock::now();
        let joined = zone
            .join(Join::new(Key::from(&b"a"[..]), None, burst(5)))
            .await;
        let _used = joined.unwrap().take();
        let took = clock::now().since(began);
        assert!(took >= Duration::from_millis(400), "{took:?}");
        assert!(!paused.any());
        supervisor.post(ZoneSupervisor::retire);
    });
}
