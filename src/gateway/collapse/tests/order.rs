//! Who is told what, and when.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::*;

#[test]
fn all_get_the_same_answer() {
    let clients = Clients::new(collapse(0, 0));
    let leader = clients.lead(0);
    let mut followers = [1, 2, 3].map(|now| clients.follow(now));
    assert!(followers.iter_mut().all(is_waiting));
    let own = clients.complete(leader, b"news", 4);
    assert_eq!(bytes_of(own.body()).as_deref(), Some(&b"news"[..]));
    for follower in &mut followers {
        assert!(Arc::ptr_eq(&answer(follower), &own), "one buffer");
    }
    clients.lead(4);
}

#[test]
fn a_follower_knows_when_its_leader_leaves_for_the_origin() {
    let clients = Clients::new(collapse(0, 0));
    let mut leader = clients.lead(0);
    let mut follower = clients.follow(1);
    let last = clients.follow(1);
    assert_eq!(follower.departed(), None);
    leader.departs(None, at(3));
    assert_eq!(last.departed(), Some(at(3)));
    assert_eq!(clients.follow(4).departed(), Some(at(3)));
    assert!(leader.failed(at(5)).is_none());
    // The next one has not left yet.
    let mut next = promoted(&mut follower);
    assert!(next.take_reserved().is_none(), "there is no gate");
    assert_eq!(last.departed(), None);
    next.departs(None, at(6));
    assert_eq!(last.departed(), Some(at(6)));
}

#[test]
fn released_followers_go_on_one_behind_the_other() {
    let clients = Clients::new(collapse(0, 0));
    let leader = clients.lead(0);
    let mut before = [1, 2].map(|now| clients.follow(now));
    leader.unshareable(at(3));
    let first = released(&mut before[0]);
    let mut newcomer = clients.follow(4);
    assert!(is_waiting(&mut before[1]) && is_waiting(&mut newcomer));
    drop(first);
    let second = released(&mut before[1]);
    assert!(is_waiting(&mut newcomer));
    drop(second);
    drop(released(&mut newcomer));
    for now in [5, 12] {
        assert!(matches!(clients.ask(KEY, now), Share::Alone), "{now}");
    }
    clients.lead(13);
}

#[test]
fn a_turn_that_nobody_takes_is_that_of_the_next_one() {
    let clients = Clients::new(collapse(0, 0));
    let leader = clients.lead(0);
    let [first, second, mut third] = [1, 2, 3].map(|now| clients.follow(now));
    leader.unshareable(at(4));
    assert!(is_waiting(&mut third));
    // It was told, and leaves before it hears of it; the next one has left by then.
    drop(second);
    assert!(is_waiting(&mut third));
    drop(first);
    drop(released(&mut third));
    clients.shared.set_limit(0);
    clients.lead(5);
}

#[test]
fn a_lead_that_nobody_takes_is_that_of_the_next_one() {
    let clients = Clients::new(collapse(0, 0));
    let leader = clients.lead(0);
    let [first, second, mut third] = [1, 2, 3].map(|now| clients.follow(now));
    drop(leader);
    assert!(is_waiting(&mut third));
    drop(first);
    assert!(is_waiting(&mut third));
    drop(second);
    let leader = promoted(&mut third);
    assert!(matches!(clients.ask(KEY, 4), Share::Follow(_)));
    drop(leader);
    clients.lead(5);
}

#[test]
fn a_request_for_a_part_does_not_lead() {
    let clients = Clients::new(collapse(0, 0));
    let part = || clients.ask_of(None, KEY, false, 1);
    assert!(matches!(part(), Share::Alone));
    let leader = clients.lead(0);
    let Share::Follow(mut of_part) = part() else {
        panic!("it follows");
    };
    let mut whole = clients.follow(2);
    drop(leader);
    assert!(is_waiting(&mut of_part));
    let leader = promoted(&mut whole);
    // With nobody left who may lead, it goes on by itself.
    drop(leader);
    drop(released(&mut of_part));
    clients.lead(3);
}

#[test]
fn the_second_failure_in_a_row_releases_all() {
    let clients = Clients::new(collapse(0, 0));
    let leader = clients.lead(0);
    let mut followers = [1, 2, 3].map(|now| clients.follow(now));
    assert!(leader.failed(at(4)).is_none());
    let leader = promoted(&mut followers[0]);
    assert!(leader.failed(at(5)).is_none());
    let turn = released(&mut followers[1]);
    assert!(is_waiting(&mut followers[2]));
    drop(turn);
    drop(released(&mut followers[2]));
    // One at a time probes whether an answer may be shared again, and nobody waits for it.
    let probe = clients.lead(6);
    assert!(matches!(clients.ask(KEY, 6), Share::Alone));
    assert!(probe.failed(at(7)).is_none());
    let probe = clients.lead(8);
    clients.complete(probe, b"news", 9);
    let leader = clients.lead(10);
    drop(clients.follow(11));
    drop(leader);
}

