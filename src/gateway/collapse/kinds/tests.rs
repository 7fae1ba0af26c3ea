//! Examples of each rule.

mod entries;
mod failures;
mod releases;

use super::*;

const KEY: &[u8] = b"/news/";

const fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

/// When answers of these tests are fresh, may be refreshed, and may stand in for a failure: until
/// so many milliseconds.
const fn until(fresh: u64, revalidate: u64, error: u64) -> Windows {
    Windows {
        fresh: at(fresh),
        revalidate: at(revalidate),
        error: at(error),
    }
}

const NEVER: Windows = until(0, 0, 0);

/// Kinds whose answers and waiters are numbers, and whose answers all have the same windows.
struct Table {
    kinds: Kinds<u32, u32, ()>,
    windows: Windows,
    /// The number of the last waiter.
    waiters: u32,
    client: u64,
}

impl Table {
    fn new(windows: Windows) -> Self {
        Self {
            kinds: Kinds::default(),
            windows,
            waiters: 0,
            client: 1,
        }
    }

    fn ask_with(&mut self, key: &[u8], now: u64, may_lead: bool) -> Lookup<u32> {
        let (windows, number) = (self.windows, self.waiters + 1);
        let client = self.client;
        let waiters = &mut self.waiters;
        let wait = |(): &()| {
            *waiters = number;
            number
        };
        let asker = Asker { client, may_lead };
        self.kinds.ask(key, at(now), asker, |_| windows, wait)
    }

    fn ask(&mut self, now: u64) -> Lookup<u32> {
        self.ask_with(KEY, now, true)
    }

    fn lead_of(&mut self, key: &[u8], now: u64) -> FlightId {
        match self.ask_with(key, now, true) {
            Lookup::Lead(id) => id,
            other => panic!("{other:?}"),
        }
    }

    fn lead(&mut self, now: u64) -> FlightId {
        self.lead_of(KEY, now)
    }

    /// A request that follows; returns its number among those that follow.
    fn follow(&mut self, now: u64, may_lead: bool) -> u64 {
        match self.ask_with(KEY, now, may_lead) {
            Lookup::Follow(_, number) => number,
            other => panic!("{other:?}"),
        }
    }

    fn complete(&mut self, id: &FlightId, answer: u32, now: u64) -> Vec<u32> {
        self.kinds.complete(id, answer, &self.windows, at(now))
    }

    fn failed(&mut self, id: &FlightId, now: u64) -> Failed<u32, u32> {
        let windows = self.windows;
        self.kinds.failed(id, Cause::Failed, |_| windows, at(now))
    }

    /// The answer of the leader has a status that may concern it alone.
    fn has_own_answer(&mut self, id: &FlightId, now: u64) -> Failed<u32, u32> {
        let windows = self.windows;
        self.kinds
            .failed(id, Cause::OwnAnswer, |_| windows, at(now))
    }

    /// The leader leaves.
    fn dropped(&mut self, id: &FlightId) -> Failed<u32, u32> {
        let windows = |_: &u32| panic!("no clock is read");
        self.kinds
            .failed(id, Cause::Left, windows, Moment::default())
    }

    fn next(&mut self, failed: Failed<u32, u32>, waiter: u32) -> FlightId {
        match failed {
            Failed::Next(next, id) if next == waiter => {
                assert!(self.kinds.state(&id).is_some(), "it leads");
                id
            }
            other => panic!("{other:?}"),
        }
    }

    /// The flights that there are.
    fn flights(&self) -> usize {
        self.kinds.flights.len()
    }
}

#[test]
fn the_first_one_leads_and_others_follow_until_its_answer_is_complete() {
    let mut table = Table::new(NEVER);
    let id = table.lead(0);
    assert!(!table.kinds.is_followed(&id));
    table.follow(1, true);
    table.follow(2, false);
    table.follow(3, true);
    assert!(table.kinds.is_followed(&id));
    assert_eq!(table.complete(&id, 7, 50), [1, 2, 3]);
    assert_eq!(table.flights(), 0);
    // It serves those alone that waited for it.
    assert!(matches!(table.ask(50), Lookup::Lead(_)));
}

#[test]
fn kinds_do_not_know_each_other() {
    let mut table = Table::new(until(100, 100, 100));
    let id = table.lead_of(b"a", 0);
    let other = table.lead_of(b"b", 0);
    assert_eq!(table.complete(&id, 1, 1), [0; 0]);
    assert_eq!(table.ask_with(b"a", 2, true), Lookup::Kept(1));
    assert!(matches!(table.ask_with(b"b", 2, true), Lookup::Follow(..)));
    assert!(matches!(table.ask_with(b"", 2, true), Lookup::Lead(_)));
    assert_eq!(table.complete(&other, 2, 3), [1]);
}

