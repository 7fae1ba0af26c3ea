//! Property tests of gateways that share an origin: any history keeps the rules.
//!
//! *Trouble* is an answer that counts as a failure. A *cut* lowers a gateway's *share* of the
//! configured rate, or its permits (the number of requests in flight).

use proptest::prelude::*;
use testing::cases;

use super::super::*;
use super::cluster::{Cluster, Gateway, Store};
use crate::Percent;

/// Change of the cluster. The first number of most is the index of a gateway.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Percentage of answers that are trouble.
    Trouble(usize, u64),
    /// Milliseconds that an answer takes.
    Slow(usize, u64),
    /// Seconds of the Retry-After of trouble; 0: none.
    RetryAfter(u64),
    /// Whether the gateway cannot reach the store.
    CutOff(usize, bool),
    /// The gateway restarts without its state.
    Restart(usize),
    /// Milliseconds between two requests; 0: none.
    Load(usize, u64),
    /// The store forgets everything.
    Forget,
    /// The store loses its last writes.
    Lose,
    /// The clock of the store is set, by milliseconds.
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

/// Returns whether a gateway has traffic and exchanges its state with the store.
fn is_talking(gateway: &Gateway) -> bool {
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
        // The store before the last event.
        let mut kept = Store::default();
        for (event, millis) in events {
            let since = cluster.millis;
            match event {
                Event::Trouble(nth, trouble) => cluster.gateways[nth].trouble = trouble,
                Event::Slow(nth, takes) => cluster.gateways[nth].takes = takes,
                Event::RetryAfter(seconds) => cluster.retry_after = (seconds > 0).then(|| secs(seconds)),
                Event::CutOff(nth, is_cut_off) => cluster.gateways[nth].is_cut_off = is_cut_off,
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
                    let talking = cluster.gateways.iter().filter(|it| is_talking(it));
                    let shares: Vec<_> = talking.map(Gateway::share).collect();
                    let least = shares.iter().copied().fold(1.0, f64::min);
                    let most = shares.iter().copied().fold(0.0, f64::max);
                    // Other gateways may not know a recent cut yet.
                    let is_fresh = cluster.gateways.iter().any(|it| {
                        it.backoff.lowered().rate.is_some_and(|(_, cut)| at(cluster.millis).since(cut.at) < ms(700))
                    });
                    prop_assert!(is_fresh || shares.is_empty() || most - least < 0.06, "{shares:?}");
                }
            }
        }
        cluster.retry_after = None;
        for gateway in &mut cluster.gateways {
            (gateway.trouble, gateway.is_cut_off) = (0, false);
            (gateway.every, gateway.takes) = (20, 10);
        }
        cluster.run(200_000);
        prop_assert_eq!(cluster.shares(), [1.0; 4]);
        prop_assert_eq!(cluster.permits(), [40; 4]);
        let learned = cluster.gateways.iter().map(|it| it.backoff.learned(at(cluster.millis)));
        prop_assert!(learned.map(|it| it.rate.share).all(|share| share == Percent::ALL));
    }
}
