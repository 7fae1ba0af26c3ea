//! Tests of the script of a pool of permits against a simple model, with random histories.

use std::collections::BTreeMap;
use std::time::Duration;

use gateway::store::{Error, PermitsCall, Store};
use limit::{KnownMembers, PoolCall, PoolReply};

use super::at;
use super::server::in_redis;
use crate::support::night::day_or_night;
use crate::support::rng::Rng;

const STEPS: u64 = 150;
/// Duration of a lease in milliseconds. At first nothing is granted for this long.
const LEASE: u64 = 2400;
/// Time for which permits of a vanished gateway are withheld, in milliseconds.
const ORPHAN: u64 = 5000;

/// State that the pool must have of a gateway. Times are in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Known {
    lent: usize,
    in_use: usize,
    ends: u64,
}

impl Known {
    fn is_living(&self, now: u64) -> bool {
        now < self.ends
    }

    fn is_withheld(&self, now: u64) -> bool {
        !self.is_living(now) && self.lent > 0 && now < self.ends + ORPHAN
    }
}

/// A gateway.
#[derive(Clone, Copy, Debug, Default)]
struct Gateway {
    number: u64,
    held: usize,
    in_use: usize,
    lease_end: u64,
    members: KnownMembers,
}

/// A pool in Redis, and a model of what it must count.
struct Pool<'s> {
    store: &'s Store,
    name: &'s [u8],
    most: (usize, u64),
    now: u64,
    known: BTreeMap<u64, Known>,
    gateways: BTreeMap<u64, Gateway>,
    rng: Rng,
    /// Number of permits granted so far.
    lent: usize,
}

/// Calls the pool as this gateway, with the maximum and the time since it applies.
async fn ask(
    (store, pool, most): (&Store, &[u8], (usize, u64)),
    gateway: u64,
    call: PoolCall,
    now: u64,
) -> Result<PoolReply, Error> {
    let call = PermitsCall {
        pool,
        gateway: gateway.to_le_bytes(),
        most: (most.0, at(most.1)),
        orphan: Duration::from_millis(ORPHAN),
        call,
        at: Some(at(now)),
    };
    store.call(&call).await
}