#[test]
fn one_that_may_not_lead_follows_or_is_alone() {
    let mut table = Table::new(until(100, 100, 100));
    assert_eq!(table.ask_with(KEY, 0, false), Lookup::Alone);
    assert_eq!(table.flights(), 0);
    let id = table.lead(1);
    table.follow(2, false);
    assert_eq!(table.complete(&id, 7, 3), [1]);
    assert_eq!(table.ask_with(KEY, 99, false), Lookup::Kept(7));
    assert_eq!(table.ask_with(KEY, 100, false), Lookup::Alone);
}

#[test]
fn a_kept_answer_serves_newcomers_until_it_is_stale() {
    let mut table = Table::new(until(100, 100, 100));
    let id = table.lead(0);
    assert_eq!(table.complete(&id, 7, 20), [0; 0]);
    assert_eq!(table.kinds.answers(), 1);
    assert_eq!(table.ask(20), Lookup::Kept(7));
    assert_eq!(table.ask(99), Lookup::Kept(7));
    let id = table.lead(100);
    table.follow(101, true);
    table.windows = until(200, 200, 200);
    assert_eq!(table.complete(&id, 8, 102), [1]);
    assert_eq!(table.ask(199), Lookup::Kept(8));
    assert_eq!(table.kinds.answers(), 1);
}

#[test]
fn a_reload_changes_what_kept_answers_serve() {
    let mut table = Table::new(until(100, 100, 100));
    let id = table.lead(0);
    assert_eq!(table.complete(&id, 7, 0), [0; 0]);
    table.windows = until(200, 200, 200);
    assert_eq!(table.ask(150), Lookup::Kept(7));
    table.windows = NEVER;
    assert!(matches!(table.ask(50), Lookup::Lead(_)));
}

#[test]
fn an_answer_that_has_served_its_time_when_it_is_complete_is_not_kept() {
    let mut table = Table::new(until(100, 100, 100));
    let id = table.lead(0);
    assert_eq!(table.complete(&id, 7, 0), [0; 0]);
    let id = table.lead(100);
    table.follow(101, true);
    assert_eq!(table.complete(&id, 8, 101), [1]);
    assert_eq!((table.kinds.answers(), table.kinds.bytes()), (0, 0));
}

#[test]
fn one_alone_refreshes_a_stale_answer() {
    let mut table = Table::new(until(100, 200, 200));
    let id = table.lead(0);
    assert_eq!(table.complete(&id, 7, 0), [0; 0]);
    let Lookup::Stale(7, Some(refresh)) = table.ask(100) else {
        panic!("it is fetched anew");
    };
    for now in [100, 150, 199] {
        assert_eq!(table.ask(now), Lookup::Stale(7, None));
    }
    assert!(!table.kinds.is_followed(&refresh), "nobody waits");
    // Behind the window they wait for it.
    table.follow(200, true);
    table.windows = until(300, 400, 400);
    assert_eq!(table.complete(&refresh, 8, 201), [1]);
    assert_eq!(table.ask(299), Lookup::Kept(8));
    assert!(matches!(table.ask(300), Lookup::Stale(8, Some(_))));
}

#[test]
fn a_refresh_that_is_dropped_is_begun_again() {
    let mut table = Table::new(until(100, 200, 200));
    let id = table.lead(0);
    assert_eq!(table.complete(&id, 7, 0), [0; 0]);
    let Lookup::Stale(7, Some(refresh)) = table.ask(100) else {
        panic!("it is fetched anew");
    };
    assert_eq!(table.dropped(&refresh), Failed::Over);
    assert!(matches!(table.ask(101), Lookup::Stale(7, Some(_))));
}

#[test]
fn a_leader_of_before_changes_nothing() {
    let mut table = Table::new(until(100, 100, 100));
    let old = table.lead(0);
    assert_eq!(table.complete(&old, 7, 0), [0; 0]);
    let id = table.lead(100);
    let follower = table.follow(101, true);
    assert_eq!(table.complete(&old, 9, 102), [0; 0]);
    assert_eq!(table.failed(&old, 102), Failed::Over);
    assert_eq!(table.dropped(&old), Failed::Over);
    table.kinds.unshareable(&old, at(102));
    assert_eq!(table.kinds.release(&old), None);
    assert!(!table.kinds.is_followed(&old));
    assert!(table.kinds.state(&old).is_none());
    assert!(table.kinds.is_followed(&id));
    table.windows = until(200, 200, 200);
    assert_eq!(table.complete(&id, 8, 103), [1]);
    assert!(!table.kinds.leave(KEY, follower), "it has been answered");
    assert_eq!(table.ask(104), Lookup::Kept(8));
}
