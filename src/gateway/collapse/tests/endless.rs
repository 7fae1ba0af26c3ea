//! Tests of answers that may never end: answers without a length.
//!
//! A *leader* goes to the origin, and *gathers* the answer for its *followers*. If the answer has
//! no length and has lasted for a limit, a follower gives up. Then all followers are *released*:
//! each goes to the origin for itself. They go one after the other: a released follower has a
//! *turn*, and the next one is released when the turn is dropped.
//!
//! After that, requests with the same key are not collapsed for a while: their lookup gives
//! `Alone`. One request at a time *probes*, as a leader without followers, whether they may be
//! collapsed again. An answer is *private* if it is for its own client only.
//!
//! `collapse(0, 0)` keeps no answer after its end. Numbers such as `lead(6)` are seconds.

use super::*;

/// Duration after which followers give up.
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

    // Any follower can give up for all, and the others then learn that they are released.
    assert!(followers[1].give_up(LIMIT, at(5)));
    assert!(followers[0].give_up(LIMIT, at(5)), "the same");
    // The second one is released when the turn of the first is dropped.
    let first = released(&mut followers[0]);
    assert!(is_waiting(&mut followers[1]));
    drop(first);
    drop(released(&mut followers[1]));
    // Nobody follows any more, so the leader stops gathering.
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
    // The answer has lasted for longer than the limit, so a new follower is released at once.
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
