//! Tests of the fair queue.
//!
//! Each key has a *flow*: its waiters, and a *tag*, which is a place in the order of departures. A
//! departure moves the tag of its key by its cost. The flow of a key without waiters *rests*, until
//! its last departure counts no longer.

use super::*;

/// Takes all waiters. Returns their keys in order.
fn take_all(queue: &mut FairQueue<char, u32>) -> String {
    std::iter::from_fn(|| queue.take().map(|next| next.key)).collect()
}

/// Adds `count` waiters of a key.
fn join(queue: &mut FairQueue<char, u32>, key: char, count: u32) -> Vec<Position> {
    (0..count).map(|nth| queue.join(&key, 1, 1, nth)).collect()
}

#[test]
fn a_waiter_that_leaves_makes_room_and_its_position_is_valid_once() {
    let mut queue = FairQueue::default();
    let positions = join(&mut queue, 'a', 3);
    join(&mut queue, 'b', 2);
    assert_eq!(queue.leave(positions[1]), Some(1));
    assert_eq!(queue.leave(positions[1]), None);
    assert_eq!((queue.len(), queue.depth(&'a')), (4, 2));
    assert_eq!(take_all(&mut queue), "abab");
    assert_eq!(queue.leave(positions[0]), None);
    let again = join(&mut queue, 'c', 1);
    assert_eq!(queue.leave(positions[2]), None, "an earlier waiter's");
    assert_eq!(queue.leave(again[0]), Some(0));
    assert!(queue.is_empty());
}

#[test]
fn keys_whose_departures_no_longer_count_are_forgotten_a_few_in_each_call() {
    let mut queue = FairQueue::<u32, ()>::default();
    // An idle gate begins anew before each departure.
    for key in 0..1000 {
        queue.restart();
        queue.depart(&key, 1, 1);
        assert!(queue.flows.len() <= 1, "{}", queue.flows.len());
    }
    // Without a pause, each of these departures leaves a tag.
    for key in 0..11_000 {
        queue.join(&key, 1, 64, ());
    }
    while queue.take().is_some() {}
    assert!(queue.flows.len() <= MAX_RESTING + 1);
    assert_eq!(queue.by_key.len(), queue.flows.len());
    // Once none of them counts, each call forgets one more than it adds, and none searches.
    queue.restart();
    let (many, mut calls) = (queue.flows.len(), 0);
    assert!(many + 2 * FORGOTTEN_AT_ONCE > MAX_RESTING, "{many}");
    while queue.flows.len() > 0 {
        let before = queue.flows.len();
        queue.depart(&(30_000 + calls), 1, 1);
        queue.restart();
        assert!(before - queue.flows.len() < 2 * FORGOTTEN_AT_ONCE);
        calls += 1;
    }
    assert!(calls as usize <= many / 2, "{calls}");
    assert!(queue.by_key.capacity() <= MAX_KEPT_CAPACITY);
    assert_eq!(queue.now, 0);
}

#[test]
fn keys_that_come_once_are_forgotten_although_the_queue_never_empties() {
    let mut queue = FairQueue::default();
    let first = queue.join(&0, 1, 1, ());
    for key in 1..50_000 {
        queue.join(&key, 1, 1, ());
        assert_eq!(queue.take().map(|next| next.key), Some(key - 1));
    }
    let kept = queue.flows.len();
    assert!(kept <= MAX_RESTING + 2, "{kept}");
    assert_eq!(queue.by_key.len(), kept);
    assert_eq!(queue.leave(first), None, "it has left");
}

/// New keys send four times what departs, and each of their requests disconnects after 300 costs.
///
/// Time is the cost that has departed.
#[test]
fn known_keys_wait_little_beside_costly_newcomers_that_give_up() {
    const KNOWN: u64 = 6;
    let mut queue = FairQueue::default();
    let (mut fresh, mut now, mut arrival) = (KNOWN.., 0_u64, 0);
    let mut waiting = std::collections::VecDeque::new();
    // Per known key: the instant at which it joins again, and the instant since which it waits.
    let mut known = vec![(0, None); 6];
    let mut waits = Vec::new();
    while now < 30_000 {
        while arrival <= now {
            let key = fresh.next().expect("a key");
            waiting.push_back((arrival, queue.join(&key, 1, 40, key)));
            arrival += 10;
        }
        while waiting.front().is_some_and(|(since, _)| since + 300 < now) {
            let (_, position) = waiting.pop_front().expect("one waits");
            queue.leave(position);
        }
        for (key, (joins, since)) in (0..KNOWN).zip(&mut known) {
            if since.is_none() && *joins <= now {
                queue.join(&key, 1, 1, key);
                *since = Some(*joins);
            }
        }
        let next = queue.take().expect("many wait");
        let key = usize::try_from(next.key).expect("a small number");
        if let Some((joins, since)) = known.get_mut(key) {
            waits.push(now - since.take().expect("it waits"));
            *joins = now + 20;
        }
        now += u64::from(next.cost);
    }
    waits.sort_unstable();
    let (p99, longest) = (waits[waits.len() * 99 / 100], waits[waits.len() - 1]);
    let is_little = p99 <= 120 && longest < 300;
    assert!(is_little, "p99 {p99}, longest {longest}");
}
