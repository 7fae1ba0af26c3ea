//! Followers that go on by themselves, and followers that leave.

use super::*;

#[test]
fn those_who_waited_for_an_answer_of_one_go_on_in_their_order() {
    let mut table = Table::new(NEVER);
    let id = table.lead(0);
    for now in 1..=3 {
        table.follow(now, true);
    }
    table.kinds.unshareable(&id, at(10));
    assert_eq!(table.kinds.release(&id), Some(1));
    // Newcomers go behind those that came before, whether they might lead or not.
    table.follow(11, true);
    table.follow(12, false);
    for waiter in 2..=5 {
        assert_eq!(table.kinds.release(&id), Some(waiter));
    }
    assert_eq!(table.kinds.release(&id), None);
    assert_eq!(table.kinds.release(&id), None);
    assert_eq!(table.flights(), 0);
}

#[test]
fn the_kind_is_unshareable_for_ten_seconds() {
    let mut table = Table::new(until(100_000, 100_000, 100_000));
    let id = table.lead(0);
    table.kinds.unshareable(&id, at(1000));
    assert_eq!(table.kinds.release(&id), None);
    for now in [1000, 5000, 10_999] {
        assert_eq!(table.ask(now), Lookup::Alone);
    }
    assert_eq!(table.kinds.answers(), 0);
    let id = table.lead(11_000);
    table.follow(11_001, true);
    assert_eq!(table.complete(&id, 7, 11_002), [1]);
    assert_eq!(table.ask(11_003), Lookup::Kept(7));
}

#[test]
fn an_answer_of_one_replaces_the_one_that_was_kept() {
    let mut table = Table::new(until(100, 10_000, 10_000));
    let id = table.lead(0);
    assert_eq!(table.complete(&id, 7, 0), [0; 0]);
    let Lookup::Stale(7, Some(refresh)) = table.ask(100) else {
        panic!("it is fetched anew");
    };
    table.kinds.unshareable(&refresh, at(200));
    assert_eq!(table.kinds.release(&refresh), None);
    assert_eq!(table.ask(201), Lookup::Alone);
    assert_eq!(table.kinds.answers(), 0);
}

#[test]
fn a_release_that_takes_longer_than_the_mark_goes_on() {
    let mut table = Table::new(NEVER);
    let id = table.lead(0);
    table.follow(1, true);
    table.follow(2, true);
    table.kinds.unshareable(&id, at(10));
    assert_eq!(table.kinds.release(&id), Some(1));
    table.follow(20_000, true);
    assert_eq!(table.kinds.release(&id), Some(2));
    assert_eq!(table.kinds.release(&id), Some(3));
    assert_eq!(table.kinds.release(&id), None);
    assert!(matches!(table.ask(20_001), Lookup::Lead(_)));
}

#[test]
fn one_that_leaves_is_passed_over() {
    let mut table = Table::new(NEVER);
    let id = table.lead(0);
    let first = table.follow(1, true);
    let second = table.follow(2, true);
    let third = table.follow(3, true);
    assert!(!table.kinds.leave(KEY, second));
    assert!(!table.kinds.leave(KEY, second), "it has left already");
    assert!(!table.kinds.leave(b"other", third));
    let failed = table.dropped(&id);
    let id = table.next(failed, 1);
    assert!(!table.kinds.leave(KEY, first), "it leads");
    assert!(table.kinds.is_followed(&id));
    assert!(table.kinds.leave(KEY, third), "nobody follows any more");
    assert!(!table.kinds.is_followed(&id));
    assert_eq!(table.complete(&id, 7, 4), [0; 0]);
}

#[test]
fn all_who_are_to_go_on_may_leave_before() {
    let mut table = Table::new(NEVER);
    let id = table.lead(0);
    let followers = [1, 2, 3].map(|now| table.follow(now, true));
    table.kinds.unshareable(&id, at(10));
    assert_eq!(table.kinds.release(&id), Some(1));
    assert!(!table.kinds.leave(KEY, followers[2]));
    assert!(table.kinds.leave(KEY, followers[1]));
    assert_eq!(table.kinds.release(&id), None);
    assert_eq!(table.flights(), 0);
}
