//! Tests of shares of keys and gateways in a shared rate, in each second.

use crate::programs::redis::Redis;
use crate::redis::shared::grid::fairness::check_parts;
use crate::redis::shared::grid::{Crowd, file, shared};
use crate::support::{Gateway, Origin, best_of_three, half_alone};

#[test]
fn keys_that_come_in_by_different_gateways_get_equal_parts_in_each_second() {
    let _machine = half_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared("300r/s"));
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    best_of_three(|_| {
        let keys = ["key=a", "key=b", "key=c", "key=d", "key=e"];
        let target = |key: &&str| Crowd::of(&one, &format!("/?{key}"), 4);
        let mut crowds: Vec<Crowd> = keys.iter().map(target).collect();
        crowds.push(Crowd::of(&other, "/?key=f", 12));
        let parts: Vec<_> = keys.iter().map(|key| (*key, 1.0 / 6.0)).collect();
        let parts = [&parts[..], &[("key=f", 1.0 / 6.0)]].concat();
        check_parts(&origin, &crowds, 300, &parts)
    });
}

#[test]
fn weights_of_keys_count_over_all_gateways() {
    let _machine = half_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared("200r/s"));
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    best_of_three(|_| {
        let crowds = [
            Crowd::of(&one, "/?key=gold", 10),
            Crowd::of(&one, "/?key=a", 10),
            Crowd::of(&other, "/?key=b", 10),
        ];
        let parts = [("key=gold", 0.6), ("key=a", 0.2), ("key=b", 0.2)];
        check_parts(&origin, &crowds, 200, &parts)
    });
}

/// Without fair keys there is one queue: a gateway with more waiting requests gets more.
#[test]
fn without_keys_gateways_share_by_what_waits_at_each() {
    let _machine = half_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared("200r/s")).replace("share = \"key\"", "");
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    best_of_three(|_| {
        let crowds = [
            Crowd::of(&one, "/?key=a", 30),
            Crowd::of(&other, "/?key=b", 10),
        ];
        check_parts(&origin, &crowds, 200, &[("key=a", 0.75), ("key=b", 0.25)])
    });
}
