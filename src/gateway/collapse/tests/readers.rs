//! Tests of answers that only slow readers hold: they may take a quarter of the memory.

use super::*;

const LIMIT: usize = 100_000;

/// Returns clients of a route with `keep` in seconds, with memory for ten answers of 9,000 bytes.
fn limited(keep: u64) -> Clients {
    let clients = Clients::new(collapse(keep, 0));
    clients.shared.set_limit(LIMIT);
    clients
}

#[test]
fn slow_readers_leave_three_quarters_of_the_memory_to_kept_answers() {
    let clients = limited(60);
    // Each page is read slowly, and is no longer kept.
    let slow = clients.keep_many(200);
    assert!(clients.bytes() <= LIMIT);
    for nth in 0..7 {
        drop(clients.keep(&[b'k', nth], &[b'y'; 9000], 1));
    }
    let mut rests = Vec::new();
    for nth in 0..20 {
        let (leader, mut gathered) = clients.lead_begun(b"large", 2);
        assert!(leader.add(&mut gathered, &[b'z'; 2000]), "{nth}");
        // The answer is too large, so only its reader holds the gathered part.
        rests.push(gathered.into_rest(0).expect("the rest"));
        drop(leader);
        assert!(clients.bytes() <= LIMIT, "{}", clients.bytes());
    }
    for nth in 0..7 {
        assert!(clients.is_kept(&[b'k', nth], 3), "{nth}");
    }
    drop((slow, rests));
}

#[test]
fn the_body_held_longest_by_readers_is_cut_off_first() {
    let clients = limited(0);
    let slow = clients.keep_many(30);
    let is_cut_off: Vec<_> = slow.iter().map(|it| it.body().is_cut_off()).collect();
    // There is room for ten of them.
    assert_eq!(is_cut_off, [[true; 10], [true; 10], [false; 10]].concat());
    assert_eq!(clients.shared.evicted(), 20);
    assert!((90_000..=LIMIT).contains(&clients.bytes()));
    assert_eq!(bytes_of(slow[19].body()), None);
    assert_eq!(slow[19].body().length(), 9000);
    assert_eq!(bytes_of(slow[20].body()), Some(vec![b'x'; 9000]));
    drop(slow);
    assert_eq!(clients.shared.kept(), Kept::default());
    assert_eq!(clients.shared.memory.held(), 0);
}

#[test]
fn an_answer_that_is_kept_is_not_cut_off() {
    let clients = limited(60);
    let kept = clients.keep(KEY, &[b'x'; 9000], 0);
    let gather_unshared = |nth| {
        let (leader, gathered) = clients.gather(&[nth], &[b'x'; 9000], 0);
        leader.end_too_large(at(0));
        gathered.into_rest(0)
    };
    let slow: Vec<_> = (0..20_u8).map(gather_unshared).collect();
    assert!(!kept.body().is_cut_off());
    assert!(clients.is_kept(KEY, 1));
    drop(slow);
}

#[test]
fn the_rest_of_an_answer_that_is_not_shared_takes_memory_until_it_is_read() {
    let clients = limited(0);
    let (leader, gathered) = clients.gather(KEY, &[b'x'; 9000], 0);
    let rest = gathered.into_rest(4000).expect("a rest");
    assert_eq!(bytes_of(&rest), Some(vec![b'x'; 5000]));
    assert!((5000..6000).contains(&clients.bytes()));
    assert_eq!(clients.shared.memory.held(), clients.bytes());
    drop((leader, rest));
    assert_eq!(clients.shared.kept(), Kept::default());
    let (leader, gathered) = clients.gather(KEY, &[b'x'; 9000], 1);
    assert!(gathered.into_rest(9000).is_none(), "the client has all");
    assert_eq!(clients.bytes(), 0);
    drop(leader);
}

#[test]
fn gathered_answers_find_room_until_they_have_three_quarters() {
    let clients = limited(0);
    let slow = clients.keep_many(11);
    let mut gathered = Vec::new();
    for nth in 0..7_u8 {
        gathered.push(clients.gather(&[nth], &[b'y'; 9000], 1));
        assert!(clients.bytes() <= LIMIT);
    }
    let (leader, mut too_much) = clients.lead_begun(KEY, 2);
    assert!(!leader.add(&mut too_much, &vec![b'z'; 20_000]));
    // Readers keep their quarter.
    let left = slow.iter().filter(|it| !it.body().is_cut_off());
    assert!(left.count() >= 2);
    // Without slow readers, there is room for more.
    drop(slow);
    assert!(leader.add(&mut too_much, &vec![b'z'; 20_000]));
}

#[test]
fn readers_are_cut_off_on_other_threads_without_harm() {
    let clients = limited(0);
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let clients = &clients;
            scope.spawn(move || {
                let mut slow = Vec::new();
                for nth in 0..200_u8 {
                    // While another thread cuts readers off, there may briefly be no room.
                    slow.push(clients.try_keep(&[thread, nth], &[nth; 9000], 0));
                    let read = &slow[usize::from(nth) / 2];
                    if let Some(bytes) = read.as_ref().and_then(|read| bytes_of(read.body())) {
                        assert!(bytes == [nth / 2; 9000], "{nth}");
                    }
                    if nth % 3 == 0 && nth > 0 {
                        slow[usize::from(nth) / 3] = Some(clients.keep(&[thread, 255], b"", 0));
                    }
                }
                let kept = slow.iter().flatten().count();
                assert!(kept > 150, "{kept} of 200 fit");
            });
        }
    });
    assert_eq!(clients.shared.kept(), Kept::default());
    assert_eq!(clients.shared.memory.held(), 0);
}
