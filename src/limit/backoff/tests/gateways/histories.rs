//! Property tests of gateways that share an origin: any history keeps the rules.

use proptest::prelude::*;
use testing::cases;

use super::super::*;
use super::cluster::{Cluster, Gateway, Store};
use crate::Percent;

#[derive(Clone, Copy, Debug)]
enum Event {
    Trouble(usize, u64),
    Slow(usize, u64),
    RetryAfter(u64),
    CutOff(usize, bool),
    Restart(usize),
    Load(usize, u64),
    Forget,
    Lose,
    Jump(i64),
}

fn event() -> impl Strategy<Value = Event> {
    let nth = 0..4_usize;
    prop_oneof![
        4 => (nth.clone(), prop_oneof![Just(0), Just(7), Just(100)]).prop_map(|(nth, it)| Event::Trouble(nth, it)),
        2 => (nth.clone(), prop_oneof![Just(10_u64), Just(150)]).prop_map(|(nth, it)| Event::Slow(nth, it)),
        1 => (0..4_u64).prop_map(Event::RetryAfter),
        3 => (nth.clone(), any::<bool>()).prop_map(|(nth, it)| Event::CutOff(nth, it)),
        1 => nth.clone().prop_map(Event::Restart),
        2 => (nth, prop_oneof![Just(0_u64), Just(5), Just(20), Just(300)]).prop_map(|(nth, it)| Event::Load(nth, it)),
        1 => Just(Event::Forget),
        1 => Just(Event::Lose),
        1 => (-3000..3000_i64).prop_map(Event::Jump),
    ]
}

/// Returns whether a gateway exchanges its state with the store.
fn talk(cluster: &Cluster, nth: usize) -> bool {
    let gateway = &cluster.gateways[nth];
    !gateway.is_cut_off && gateway.every > 0 && gateway.every <= 20
}

proptest! {
    // Each case simulates minutes of several gateways.
    #![proptest_config(cases(1, 256))]

    /// Checks any history against three rules.
    ///
    /// Gateways that reach the store differ by at most a second of growth. No gateway grows faster
    /// than the rule. In the end no gateway is cut.
    #[test]
    fn any_history_keeps_the_rules(
        events in prop::collection::vec((event(), 1..2500_u64), 1..25),
    ) {
        let mut cluster = Cluster::with(4, slow(100));
        let mut kept = Store::default();
        // Instant of the last event.
        let mut since = 0;
        for (event, millis) in events {
            since = cluster.millis;
            match event {
                Event::Trouble(nth, trouble) => cluster.gateways[nth].trouble = trouble,
                Event::Slow(nth, takes) => cluster.gateways[nth].takes = takes,
                Event::RetryAfter(it) => cluster.retry_after = (it > 0).then(|| secs(it)),
                Event::CutOff(nth, it) => cluster.gateways[nth].is_cut_off = it,
                Event::Restart(nth) => {
                    let anew = Gateway::start(cluster.millis << 8 | nth as u64, slow(100), cluster.millis);
                    cluster.gateways[nth] = anew;
                }
                Event::Load(nth, every) => cluster.gateways[nth].every = every,
                Event::Forget => cluster.store = Store { ahead: cluster.store.ahead, ..Store::default() },
                Event::Lose => {
                    let ahead = cluster.store.ahead;
                    cluster.store = Store { ahead, ..kept.clone() };
                }
                Event::Jump(by) => cluster.store.ahead += by,
            }
            kept = cluster.store.clone();
            let end = cluster.millis + millis;
            let mut before: Vec<(f64, f64)> = Vec::new();
            while cluster.millis < end {
                cluster.run(100);
                let now: Vec<_> = cluster.gateways.iter()
                    .map(|it| (it.share(), it.backoff.in_flight_limit.learned(at(0)).share.millionths().into()))
                    .collect();
                for (nth, (now, before)) in now.iter().zip(&before).enumerate() {
                    prop_assert!(now.0 <= before.0 + 0.0061, "{nth} grows from {before:?} to {now:?}");
                    let is_given_back = cluster.gateways[nth].backoff.lowered().is_kept;
                    prop_assert!(is_given_back || now.1 <= before.1 * 1.0101 + 30_000.0, "{nth}: permits from {before:?} to {now:?}");
                }
                before = now;
                if cluster.millis > since + 1000 {
                    let talking: Vec<_> = (0..4).filter(|nth| talk(&cluster, *nth)).collect();
                    let shares: Vec<_> = talking.iter().map(|nth| cluster.gateways[*nth].share()).collect();
                    let least = shares.iter().copied().fold(1.0, f64::min);
                    let most = shares.iter().copied().fold(0.0, f64::max);
                    // Other gateways may not know a recent cut yet.
                    let is_fresh = cluster.gateways.iter().any(|it| {
                        it.backoff.lowered().rate.is_some_and(|(_, cut)| at(cluster.millis).since(cut.at) < ms(700))
                    });
                    prop_assert!(is_fresh || shares.is_empty() || most - least < 0.06, "{shares:?} of {talking:?}");
                }
            }
        }
        let _ = since;
        cluster.retry_after = None;
        for gateway in &mut cluster.gateways {
            (gateway.trouble, gateway.is_cut_off, gateway.every) = (0, false, 20);
            gateway.takes = 10;
        }
        cluster.run(200_000);
        prop_assert_eq!(cluster.shares(), [1.0; 4]);
        prop_assert_eq!(cluster.permits(), [40; 4]);
        let least = Percent::ALL;
        prop_assert!(cluster.gateways.iter().all(|it| it.backoff.learned(at(cluster.millis)).rate.share == least));
    }
}
