//! Simulation of gateways with leases on one key, and a remote store, on a virtual clock.

use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

use super::{Lease, LeaseAnswer, LeaseTerms, Leased};
use crate::{Algorithm, Bucket, Delay, Limit, Moment, Rate, Refusal, Verdict};

/// Slot, on the clock of the store.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    Given {
        /// Instant at which the slot has passed.
        until: Moment,
        /// Instant at which its request is due.
        due: Moment,
    },
    Refused,
}

/// Bucket of the key, and the slots that were given back.
pub(super) struct Store {
    rate: Rate,
    limit: Limit,
    bucket: Bucket,
    free: BTreeSet<Moment>,
    pub(super) asked: usize,
}

/// Gateway, at the distance [`AWAY`] from the store.
pub(super) struct Gateway {
    lease: Lease<Slot>,
    is_asking: bool,
    waiting: VecDeque<Moment>,
    /// Instants at which its requests passed.
    pub(super) went_on: Vec<Moment>,
    pub(super) refused: usize,
}

pub(super) struct Simulation {
    pub(super) store: Store,
    pub(super) length: Duration,
    pub(super) gateways: Vec<Gateway>,
    now: Moment,
    events: BinaryHeap<Event>,
    count: u64,
}

/// Delay between a gateway and the store.
const AWAY: Duration = Duration::from_micros(150);

struct Event {
    at: Moment,
    nth: u64,
    what: What,
}

enum What {
    Join(usize),
    /// The store receives a request for slots, which was sent at this instant.
    Ask(usize, Moment, usize, u32),
    Reply(usize, Moment, usize, Vec<Given>),
    GivenBack(Vec<Slot>),
    Look(usize),
}

/// Reply of the store about a slot, and its instant.
type Given = (Slot, Option<Refusal>, Moment);

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.nth).cmp(&(self.at, self.nth))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Event {}

impl Store {
    pub(super) fn new(rate: Rate, limit: Limit) -> Self {
        Self {
            rate,
            limit,
            bucket: Bucket::new(),
            free: BTreeSet::new(),
            asked: 0,
        }
    }

    fn join(&mut self, now: Moment) -> (Slot, Option<Refusal>) {
        let (rate, limit) = (self.rate, self.limit);
        while self.free.first().is_some_and(|slot| *slot <= now) {
            self.free.pop_first();
        }
        let until = match self.free.pop_first() {
            Some(slot) => slot,
            None => match self.bucket.decide(rate, limit, now) {
                Verdict::Reject(refusal) => return (Slot::Refused, Some(refusal)),
                _ => last_slot(&self.bucket, rate),
            },
        };
        let ahead = match limit.delay {
            Delay::Above(delay) => rate.time_for(delay.into()),
            Delay::Never => Duration::MAX,
        };
        let due = until.before(ahead).max(now);
        (Slot::Given { until, due }, None)
    }

    fn take_back(&mut self, slot: Slot, now: Moment) {
        let Slot::Given { until, .. } = slot else {
            return;
        };
        if until > now && last_slot(&self.bucket, self.rate) != until {
            self.free.insert(until);
        } else if until > now {
            self.bucket.take_back(self.rate, 1);
            while self.free.last() == Some(&last_slot(&self.bucket, self.rate)) {
                self.free.pop_last();
                self.bucket.take_back(self.rate, 1);
            }
        }
    }
}

/// Returns the last slot that a bucket has granted.
fn last_slot(bucket: &Bucket, rate: Rate) -> Moment {
    bucket.drained_at(rate).before(rate.interval())
}

impl Gateway {
    pub(super) fn new(limit: Limit, now: Moment) -> Self {
        Self {
            lease: Lease::new(limit, now),
            is_asking: false,
            waiting: VecDeque::new(),
            went_on: Vec::new(),
            refused: 0,
        }
    }

    fn use_slot(&mut self, slot: Slot, now: Moment) {
        match slot {
            Slot::Given { due, .. } => self.went_on.push(due.max(now)),
            Slot::Refused => self.refused += 1,
        }
    }
}

impl Simulation {
    pub(super) fn new(
        store: Store,
        length: Duration,
        gateways: Vec<Gateway>,
        start: Moment,
    ) -> Self {
        let mut this = Self {
            store,
            length,
            gateways,
            now: start,
            events: BinaryHeap::new(),
            count: 0,
        };
        (0..this.gateways.len()).for_each(|nth| this.add(start, What::Look(nth)));
        this
    }

    /// Schedules a request that arrives at a gateway.
    pub(super) fn join(&mut self, gateway: usize, at: Moment) {
        self.add(at, What::Join(gateway));
    }