impl Pool<'_> {
    fn up_to(&mut self, most: usize) -> usize {
        let most = u64::try_from(most).expect("few");
        usize::try_from(self.rng.within(0, most + 1)).expect("few")
    }

    async fn ask(&self, gateway: u64, call: PoolCall) -> Result<PoolReply, Error> {
        let pool = (self.store, self.name, self.most);
        ask(pool, gateway, call, self.now).await
    }

    /// Calls the pool as a gateway that uses some permits and returns some.
    async fn call(&mut self, id: u64, leaves: bool) {
        let now = self.now;
        let mut it = self.gateways.get(&id).copied().unwrap_or_default();
        if now >= it.lease_end + ORPHAN {
            // Its permits may be at other gateways, and its requests have ended.
            (it.held, it.in_use) = (0, 0);
        }
        if now < it.lease_end {
            it.in_use = self.up_to(it.held);
        }
        it.held = if leaves {
            it.in_use
        } else {
            it.in_use + self.up_to(it.held - it.in_use)
        };
        let usable = it.in_use + if leaves { 0 } else { self.up_to(4) };
        it.number += 1;
        let call = PoolCall {
            number: it.number,
            held: it.held,
            in_use: it.in_use,
            usable,
            requested: usable + if leaves { 0 } else { self.up_to(3) },
            weight: self.rng.within(1, 9),
            members: it.members,
            lowered_maximum: None,
            leaves,
        };
        let reply = self.ask(id, call).await.expect("it answers");
        self.check(id, &call, &reply);
        if !leaves && self.rng.percent(10) {
            // The same call repeated or late changes nothing.
            let again = self.ask(id, PoolCall { held: 9, ..call }).await;
            assert!(matches!(again, Err(Error::Refused(_))), "{again:?}");
        }
        if self.rng.percent(85) {
            it.held = reply.leased.min(reply.keeps.max(it.in_use));
            (it.lease_end, it.members) = (now + LEASE, reply.members);
        }
        self.gateways.insert(id, it);
    }

    /// Compares a reply with the model.
    fn check(&mut self, id: u64, call: &PoolCall, reply: &PoolReply) {
        let (now, most) = (self.now, self.most.0);
        let before = self.known.remove(&id);
        let before = before.filter(|it| it.is_living(now) || it.is_withheld(now));
        self.known
            .retain(|_, it| it.is_living(now) || it.is_withheld(now));
        let others: usize = self.known.values().map(|it| it.lent).sum();
        let has = call
            .in_use
            .max(call.held.min(before.map_or(0, |it| it.lent)));
        let free = most.saturating_sub(others + has);
        let more = reply
            .leased
            .checked_sub(has)
            .expect("it keeps what it has in use");
        let is_free = more <= free;
        assert!(is_free, "{more} are leased, {free} are free: {reply:?}");
        let is_requested = reply.leased <= has.max(call.requested);
        assert!(is_requested, "{reply:?} to {call:?}");
        assert!(reply.keeps <= call.requested.max(reply.leased), "{reply:?}");
        self.lent += more;
        if !call.leaves || has > 0 {
            let known = Known {
                lent: reply.leased,
                in_use: call.in_use,
                ends: now + LEASE,
            };
            self.known.insert(id, known);
        }
        let living = self.known.values().filter(|it| it.is_living(now));
        let counted: usize = living.clone().map(|it| it.lent).sum();
        let in_use: usize = living.clone().map(|it| it.in_use).sum();
        let withheld = self.known.values().filter(|it| it.is_withheld(now));
        let withheld: usize = withheld.map(|it| it.lent).sum();
        let counts = reply.counts;
        assert_eq!(counts.of, most);
        assert_eq!(counts.held, counted, "{:?}", self.known);
        assert_eq!(counts.gateways as usize, living.count(), "{:?}", self.known);
        assert_eq!((counts.in_use, counts.withheld), (in_use, withheld));
        assert_eq!(counts.free, most.saturating_sub(counted + withheld));
    }
}

/// Returns a call of a gateway that uses all permits that it holds, and can use `usable`.
fn wants(number: u64, held: usize, usable: usize) -> PoolCall {
    PoolCall {
        number,
        held,
        in_use: held,
        usable,
        requested: usable,
        weight: 1,
        ..PoolCall::default()
    }
}

/// Runs gateways that take, return, vanish and come back. Returns the number of permits granted.
async fn history(store: &Store, name: &[u8], seed: u64) -> usize {
    let mut pool = Pool {
        store,
        name,
        most: (1 + usize::try_from(seed % 9).expect("few"), 0),
        now: 10,
        known: BTreeMap::new(),
        gateways: BTreeMap::new(),
        rng: Rng::of(seed, 0),
        lent: 0,
    };
    let reply = pool.ask(99, wants(1, 0, 3)).await.expect("it answers");
    assert!(reply.counts.is_recovering && reply.leased == 0, "{reply:?}");
    pool.now += LEASE + 1;
    for _ in 0..STEPS {
        pool.now += match pool.rng.within(0, 100) {
            0..4 => pool.rng.within(1000, LEASE + ORPHAN + 1000),
            4..10 => pool.rng.within(200, 3000),
            _ => pool.rng.within(0, 60),
        };
        if pool.rng.percent(2) {
            pool.most = (1 + pool.up_to(8), pool.now);
        }
        let (id, leaves) = (pool.rng.within(0, 5), pool.rng.percent(5));
        pool.call(id, leaves).await;
    }
    // All gateways but one leave, with requests still running. The rest is granted to the last one.
    pool.now += LEASE + ORPHAN;
    let reply = pool.ask(7, wants(1, 0, 20)).await.expect("it answers");
    assert_eq!(reply.leased, pool.most.0, "{reply:?}");
    pool.lent
}

#[test]
fn random_histories_are_counted_as_by_a_naive_pool() {
    in_redis(async |server, store| {
        let (mut lent, histories) = (0, day_or_night(15, 40));
        for seed in 0..histories {
            println!("history {seed}");
            lent += history(&store, &server.key(), seed).await;
        }
        let few = usize::try_from(25 * histories).expect("small");
        assert!(lent > few, "only {lent} permits were leased");
    });
}

