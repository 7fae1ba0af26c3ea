//! What is remembered, and forgotten.

use super::*;

impl Table {
    /// Keeps this answer of a kind.
    fn keep(&mut self, key: &[u8], answer: u32, now: u64) {
        let id = self.lead_of(key, now);
        assert_eq!(self.complete(&id, answer, now), [0; 0]);
    }
}

#[test]
fn the_entry_that_was_used_least_recently_is_forgotten_first() {
    let mut table = Table::new(until(100, 100, 100));
    for (key, answer) in [(b"a", 1), (b"b", 2), (b"c", 3)] {
        table.keep(key, answer, 0);
    }
    assert_eq!(table.ask_with(b"a", 1, true), Lookup::Kept(1));
    assert_eq!(table.kinds.evict(), Some(true));
    assert!(matches!(table.ask_with(b"b", 2, false), Lookup::Alone));
    assert_eq!(table.kinds.evict(), Some(true));
    assert!(matches!(table.ask_with(b"c", 2, false), Lookup::Alone));
    assert_eq!(table.ask_with(b"a", 2, true), Lookup::Kept(1));
    assert_eq!(table.kinds.evict(), Some(true));
    assert_eq!(table.kinds.evict(), None);
    assert_eq!((table.kinds.answers(), table.kinds.bytes()), (0, 0));
}

#[test]
fn marks_are_forgotten_like_answers_but_are_none() {
    let mut table = Table::new(until(100, 100, 100));
    let id = table.lead_of(b"mark", 0);
    table.kinds.unshareable(&id, at(0));
    assert_eq!(table.kinds.release(&id), None);
    table.keep(b"answer", 7, 0);
    assert_eq!(table.kinds.answers(), 1);
    assert_eq!(table.kinds.evict(), Some(false));
    assert!(matches!(table.ask_with(b"mark", 1, true), Lookup::Lead(_)));
    assert_eq!(table.kinds.evict(), Some(true));
    assert_eq!(table.kinds.bytes(), 0);
}

#[test]
fn each_entry_is_counted_once() {
    let mut table = Table::new(until(100, 100, 100));
    assert_eq!(table.kinds.bytes(), 0);
    table.keep(b"12345", 1, 0);
    let one = table.kinds.bytes();
    assert_eq!(one, 5 + ENTRY);
    table.keep(b"1234567", 2, 0);
    assert_eq!(table.kinds.bytes(), 2 * one + 2);
    // Another answer of the same kind, a mark of it, and an answer again.
    assert_eq!(table.ask_with(b"12345", 1, true), Lookup::Kept(1));
    assert_eq!(table.kinds.evict(), Some(true));
    table.windows = until(300, 300, 300);
    let id = table.kinds.begin(b"12345", 1, false);
    assert_eq!(table.complete(&id, 2, 100), [0; 0]);
    assert_eq!((table.kinds.answers(), table.kinds.bytes()), (1, one));
    let id = table.kinds.begin(b"12345", 1, false);
    table.kinds.unshareable(&id, at(100));
    assert_eq!(table.kinds.release(&id), None);
    assert_eq!((table.kinds.answers(), table.kinds.bytes()), (0, one));
    let id = table.kinds.begin(b"12345", 1, false);
    assert_eq!(table.complete(&id, 3, 100), [0; 0]);
    assert_eq!((table.kinds.answers(), table.kinds.bytes()), (1, one));
    // One that serves nobody later takes the old one with it.
    let id = table.kinds.begin(b"12345", 1, false);
    assert_eq!(table.complete(&id, 4, 300), [0; 0]);
    assert_eq!((table.kinds.answers(), table.kinds.bytes()), (0, 0));
}

#[test]
fn what_is_forgotten_does_not_disturb_those_who_wait() {
    let mut table = Table::new(until(100, 100, 1000));
    table.keep(KEY, 7, 0);
    let id = table.lead(100);
    table.follow(101, true);
    assert_eq!(table.kinds.evict(), Some(true));
    // Without the answer, the next one leads.
    let failed = table.failed(&id, 102);
    let id = table.next(failed, 1);
    table.follow(103, true);
    table.kinds.unshareable(&id, at(104));
    assert_eq!(table.kinds.evict(), Some(false));
    table.follow(105, true);
    assert_eq!(table.kinds.release(&id), Some(2));
    assert_eq!(table.kinds.release(&id), Some(3));
    assert_eq!(table.kinds.release(&id), None);
    assert!(matches!(table.ask(106), Lookup::Lead(_)));
}
