//! Tests of answers that may never end.

use super::*;

const LIMIT: Duration = Duration::from_secs(5);

/// Returns a leader that left for the origin, and whose answer began, at this second.
fn begun(clients: &Clients, now: u64, has_length: bool) -> (Leader, Gathered) {
    let mut leader = clients.lead(now);
    leader.record_departure(None, at(now));
    let gathered = leader.gather(head(&clients.collapse, now), has_length);
    (leader, gathered)
}

#[test]
fn followers_of_an_endless_answer_are_released_in_order() {
    let clients = Clients::new(collapse(0, 0));
    let (leader, mut gathered) = begun(&clients, 0, false);
    let mut followers = [1, 2].map(|now| clients.follow(now));
    assert!(!followers[0].give_up(LIMIT, at(4)), "it may end in time");
    assert!(followers.iter_mut().all(is_waiting));
    assert!(leader.add(&mut gathered, b"more"));

    assert!(followers[1].give_up(LIMIT, at(5)));
    assert!(followers[0].give_up(LIMIT, at(5)), "the same");
    let first = released(&mut followers[0]);
    assert!(is_waiting(&mut followers[1]));
    drop(first);
    drop(released(&mut followers[1]));
    assert!(!leader.add(&mut gathered, b"more"), "it is for nobody else");
    leader.end_too_large(at(6));
    // One request at a time probes, while the others go to the origin at once.
    let probe = clients.lead(6);
    assert!(matches!(clients.ask(KEY, 6), CollapseLookup::Alone));
    probe.end_private(at(7));
}

#[test]
fn a_request_during_an_endless_answer_does_not_wait() {
    let clients = Clients::new(collapse(0, 0));
    let (leader, gathered) = begun(&clients, 0, false);
    let mut newcomer = clients.follow(30);
    drop(released(&mut newcomer));
    // Later results of the leader change nothing.
    let probe = clients.lead(31);
    let _own = leader.complete(gathered, at(32));
    assert!(matches!(clients.ask(KEY, 32), CollapseLookup::Alone));
    probe.end_private(at(33));
}

#[test]
fn an_answer_with_a_length_is_waited_for() {
    let clients = Clients::new(collapse(0, 0));
    let (leader, gathered) = begun(&clients, 0, true);
    let mut follower = clients.follow(1);
    assert!(!follower.give_up(LIMIT, at(90)));
    let _own = leader.complete(gathered, at(91));
    assert_eq!(answer(&mut follower).body().length(), 0);
}
