//! Simulation of gateways that lease slots of one key from a remote store, on a virtual clock.
//!
//! A request *passes* at its gateway, by a slot that was leased before (*ahead*), or by one that
//! the store grants for it. A request without a slot is refused.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::{Lease, LeaseAnswer, LeaseTerms, Leased};
use crate::{Algorithm, Bucket, Delay, Limit, Moment, Rate, Refusal, Verdict};

/// Slot, on the clock of the store.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    Granted {
        /// Instant at which the slot has passed.
        until: Moment,
        /// Instant at which its request is due.
        due: Moment,
    },
    Refused,
}

/// Bucket of the key.
pub(super) struct Store {
    rate: Rate,
    limit: Limit,
    bucket: Bucket,
    /// Slots that were given back and have not passed.
    free: BTreeSet<Moment>,
    /// Number of calls.
    pub(super) calls: usize,
}

/// Gateway, at the distance [`AWAY`] from the store.
pub(super) struct Gateway {
    lease: Lease<Slot>,
    /// Whether it waits for a reply of the store.
    is_calling: bool,
    /// Instants of the requests that wait for the next call.
    waiting: VecDeque<Moment>,
    /// Instants at which its requests passed.
    pub(super) passed: Vec<Moment>,
    /// Number of its requests that were refused.
    pub(super) refused: usize,
}

/// Gateways and their store, on virtual time.
pub(super) struct Simulation {
    pub(super) store: Store,
    /// Length of a lease.
    length: Duration,
    pub(super) gateways: Vec<Gateway>,
    now: Moment,
    /// Later events, by their instants and then in the order in which they were scheduled.
    events: BTreeMap<(Moment, u64), Event>,
    /// Number of events that were scheduled.
    count: u64,
}

/// Delay between a gateway and the store.
const AWAY: Duration = Duration::from_micros(150);

enum Event {
    /// A request arrives at the gateway with this index.
    Arrive(usize),
    /// The store receives a call.
    Call(Call),
    /// A gateway receives the reply to its call: the decisions, those on waiting requests first.
    Reply(Call, Vec<Decision>),
    /// The store receives slots that were not used.
    TakeBack(Vec<Slot>),
    /// The gateway with this index gives back the slots of leases that have ended.
    End(usize),
}

/// A call for slots.
#[derive(Clone, Copy)]
struct Call {
    gateway: usize,
    sent: Moment,
    /// Number of requests that wait for it.
    waiting: usize,
    /// Number of slots to lease.
    ahead: u32,
}

/// Decision of the store on a slot, and its instant.
type Decision = (Slot, Option<Refusal>, Moment);

impl Store {
    pub(super) fn new(rate: Rate, limit: Limit) -> Self {
        Self {
            rate,
            limit,
            bucket: Bucket::new(),
            free: BTreeSet::new(),
            calls: 0,
        }
    }

    /// Decides on a request.
    fn decide(&mut self, now: Moment) -> Decision {
        let (rate, limit) = (self.rate, self.limit);
        while self.free.first().is_some_and(|slot| *slot <= now) {
            self.free.pop_first();
        }
        let until = match self.free.pop_first() {
            Some(slot) => slot,
            None => match self.bucket.decide(rate, limit, now) {
                Verdict::Reject(refusal) => return (Slot::Refused, Some(refusal), now),
                _ => last_slot(&self.bucket, rate),
            },
        };
        let ahead = match limit.delay {
            Delay::Above(delay) => rate.time_for(delay.into()),
            Delay::Never => Duration::MAX,
        };
        let due = until.before(ahead).max(now);
        (Slot::Granted { until, due }, None, now)
    }

    fn take_back(&mut self, slot: Slot, now: Moment) {
        let Slot::Granted { until, .. } = slot else {
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
            is_calling: false,
            waiting: VecDeque::new(),
            passed: Vec::new(),
            refused: 0,
        }
    }

