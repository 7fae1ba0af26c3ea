//! Tests of the grid of an origin for gateways that back off: they take part of their slots.

use gateway::store::Claim;
use limit::Algorithm;

use super::grid::{claim, class};
use super::server::in_redis;
use super::{at, pace};

const LEAKY: Algorithm = Algorithm::LeakyBucket;

#[test]
fn a_part_that_has_changed_counts_from_the_last_turn_on() {
    in_redis(async |server, store| {
        let (grid, pace) = (server.key(), pace("100r/s", LEAKY, 0));
        let ask = async |gateway, part, keys, millis| -> Vec<u128> {
            let waits = [class(1, 1, keys)];
            let classes = if keys > 0 { &waits[..] } else { &[] };
            let claim = Claim {
                part,
                ..claim(&grid, gateway, &pace, 10 * keys.min(1), classes, millis)
            };
            let granted = store.call(&claim).await.unwrap();
            let slots = granted.slots.iter();
            slots.map(|slot| slot.since(at(0)).as_millis()).collect()
        };
        // Every second slot, and then every two hundredth.
        assert_eq!(ask(1, 0.5, 1, 0).await, [0, 20, 40]);
        assert_eq!(ask(2, 1.0, 99, 0).await, [10, 30, 50]);
        assert_eq!(ask(1, 0.5, 1, 60).await, []);
        // Once no request waits at the other gateway, the gateway gets every second slot.
        assert_eq!(ask(2, 1.0, 0, 200).await, []);
        assert_eq!(ask(1, 0.5, 1, 200).await, [200, 210, 220, 240]);
    });
}

#[test]
fn who_backs_off_alone_goes_on_also_where_its_turns_are_further_apart_than_slots_are_granted_ahead()
{
    in_redis(async |server, store| {
        let (grid, pace) = (server.key(), pace("20r/s", LEAKY, 0));
        let waits = [class(1, 1, 1)];
        let mut slots = Vec::new();
        for millis in (0..10_000).step_by(25) {
            let claim = Claim {
                part: 0.25,
                ..claim(&grid, 1, &pace, 10, &waits, millis)
            };
            slots.extend(store.call(&claim).await.unwrap().slots);
        }
        // About five slots per second.
        assert!((48..=53).contains(&slots.len()), "{slots:?}");
    });
}
