//! Tests of plans: rates of some keys.

use super::handover::charge;
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

/// Plan of the key `a`.
const GOLD: &str = "plans.gold = { keys = [\"a\"], rate = \"10r/s\" }";

#[actix::test]
async fn a_key_with_waiters_gets_the_rate_of_its_new_plan() {
    let mut bench = Bench::new("1r/s", 10);
    let mut of_a = bench.joins(7, "a", burst(9)).await;
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
    let are_near = async |bench: &Bench, of_a: f64, of_b: f64| {
        let levels = (charge(bench, "a").await, charge(bench, "b").await);
        (levels.0 - of_a).abs() < 1e-6 && (levels.1 - of_b).abs() < 1e-6
    };
    for _ in 0..5 {
        charge(&bench, "a").await;
        charge(&bench, "b").await;
    }
    // The actors are parked after two seconds.
    bench.advance_seconds(4).await;
    bench.set_plans(GOLD);
    Bench::settle().await;
    // Five were charged, and four have leaked at one a second. Nothing leaks at once.
    assert!(are_near(&bench, 1.0, 1.0).await);
    bench.advance(SECOND / 10).await;
    assert!(are_near(&bench, 1.0, 1.9).await, "of a, ten leak a second");
    // The rate of the zone is not that of the plan.
    bench.retune("5r/s".parse().unwrap());
    Bench::settle().await;
    bench.advance(SECOND / 10).await;
    assert!(are_near(&bench, 1.0, 2.4).await);
}

#[actix::test]
async fn a_forgotten_key_leaves_no_state() {
    let mut bench = Bench::new("1r/h", 1);
    bench.set_plans(GOLD);
    Bench::settle().await;
    // The zone has room for one key, so each of these is new.
    for key in ["a", "b", "a", "b"] {
        assert!(charge(&bench, key).await < 1e-9, "{key}");
    }
}