    fn use_slot(&mut self, slot: Slot, now: Moment) {
        match slot {
            Slot::Granted { due, .. } => self.passed.push(due.max(now)),
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
            events: BTreeMap::new(),
            count: 0,
        };
        (0..this.gateways.len()).for_each(|gateway| this.schedule(start, Event::End(gateway)));
        this
    }

    /// Schedules a request that arrives at a gateway.
    pub(super) fn request(&mut self, gateway: usize, at: Moment) {
        self.schedule(at, Event::Arrive(gateway));
    }

    fn schedule(&mut self, at: Moment, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    pub(super) fn run(&mut self, until: Moment) {
        while let Some(entry) = self.events.first_entry().filter(|it| it.key().0 <= until) {
            let ((now, _), event) = entry.remove_entry();
            self.now = now;
            match event {
                Event::Arrive(gateway) => self.arrive(gateway),
                Event::Call(call) => self.call(call),
                Event::Reply(call, decisions) => self.reply(call, decisions),
                Event::TakeBack(slots) => {
                    for slot in slots {
                        self.store.take_back(slot, now);
                    }
                }
                Event::End(gateway) => {
                    let ended = self.gateways[gateway].lease.end(now);
                    let slots = ended.into_iter().map(|ended| ended.slot).collect();
                    self.schedule(now + AWAY, Event::TakeBack(slots));
                    let later = (self.length / 8).max(Duration::from_micros(100));
                    self.schedule(now + later, Event::End(gateway));
                }
            }
        }
    }

    fn arrive(&mut self, index: usize) {
        let (now, length, limit) = (self.now, self.length, self.store.limit);
        let gateway = &mut self.gateways[index];
        gateway.lease.arrive(length, limit, now);
        gateway.waiting.push_back(now);
        if !gateway.is_calling {
            self.serve(index);
        }
    }

    /// Decides on the waiting requests of a gateway by its lease, or calls the store for them.
    fn serve(&mut self, index: usize) {
        let (now, limit) = (self.now, self.store.limit);
        let terms = self.terms();
        let gateway = &mut self.gateways[index];
        while !gateway.waiting.is_empty() {
            let Some(LeaseAnswer::Slot(slot) | LeaseAnswer::Refused(slot)) =
                gateway.lease.take(limit, now)
            else {
                break;
            };
            gateway.waiting.pop_front();
            gateway.use_slot(slot, now);
        }
        let waiting = std::mem::take(&mut gateway.waiting).len();
        if waiting == 0 {
            return;
        }
        gateway.is_calling = true;
        let call = Call {
            gateway: index,
            sent: now,
            waiting,
            ahead: gateway.lease.ahead(&terms, limit, now),
        };
        self.schedule(now + AWAY, Event::Call(call));
    }

    fn terms(&self) -> LeaseTerms {
        LeaseTerms {
            length: self.length,
            rate: self.store.rate,
            algorithm: Algorithm::LeakyBucket,
        }
    }

    fn call(&mut self, call: Call) {
        self.store.calls += 1;
        let now = self.now;
        let slots = 0..call.waiting + call.ahead as usize;
        let decisions = slots.map(|_| self.store.decide(now)).collect();
        self.schedule(now + AWAY, Event::Reply(call, decisions));
    }

    fn reply(&mut self, call: Call, decisions: Vec<Decision>) {
        let (length, limit, terms) = (self.length, self.store.limit, self.terms());
        let sent = call.sent;
        let gateway = &mut self.gateways[call.gateway];
        gateway.is_calling = false;
        for (index, (slot, refusal, decided)) in decisions.into_iter().enumerate() {
            let is_for_waiting = index < call.waiting;
            if is_for_waiting {
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
            let Slot::Granted { until, .. } = slot else {
                continue;
            };
            // Like in the batcher: the store decided after it was called.
            let usable_until = sent + until.since(decided);
            if is_for_waiting {
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
        self.serve(call.gateway);
    }

    /// Returns the instants at which requests passed at any gateway, in order.
    pub(super) fn passed(&self) -> Vec<Moment> {
        let all = self.gateways.iter().flat_map(|it| &it.passed);
        let mut all: Vec<_> = all.copied().collect();
        all.sort();
        all
    }
}
