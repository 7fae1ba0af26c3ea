//! Tests of the order in which followers receive their results.

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
    leader.record_departure(None, at(3));
    assert_eq!(last.departed(), Some(at(3)));
    assert_eq!(clients.follow(4).departed(), Some(at(3)));
    assert!(leader.end_failed(at(5)).is_none());
    // The next leader has not left yet.
    let mut next = promoted(&mut follower);
    assert!(next.take_reserved().is_none(), "there is no gate");
    assert_eq!(last.departed(), None);
    next.record_departure(None, at(6));
    assert_eq!(last.departed(), Some(at(6)));
}

#[test]
fn an_unused_turn_passes_to_the_next_follower() {
    let clients = Clients::new(collapse(0, 0));
    let leader = clients.lead(0);
    let [first, second, mut third] = [1, 2, 3].map(|now| clients.follow(now));
    leader.end_too_large(at(4));
    assert!(is_waiting(&mut third));
    // The second follower leaves before its turn. The first one leaves without taking its turn.
    drop(second);
    assert!(is_waiting(&mut third));
    drop(first);
    drop(released(&mut third));
    clients.shared.set_limit(0);
    clients.lead(5);
}

#[test]
fn an_unused_lead_passes_to_the_next_follower() {
    let clients = Clients::new(collapse(0, 0));
    let leader = clients.lead(0);
    let [first, second, mut third] = [1, 2, 3].map(|now| clients.follow(now));
    drop(leader);
    assert!(is_waiting(&mut third));
    drop(first);
    assert!(is_waiting(&mut third));
    drop(second);
    let leader = promoted(&mut third);
    assert!(matches!(clients.ask(KEY, 4), CollapseLookup::Follow(_)));
    drop(leader);
    clients.lead(5);
}

/// Counts its wake-ups.
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
    // The new leader is woken, too.
    drop(leader);
    let leader = promoted(&mut first);
    assert_eq!(leader.poll_alone(&mut cx), Poll::Pending);
    drop(third);
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(leader.poll_alone(&mut cx), Poll::Ready(()));
}

#[test]
fn followers_on_other_threads_all_get_a_result() {
    let clients = Clients::new(collapse(0, 0));
    let leader = clients.lead(0);
    let followers: Vec<_> = (0..60).map(|_| clients.follow(1)).collect();
    let with_result: usize = std::thread::scope(|scope| {
        let start = |(number, follower): (usize, Follower)| {
            // Some leave. Each of the others ends its turn at once.
            let has_result = move || number % 3 > 0 && block_on(follower).is_some();
            scope.spawn(has_result)
        };
        let threads: Vec<_> = followers.into_iter().enumerate().map(start).collect();
        leader.end_too_large(at(2));
        let with_result = threads.into_iter().map(|it| it.join().expect("no panic"));
        with_result.map(usize::from).sum()
    });
    assert_eq!(with_result, 40);
    clients.shared.set_limit(0);
    clients.lead(3);
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(future)
}
