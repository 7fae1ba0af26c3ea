//! Tests of the queue of classes.
//!
//! Classes share one stream of departures by their weights, and keys share within their class. A
//! [`Share`] is a class, a key, and the weight of the key.

use proptest::prelude::*;
use testing::config;

use super::*;

/// Returns a queue with these classes: name and weight.
fn queue(classes: &[(&str, u32)]) -> ClassQueue<char, usize> {
    let mut queue = ClassQueue::default();
    queue.set_classes(&named(classes));
    queue
}

fn named(classes: &[(&str, u32)]) -> Vec<Class> {
    let class = |(name, weight): &(&str, u32)| Class {
        name: Arc::from(*name),
        weight: *weight,
    };
    classes.iter().map(class).collect()
}

fn share(class: &str, key: char) -> Share<char> {
    Share {
        class: Arc::from(class),
        ..Share::of(key)
    }
}

/// Adds `count` waiters of cost 1.
fn join(queue: &mut ClassQueue<char, usize>, share: &Share<char>, count: usize) {
    for nth in 0..count {
        queue.join(share, 1, nth);
    }
}

/// Takes up to `most` waiters. Returns their keys in order.
fn take(queue: &mut ClassQueue<char, usize>, most: usize) -> String {
    let taken = std::iter::from_fn(|| queue.take());
    taken.take(most).map(|next| next.key).collect()
}

#[test]
fn keys_share_within_their_class() {
    let mut queue = queue(&[("a", 1), ("b", 1)]);
    let gold = Share {
        weight: 3,
        ..share("a", 'g')
    };
    join(&mut queue, &gold, 20);
    join(&mut queue, &share("a", 'h'), 20);
    join(&mut queue, &share("b", 'x'), 40);
    let taken = take(&mut queue, 40);
    let count = |key: char| taken.matches(key).count();
    assert_eq!((count('g'), count('h'), count('x')), (15, 5, 20));
}

#[test]
fn an_unknown_class_stands_for_the_first_one() {
    let mut queue = queue(&[("a", 3), ("b", 1)]);
    join(&mut queue, &share("gone", 'x'), 3);
    let depths: Vec<usize> = queue.classes().map(|(_, depth)| depth).collect();
    assert_eq!(depths, [3, 0]);
    let mut queue = ClassQueue::default();
    queue.join(&share("a", 'x'), 1, 0);
    assert_eq!(queue.len(), 1);
}

#[test]
fn waiters_of_a_removed_class_stay_in_it() {
    let mut queue = queue(&[("a", 1), ("b", 1)]);
    join(&mut queue, &share("a", 'a'), 2);
    let first = queue.join(&share("b", 'b'), 1, 0);
    join(&mut queue, &share("b", 'b'), 2);
    queue.set_classes(&named(&[("a", 1), ("c", 1)]));
    assert_eq!((queue.len(), queue.depth(&'b')), (5, 3));
    assert_eq!(queue.leave(&first), Some(0));
    assert_eq!(queue.leave(&first), None);
    // A new request of that class joins the first class.
    join(&mut queue, &share("b", 'n'), 1);
    assert_eq!(take(&mut queue, 9), "abnba");
    assert_eq!(queue.lanes.len(), 2);
}

#[test]
fn a_lone_flood_takes_half_of_the_room() {
    // Lets each key join until no key has room. Returns the number of waiters of each key.
    let fill = |keys: &str| {
        let mut queue = ClassQueue::default();
        // No key can join more often than 1000 times.
        for key in keys.chars().cycle().take(1000 * keys.len()) {
            if queue.has_room(&key, Some(usize::MAX), 1000) {
                queue.join(&Share::of(key), 1, 0);
            }
        }
        let depth = |key: char| queue.depth(&key);
        keys.chars().map(depth).collect::<Vec<_>>()
    };
    assert_eq!(fill("a"), [500]);
    assert_eq!(fill("ab"), [334, 333]);
    assert_eq!(fill("abcdefghi"), [100; 9]);
    let mut queue = ClassQueue::default();
    join(&mut queue, &Share::of('a'), 100);
    assert!(!queue.has_room(&'a', Some(100), 1000));
    assert!(queue.has_room(&'b', Some(100), 1000));
}

#[test]
fn all_keys_are_seen_and_all_can_be_cleared() {
    let mut queue = queue(&[("a", 1), ("b", 1)]);
    join(&mut queue, &share("a", 'x'), 2);
    join(&mut queue, &share("b", 'x'), 1);
    join(&mut queue, &share("b", 'y'), 3);
    let (mut seen, mut next) = (Vec::new(), Some((0, 0)));
    // One step at a time.
    while let Some(from) = next {
        next = queue.depths(from, 1, |key, depth| seen.push((*key, depth)));
    }
    seen.sort_unstable();
    assert_eq!(seen, [('x', 1), ('x', 2), ('y', 3)]);
    assert_eq!(queue.clear().len(), 6);
    assert!(queue.is_empty());
}