    fn add(&mut self, at: Moment, what: What) {
        self.count += 1;
        let nth = self.count;
        self.events.push(Event { at, nth, what });
    }

    pub(super) fn run(&mut self, until: Moment) {
        while self.events.peek().is_some_and(|event| event.at <= until) {
            let event = self.events.pop().unwrap();
            self.now = event.at;
            match event.what {
                What::Join(nth) => self.arrive(nth),
                What::Ask(nth, sent, first, ahead) => self.ask(nth, sent, first, ahead),
                What::Reply(nth, sent, first, given) => self.reply(nth, sent, first, given),
                What::GivenBack(slots) => {
                    let now = self.now;
                    for slot in slots {
                        self.store.take_back(slot, now);
                    }
                }
                What::Look(nth) => {
                    let ended = self.gateways[nth].lease.end(self.now);
                    let slots = ended.into_iter().map(|ended| ended.slot).collect();
                    self.add(self.now + AWAY, What::GivenBack(slots));
                    let later = (self.length / 8).max(Duration::from_micros(100));
                    self.add(self.now + later, What::Look(nth));
                }
            }
        }
    }

    fn arrive(&mut self, nth: usize) {
        let (now, length, limit) = (self.now, self.length, self.store.limit);
        let gateway = &mut self.gateways[nth];
        gateway.lease.arrive(length, limit, now);
        gateway.waiting.push_back(now);
        if !gateway.is_asking {
            self.serve(nth);
        }
    }

    /// Decides on the waiters by the lease, or requests slots for them.
    fn serve(&mut self, nth: usize) {
        let (now, limit) = (self.now, self.store.limit);
        let terms = self.terms();
        let gateway = &mut self.gateways[nth];
        while !gateway.waiting.is_empty() {
            let Some(LeaseAnswer::Slot(slot) | LeaseAnswer::Refused(slot)) =
                gateway.lease.take(limit, now)
            else {
                break;
            };
            gateway.waiting.pop_front();
            gateway.use_slot(slot, now);
        }
        let first = std::mem::take(&mut gateway.waiting).len();
        if first == 0 {
            return;
        }
        gateway.is_asking = true;
        let ahead = gateway.lease.ahead(&terms, limit, now);
        self.add(now + AWAY, What::Ask(nth, now, first, ahead));
    }

    fn terms(&self) -> LeaseTerms {
        LeaseTerms {
            length: self.length,
            rate: self.store.rate,
            algorithm: Algorithm::LeakyBucket,
        }
    }

    fn ask(&mut self, nth: usize, sent: Moment, first: usize, ahead: u32) {
        self.store.asked += 1;
        let (now, store) = (self.now, &mut self.store);
        let given = (0..first + ahead as usize).map(|_| {
            let (slot, refusal) = store.join(now);
            (slot, refusal, now)
        });
        let given = given.collect();
        self.add(now + AWAY, What::Reply(nth, sent, first, given));
    }

    fn reply(&mut self, nth: usize, sent: Moment, first: usize, given: Vec<Given>) {
        let (length, limit, terms) = (self.length, self.store.limit, self.terms());
        let gateway = &mut self.gateways[nth];
        gateway.is_asking = false;
        for (index, (slot, refusal, decided)) in given.into_iter().enumerate() {
            if index < first {
                // Like without leases: the limit is that of the store, whose reply takes a while.
                gateway.use_slot(slot, decided);
            }
            if let Some(refusal) = refusal {
                let drains_in = refusal.excess.requests() - 1.0;
                let drains_in = terms.rate.interval().mul_f64(drains_in.max(0.0));
                let retry_at = sent + refusal.retry_at.since(decided);
                let lease = &mut gateway.lease;
                let until = lease.refusal_end(&terms, sent, retry_at, drains_in);
                lease.refuse(limit, Slot::Refused, until);
            }
            let Slot::Given { until, .. } = slot else {
                continue;
            };
            // Like in the batcher: the store decided after it was called.
            let usable_until = sent + until.since(decided);
            if index < first {
                gateway.lease.note_granted(usable_until);
                continue;
            }
            let ends = usable_until.min(sent + length);
            gateway.lease.add(Leased {
                slot,
                usable_until,
                ends,
            });
        }
        self.serve(nth);
    }

    /// Returns the instants at which requests passed at any gateway, in order.
    pub(super) fn went_on(&self) -> Vec<Moment> {
        let all = self.gateways.iter().flat_map(|it| &it.went_on);
        let mut all: Vec<_> = all.copied().collect();
        all.sort();
        all
    }
}