/// A gateway that is silent for longer than its lease and `orphan` has no permits.
#[test]
fn a_lease_ends_when_it_says() {
    in_redis(async |server, store| {
        let name = server.key();
        let pool = (&store, &name[..], (4, 0));
        let ask = async |gateway: u64, call: PoolCall, millis: u64| {
            let answer = ask(pool, gateway, call, millis).await;
            answer.expect("it answers")
        };
        ask(1, wants(1, 0, 4), 0).await;
        let reply = ask(1, wants(2, 0, 4), LEASE).await;
        assert_eq!((reply.leased, reply.counts.free), (4, 0));
        let ends = 2 * LEASE;
        let counts = async |number, millis| {
            let counts = ask(2, wants(number, 0, 0), millis).await.counts;
            (counts.held, counts.withheld, counts.free)
        };
        assert_eq!(counts(1, ends - 1).await, (4, 0, 0));
        assert_eq!(counts(2, ends).await, (0, 4, 0));
        assert_eq!(counts(3, ends + ORPHAN - 1).await, (0, 4, 0));
        assert_eq!(counts(4, ends + ORPHAN).await, (0, 0, 4));
    });
}

/// The limit of back-off applies to all gateways together.
///
/// Three gateways have four permits each of twelve. Back-off leaves five. One gateway knows this at
/// first, and then each.
#[test]
fn a_maximum_lowered_by_back_off_applies_to_all_gateways_together() {
    in_redis(async |server, store| {
        let name = server.key();
        let pool = (&store, &name[..], (12, 0));
        let ask = async |gateway: u64, call: PoolCall, millis: u64| {
            let answer = ask(pool, gateway, call, millis).await;
            answer.expect("it answers")
        };
        let mut held = [0_usize; 3];
        let mut now = 0;
        let mut round = async |of_all: [Option<usize>; 3], usable: [usize; 3], all: usize| {
            let mut last = PoolReply::default();
            for _ in 0..all {
                for nth in 0..3_usize {
                    now += 20;
                    let call = PoolCall {
                        in_use: held[nth].min(usable[nth]),
                        lowered_maximum: of_all[nth],
                        ..wants(now, held[nth], usable[nth])
                    };
                    last = ask(nth as u64, call, now).await;
                    // Permits above the limit are returned before the next call.
                    held[nth] = last.leased.min(last.keeps);
                }
            }
            (held, last.counts)
        };
        round([None; 3], [12; 3], 45).await;
        let (held, counts) = round([None; 3], [12; 3], 10).await;
        assert_eq!((held, counts.of), ([4; 3], 12));
        let (held, counts) = round([Some(5), None, None], [12; 3], 5).await;
        assert!(held.iter().sum::<usize>() <= 5, "{held:?}");
        assert_eq!((counts.of, counts.held + counts.free), (5, 5), "{counts:?}");
        let (held, _) = round([Some(5); 3], [12; 3], 20).await;
        assert!((4..=5).contains(&held.iter().sum::<usize>()), "{held:?}");
        // An idle gateway does not know what the others have learned.
        let (held, counts) = round([Some(2), None, None], [0, 12, 12], 10).await;
        assert_eq!((held, counts.of), ([0, 6, 6], 12));
        // The second gateway vanishes, and may use six. Besides those, five are granted.
        now += LEASE + 1;
        let own = PoolCall {
            lowered_maximum: Some(5),
            ..wants(now, 6, 12)
        };
        let reply = ask(2, own, now - LEASE / 2).await;
        assert_eq!((reply.leased, reply.keeps), (6, 0), "{reply:?}");
        let less = PoolCall {
            lowered_maximum: Some(5),
            ..wants(now + 1, 5, 12)
        };
        let reply = ask(2, less, now).await;
        let counts = reply.counts;
        assert_eq!((reply.leased, reply.keeps), (5, 5), "{reply:?}");
        assert_eq!((counts.of, counts.withheld, counts.free), (11, 6, 0));
    });
}
