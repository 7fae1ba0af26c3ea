//! Tests of the memory that answers take.

use super::*;

/// Returns the number of kept answers.
fn answers(clients: &Clients) -> usize {
    clients.shared.kept().answers
}

#[test]
fn an_unneeded_answer_takes_no_memory() {
    let clients = Clients::new(collapse(0, 0));
    let leader = clients.lead(0);
    let [mut first, second] = [1, 2].map(|now| clients.follow(now));
    let own = clients.complete(leader, &[b'x'; 1000], 3);
    let used = clients.bytes();
    assert!((1000..2000).contains(&used), "{used}");
    let read = answer(&mut first);
    drop((own, first));
    assert_eq!(clients.bytes(), used, "one reads it, and one may");
    drop(read);
    assert_eq!(clients.bytes(), used);
    // A follower that has never read its answer leaves.
    drop(second);
    assert_eq!(clients.shared.kept(), Kept::default());
}

#[test]
fn a_slow_reader_holds_an_answer_that_is_forgotten() {
    let clients = Clients::new(collapse(60, 0));
    let read = clients.keep(KEY, &[b'x'; 1000], 0);
    assert_eq!(answers(&clients), 1);
    let used = clients.bytes();
    clients.shared.set_limit(used - 1);
    assert_eq!(answers(&clients), 0);
    assert!((1000..used).contains(&clients.bytes()));
    assert_eq!(bytes_of(read.body()), Some(vec![b'x'; 1000]));
    drop(read);
    assert_eq!(clients.shared.kept(), Kept::default());
}

#[test]
fn a_smaller_limit_forgets_what_was_used_least_recently() {
    let clients = Clients::new(collapse(60, 0));
    for key in [b"a", b"b", b"c"] {
        clients.keep(key, &[b'x'; 1000], 0);
    }
    let used = clients.bytes();
    assert!(clients.is_kept(b"a", 1));
    clients.shared.set_limit(used);
    assert_eq!(answers(&clients), 3);
    clients.shared.set_limit(used - 1);
    assert_eq!(answers(&clients), 2);
    assert!(!clients.is_kept(b"b", 1));
    assert!(clients.is_kept(b"a", 1) && clients.is_kept(b"c", 1));
}

#[test]
fn unshareable_kinds_stay_within_the_memory_limit() {
    let clients = Clients::new(collapse(60, 0));
    clients.shared.set_limit(100_000);
    for number in 0..1000_u64 {
        let key = [&number.to_be_bytes()[..], &[b'x'; 1000]].concat();
        clients.lead_of(&key, number).end_private(at(number));
        assert!(clients.bytes() <= 100_000, "{}", clients.bytes());
    }
    assert!(clients.bytes() > 50_000, "{}", clients.bytes());
}

#[test]
fn an_answer_above_max_size_is_refused() {
    let max_size = NonZeroU64::new(1000).expect("not zero");
    let clients = Clients::new(Collapse {
        max_size,
        ..collapse(60, 0)
    });
    let (leader, mut gathered) = clients.gather(KEY, &[b'x'; 600], 0);
    assert!(!leader.add(&mut gathered, &[b'x'; 401]));
    assert_eq!(gathered.body(), [b'x'; 600], "nothing of it is added");
    assert!(leader.add(&mut gathered, &[b'y'; 400]));
    assert!(!leader.add(&mut gathered, b"z"));
    assert!(leader.add(&mut gathered, b""));
    // While it grows, its capacity stays within `max_size`.
    let used = clients.bytes();
    assert!(used < 1500, "{used}");
    let answer = leader.complete(gathered, at(0));
    assert_eq!(answer.body().length(), 1000);
    assert!(clients.is_kept(KEY, 1));
}

#[test]
fn an_answer_larger_than_all_memory_is_refused_and_disturbs_no_other() {
    let clients = Clients::new(collapse(60, 0));
    clients.shared.set_limit(3000);
    clients.keep(b"small", &[b'x'; 100], 0);
    let (leader, mut gathered) = clients.lead_begun(KEY, 0);
    assert!(!leader.add(&mut gathered, &[b'x'; 5000]));
    assert!(gathered.body().is_empty());
    assert!(clients.is_kept(b"small", 1));
    leader.end_too_large(at(1));
    assert!(matches!(clients.ask(KEY, 1), CollapseLookup::Alone));
}

#[test]
fn an_answer_counts_while_it_arrives() {
    let clients = Clients::new(collapse(60, 0));
    let (leader, mut gathered) = clients.lead_begun(KEY, 0);
    assert_eq!(clients.bytes(), 0);
    for piece in 1..=100 {
        assert!(leader.add(&mut gathered, &[b'x'; 100]));
        let used = clients.bytes();
        assert!((piece * 100..piece * 200 + 1000).contains(&used), "{used}");
    }
    let before = clients.bytes();
    drop(clients.begin(&leader, 0));
    assert_eq!(clients.bytes(), before);
    let answer = leader.complete(gathered, at(0));
    // A complete answer takes only what it needs, plus its entry.
    let used = clients.bytes();
    assert!((10_000..11_000).contains(&used), "{used}");
    drop(answer);
    assert_eq!(clients.bytes(), used, "it is kept");
    drop(clients.gather(b"other", &[b'x'; 100], 1));
    assert_eq!(clients.bytes(), used, "a broken one takes nothing");
}

#[test]
fn fields_and_names_are_counted() {
    let mut long = head(&collapse(60, 0), 0);
    long.fields.push(b"x-long", &[b'v'; 500]);
    long.fields.push(b"X-Empty", b"");
    assert_eq!(long.fields.first("X-LONG").map(<[u8]>::len), Some(500));
    assert_eq!(long.fields.first("x-empty"), Some(&b""[..]));
    assert_eq!(long.fields.first("x"), None);
    let fields: Vec<_> = long.fields.iter().map(|it| (it.0, it.1.len())).collect();
    assert_eq!(fields, [(&b"x-long"[..], 500), (b"X-Empty", 0)]);
    let clients = Clients::new(collapse(60, 0));
    let leader = clients.lead(0);
    let mut gathered = leader.gather(long, true);
    assert!(leader.add(&mut gathered, b"x"));
    let _answer = leader.complete(gathered, at(0));
    assert!(clients.bytes() > 500);
}