#[test]
fn a_departure_without_waiting_is_charged_to_its_class_and_key() {
    let mut queue = queue(&[("a", 1), ("b", 1)]);
    queue.depart(&share("a", 'x'), 4);
    join(&mut queue, &share("a", 'x'), 3);
    join(&mut queue, &share("a", 'y'), 3);
    join(&mut queue, &share("b", 'z'), 5);
    // Class a has had four departures, all of key x.
    assert_eq!(take(&mut queue, 11), "zzzzyzyyxxx");
    queue.depart(&share("a", 'x'), 4);
    queue.restart();
    join(&mut queue, &share("a", 'x'), 2);
    join(&mut queue, &share("b", 'z'), 2);
    assert_eq!(take(&mut queue, 4), "xzxz");
}

#[test]
fn a_class_without_waiters_keeps_its_charges_until_other_classes_had_as_much() {
    let mut queue = queue(&[("a", 1), ("b", 1)]);
    join(&mut queue, &share("b", 'z'), 100);
    queue.join(&share("a", 'x'), 8, 0);
    assert_eq!(take(&mut queue, 2), "zx");
    // It has had eight departures: it cannot begin anew beside y.
    join(&mut queue, &share("a", 'x'), 2);
    join(&mut queue, &share("a", 'y'), 2);
    let order = take(&mut queue, 11);
    let found = order.replace('z', "");
    assert_eq!(found, "yyxx"[..order.replace('z', "").len()]);
    // Once others have had as much as the class, its keys are equal.
    take(&mut queue, 40);
    join(&mut queue, &share("a", 'x'), 2);
    join(&mut queue, &share("a", 'y'), 2);
    assert_eq!(take(&mut queue, 8).replace('z', ""), "xyxy");
}

const NAMES: [&str; 3] = ["a", "b", "c"];

proptest! {
    #![proptest_config(config())]

    /// Two classes that always wait stay within one request of their weights.
    #[test]
    fn two_classes_that_wait_keep_to_their_weights(
        weights in prop::array::uniform3(1_u32..=MAX_CLASS_WEIGHT),
        most in 1_usize..500,
    ) {
        let named: Vec<_> = NAMES.into_iter().zip(weights).collect();
        let mut queue = queue(&named);
        for (name, key) in NAMES.into_iter().zip("xyz".chars()) {
            join(&mut queue, &share(name, key), most);
        }
        let mut counts = [0_u32; 3];
        for key in take(&mut queue, most).chars() {
            counts["xyz".find(key).unwrap()] += 1;
            for (one, other) in [(0, 1), (0, 2), (1, 2)] {
                let share = |index: usize| f64::from(counts[index]) / f64::from(weights[index]);
                let bound = 1.0 / f64::from(weights[one]) + 1.0 / f64::from(weights[other]);
                let apart = (share(one) - share(other)).abs();
                prop_assert!(apart <= bound + 1e-9, "{:?} of {:?}", counts, weights);
            }
        }
    }

    /// The predicted wait of a new request is exact if no other request joins, or too long.
    ///
    /// It is never too short. It is too long by at most one request for each other key of the
    /// class, whose tag may be equal, and by the departures of the other classes meanwhile.
    #[test]
    fn the_requests_ahead_are_as_predicted(
        weights in prop::array::uniform3(1_u32..20),
        joins in prop::collection::vec((0_usize..3, 0_usize..4), 0..60),
        taken in 0_usize..20,
        class in 0_usize..3,
        key in 0_usize..5,
    ) {
        let named: Vec<_> = NAMES.into_iter().zip(weights).collect();
        let mut queue = queue(&named);
        let keys: Vec<char> = "vwxyz".chars().collect();
        for (class, key) in joins {
            queue.join(&share(NAMES[class], keys[key]), 1, 0);
        }
        take(&mut queue, taken);
        let share = share(NAMES[class], keys[key]);
        let predicted = queue.ahead_of_new(&share);
        queue.join(&share, 1, 7);
        let ahead = std::iter::from_fn(|| queue.take()).take_while(|next| next.waiter != 7);
        let ahead = ahead.count() as u64;
        let (own, all) = (weights[class], weights.iter().sum::<u32>());
        let keys = 4;
        let most = ahead + u64::from(keys * all / own) + 2;
        prop_assert!((ahead..=most).contains(&predicted), "{predicted} predicted, {ahead} ahead");
    }
}

/// Where gateways share an origin, a class has only a part of its weight at each.
#[test]
fn a_part_of_a_weight_counts_as_a_weight_of_its_own() {
    let mut queue = queue(&[("a", 4), ("b", 1)]);
    queue.set_parts(&[(named(&[("b", 1)])[0].hash(), 0.25)]);
    for (class, key) in [("a", 'a'), ("b", 'b')] {
        let share = share(class, key);
        join(&mut queue, &share, 200);
        assert!(queue.ahead_of_new(&share) >= 200);
    }
    let of_b = take(&mut queue, 170).matches('b').count();
    assert!((9..=11).contains(&of_b), "{of_b} of 170, not 10: 16 to 1");
    // The whole weight counts again.
    queue.set_parts(&[]);
    let of_b = take(&mut queue, 50).matches('b').count();
    assert!((8..=11).contains(&of_b), "{of_b} of 50, not 10");
}
