//! Tests of plans: rates of some keys.

use super::*;

/// Returns the plans of a zone of one request a second, from this part of a file.
pub(super) fn plans(part: &str) -> config::Plans {
    let zone = format!("[zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/s\"\n{part}");
    crate::test_settings::with(&zone).zones[0].plans.clone()
}

impl Bench {
    fn set_plans(&mut self, part: &str) {
        let settings = config::Zone {
            plans: plans(part),
            ..self.zone.settings().clone()
        };
        self.set(settings);
    }
}

const GOLD: &str = "plans.gold = { keys = [\"a\"], rate = \"10r/s\" }";
const SECOND: Duration = Duration::from_secs(1);

#[actix::test]
async fn a_key_with_waiters_gets_the_rate_of_its_new_plan() {
    let mut bench = Bench::new("1r/s", 10);
    let mut of_a: Vec<_> = (0..7).map(|_| bench.join("a", burst(9))).collect();
    let mut of_b = bench.joins(7, "b", burst(9)).await;
    bench.set_plans(GOLD);
    Bench::settle().await;
    bench.advance(SECOND / 2).await;
    assert_eq!(passed(&mut of_a).await, 6, "the first, and one each 0.1 s");
    assert_eq!(passed(&mut of_b).await, 1);
    bench.set_plans("");
    Bench::settle().await;
    bench.advance(SECOND / 2).await;
    assert_eq!(passed(&mut of_a).await, 0, "it waits for a second again");
    assert_eq!(passed(&mut of_b).await, 1);
    bench.advance(SECOND / 2).await;
    assert_eq!(passed(&mut of_a).await, 1);
}

#[actix::test]
async fn a_parked_key_follows_its_plan_when_it_is_used_again() {
    let mut bench = Bench::new("1r/s", 10);
    let limit = nodelay(burst(9));
    let excess = async |bench: &Bench, key| {
        let turn = bench.join(key, limit).await.unwrap();
        let excess = turn.grant().excess;
        turn.take();
        excess.requests()
    };
    for _ in 0..5 {
        excess(&bench, "a").await;
        excess(&bench, "b").await;
    }
    // The actors are parked after two seconds.
    for _ in 0..4 {
        bench.advance(SECOND).await;
    }
    bench.set_plans(GOLD);
    Bench::settle().await;
    // Five were charged, and four have leaked at one a second. Nothing leaks at once.
    assert!((excess(&bench, "a").await - 1.0).abs() < 1e-6);
    assert!((excess(&bench, "b").await - 1.0).abs() < 1e-6);
    bench.advance(SECOND / 10).await;
    let has_leaked = (excess(&bench, "a").await - 1.0).abs() < 1e-6;
    assert!(has_leaked, "ten leak a second");
    assert!((excess(&bench, "b").await - 1.9).abs() < 1e-6);
    // The rate of the zone is not that of the plan.
    bench.retune("5r/s".parse().unwrap());
    Bench::settle().await;
    bench.advance(SECOND / 10).await;
    assert!((excess(&bench, "a").await - 1.0).abs() < 1e-6);
    assert!((excess(&bench, "b").await - 2.4).abs() < 1e-6);
}

#[actix::test]
async fn a_forgotten_key_leaves_no_state() {
    let mut bench = Bench::new("1r/h", 1);
    bench.set_plans(GOLD);
    Bench::settle().await;
    let limit = nodelay(burst(9));
    for key in ["a", "b", "a", "b"] {
        let turn = bench.join(key, limit).await.unwrap();
        assert!(turn.grant().excess.requests() < 1e-9, "it is new");
        turn.take();
    }
}