#[test]
fn a_status_of_one_client_is_no_matter_of_the_others() {
    let clients = Clients::new(collapse(0, 0));
    let of = |last| {
        let address = IpAddr::from([0x2001, 0xdb8, 0, last, 0, 0, 0, last]);
        match clients.ask_of(Some(address), KEY, true, 1) {
            Share::Follow(follower) => Ok(follower),
            Share::Lead(leader) => Err(Box::new(leader)),
            other => panic!("{other:?}"),
        }
    };
    let leader = of(1).expect_err("it leads");
    let (mut own, mut other) = (of(1).expect("it follows"), of(2).expect("it follows"));
    leader.has_own_answer(at(2));
    // Whoever comes of the same client is no evidence.
    assert!(is_waiting(&mut own));
    let leader = promoted(&mut other);
    let news = clients.complete(leader, b"news", 3);
    assert!(Arc::ptr_eq(&answer(&mut own), &news));
    // Alone, it leads all the same, and the second answer in a row is that of all.
    let leader = of(1).expect_err("it leads");
    let mut followers = [1, 1, 1].map(|last| of(last).expect("it follows"));
    leader.has_own_answer(at(4));
    promoted(&mut followers[0]).has_own_answer(at(5));
    for follower in &mut followers[1..] {
        drop(released(follower));
    }
    let probe = of(2).expect_err("it probes");
    assert!(matches!(clients.ask(KEY, 6), Share::Alone));
    drop(probe);
}

#[test]
fn a_failure_gives_the_stale_answer_to_all() {
    let clients = Clients::new(collapse(1, 100));
    let kept = clients.keep(KEY, b"old", 0);
    let leader = clients.lead(1);
    let mut follower = clients.follow(2);
    let own = leader.failed(at(3)).expect("a stale answer");
    assert!(Arc::ptr_eq(&own, &kept));
    match told(&mut follower) {
        Some(Followed::Stale(answer)) => assert!(Arc::ptr_eq(&answer, &kept)),
        other => panic!("{other:?}"),
    }
    assert_eq!(own.age(at(3)), Duration::from_secs(3));
    assert!(matches!(clients.ask(KEY, 3), Share::Stale(_, None)));
    let Share::Stale(stale, Some(refresh)) = clients.ask(KEY, 4) else {
        panic!("it is fetched anew");
    };
    assert!(Arc::ptr_eq(&stale, &kept));
    assert!(matches!(clients.ask(KEY, 4), Share::Stale(_, None)));
    clients.complete(refresh, b"new", 5);
    match clients.ask(KEY, 5) {
        Share::Kept(answer) => assert_eq!(bytes_of(answer.body()).as_deref(), Some(&b"new"[..])),
        other => panic!("{other:?}"),
    }
}

/// Counts how often it wakes somebody.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_leader_is_woken_when_the_last_follower_leaves() {
    let clients = Clients::new(collapse(0, 0));
    let wakes = Arc::new(Wakes::default());
    let for_leader = Waker::from(Arc::clone(&wakes));
    let mut cx = Context::from_waker(&for_leader);
    let leader = clients.lead(0);
    assert_eq!(leader.poll_alone(&mut cx), Poll::Ready(()));
    let [mut first, second, third] = [1, 2, 3].map(|now| clients.follow(now));
    assert_eq!(leader.poll_alone(&mut cx), Poll::Pending);
    drop(second);
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    // The one that leads now is woken, too.
    drop(leader);
    let leader = promoted(&mut first);
    assert_eq!(leader.poll_alone(&mut cx), Poll::Pending);
    drop(third);
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(leader.poll_alone(&mut cx), Poll::Ready(()));
}

#[test]
fn followers_on_other_threads_are_all_told() {
    let clients = Clients::new(collapse(0, 0));
    let leader = clients.lead(0);
    let followers: Vec<_> = (0..60).map(|_| clients.follow(1)).collect();
    let told: usize = std::thread::scope(|scope| {
        let tell = |(number, follower): (usize, Follower)| {
            // Some leave, and the turn of each other one ends at once.
            let is_told = move || number % 3 > 0 && block_on(follower).is_some();
            scope.spawn(is_told)
        };
        let threads: Vec<_> = followers.into_iter().enumerate().map(tell).collect();
        leader.unshareable(at(2));
        let told = threads
            .into_iter()
            .map(|it| it.join().expect("whether it was told"));
        told.map(usize::from).sum()
    });
    assert_eq!(told, 40);
    clients.shared.set_limit(0);
    clients.lead(3);
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(future)
}
