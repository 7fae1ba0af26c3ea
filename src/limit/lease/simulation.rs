//! Gateways with leases on one key, and a store some time away, on a clock of the test.

use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

use super::{FromLease, Lease, LeaseTerms, Leased};
use crate::{
    Algorithm, Allowance, Bucket, Cost, Delay, Limit, Meter, Moment, Rate, Refusal, Verdict,
};

/// A place, on the clock of the store.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Given {
        /// When it has passed.
        until: Moment,
        /// When its request is due.
        due: Moment,
        /// When it was charged.
        at: Moment,
    },
    Refused,
}

/// What the store keeps of the key.
enum Kept {
    /// The schedule, and its places that were given back.
    Bucket(Bucket, BTreeSet<Moment>),
    Meter(Meter),
}

pub(super) struct Store {
    pub(super) algorithm: Algorithm,
    pub(super) rate: Rate,
    pub(super) limit: Limit,
    kept: Kept,
    pub(super) asked: usize,
}

/// A gateway: how long its clock is ahead, and how far away the store is.
pub(super) struct Gateway {
    pub(super) clock: Duration,
    pub(super) away: Duration,
    lease: Lease<Place>,
    is_asking: bool,
    waiting: VecDeque<Moment>,
    /// When its requests went on, on the clock of the store.
    pub(super) went_on: Vec<Moment>,
    /// The places that they used.
    pub(super) used: Vec<Moment>,
    pub(super) refused: usize,
}

pub(super) struct Simulation {
    pub(super) store: Store,
    pub(super) length: Duration,
    pub(super) gateways: Vec<Gateway>,
    now: Moment,
    events: BinaryHeap<Event>,
    count: u64,
    /// Breaks the rule that is tested, to show that the test finds it.
    pub(super) never_lapses: bool,
}

struct Event {
    at: Moment,
    nth: u64,
    what: What,
}

enum What {
    Join(usize),
    /// The store gets an ask, which was sent at this moment.
    Ask(usize, Moment, usize, u32),
    Reply(usize, Moment, usize, Vec<Given>),
    GivenBack(Vec<Place>),
    Look(usize),
}

/// What the store says of a place, and when.
type Given = (Place, Option<Refusal>, Moment);

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
    pub(super) fn new(algorithm: Algorithm, rate: Rate, limit: Limit) -> Self {
        let kept = match Meter::new(algorithm) {
            // A token bucket is a schedule on which nobody waits, and no place is given back.
            None | Some(Meter::TokenBucket(_)) => Kept::Bucket(Bucket::new(), BTreeSet::new()),
            Some(meter) => Kept::Meter(meter),
        };
        Self {
            algorithm,
            rate,
            limit,
            kept,
            asked: 0,
        }
    }

    fn join(&mut self, now: Moment) -> (Place, Option<Refusal>) {
        let (rate, limit) = (self.rate, self.limit);
        let given = |until: Moment| {
            let ahead = match limit.delay {
                Delay::Above(delay) => rate.time_for(delay.into()),
                Delay::Never => Duration::MAX,
            };
            let due = until.before(ahead).max(now);
            let at = now;
            (Place::Given { until, due, at }, None)
        };
        match &mut self.kept {
            Kept::Bucket(bucket, free) => {
                while free.first().is_some_and(|place| *place <= now) {
                    free.pop_first();
                }
                if let Some(place) = free.pop_first() {
                    return given(place);
                }
                match bucket.decide(rate, limit, now) {
                    Verdict::Reject(refusal) => (Place::Refused, Some(refusal)),
                    _ => given(last_place(bucket, rate)),
                }
            }
            Kept::Meter(meter) => {
                let most = limit.burst + 1;
                match meter.decide(Allowance { rate, most }, Cost::ONE, now) {
                    Verdict::Reject(refusal) => (Place::Refused, Some(refusal)),
                    _ => given(end_of_window(rate, now)),
                }
            }
        }
    }

    fn take_back(&mut self, place: Place, now: Moment) {
        let Place::Given { until, at, .. } = place else {
            return;
        };
        match &mut self.kept {
            Kept::Bucket(bucket, free) if until > now => {
                if last_place(bucket, self.rate) == until {
                    bucket.take_back(self.rate, 1);
                    while free.last() == Some(&last_place(bucket, self.rate)) {
                        free.pop_last();
                        bucket.take_back(self.rate, 1);
                    }
                } else {
                    free.insert(until);
                }
            }
            Kept::Bucket(..) => {}
            Kept::Meter(meter) => meter.refund(self.rate, Cost::ONE, at, now),
        }
    }
}

/// The place that a bucket has given out last.
fn last_place(bucket: &Bucket, rate: Rate) -> Moment {
    bucket.drained_at(rate).before(rate.interval())
}

pub(super) fn end_of_window(rate: Rate, now: Moment) -> Moment {
    let period = u64::try_from(rate.period().as_nanos()).unwrap();
    Moment::from_nanos((now.as_nanos() / period + 1) * period)
}

impl Gateway {
    pub(super) fn new(clock: Duration, away: Duration, limit: Limit, now: Moment) -> Self {
        Self {
            clock,
            away,
            lease: Lease::new(limit, now + clock),
            is_asking: false,
            waiting: VecDeque::new(),
            went_on: Vec::new(),
            used: Vec::new(),
            refused: 0,
        }
    }

    fn use_place(&mut self, place: Place, now: Moment) {
        match place {
            Place::Given { due, until, .. } => {
                self.used.push(until);
                self.went_on.push(due.max(now));
            }
            Place::Refused => self.refused += 1,
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
            never_lapses: false,
        };
        (0..this.gateways.len()).for_each(|nth| this.add(start, What::Look(nth)));
        this
    }

    /// A request comes to a gateway.
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
                What::GivenBack(places) => {
                    let now = self.now;
                    for place in places {
                        self.store.take_back(place, now);
                    }
                }
                What::Look(nth) => {
                    let gateway = &mut self.gateways[nth];
                    let own = self.now + gateway.clock;
                    let ended = gateway.lease.end(own);
                    self.give_back(nth, ended);
                    let later = (self.length / 8).max(Duration::from_micros(100));
                    self.add(self.now + later, What::Look(nth));
                }
            }
        }
    }

    fn arrive(&mut self, nth: usize) {
        let (now, length, limit) = (self.now, self.length, self.store.limit);
        let gateway = &mut self.gateways[nth];
        let own = now + gateway.clock;
        gateway.lease.arrive(length, limit, own);
        gateway.waiting.push_back(own);
        if !gateway.is_asking {
            self.serve(nth);
        }
    }

    /// Decides on those who wait, by the lease, or asks for them.
    fn serve(&mut self, nth: usize) {
        let (now, limit) = (self.now, self.store.limit);
        let terms = LeaseTerms {
            length: self.length,
            rate: self.store.rate,
            algorithm: self.store.algorithm,
        };
        let gateway = &mut self.gateways[nth];
        let own = now + gateway.clock;
        while !gateway.waiting.is_empty() {
            let Some(FromLease::Place(place) | FromLease::Refused(place)) =
                gateway.lease.take(limit, own)
            else {
                break;
            };
            gateway.waiting.pop_front();
            gateway.use_place(place, now);
        }
        let first = std::mem::take(&mut gateway.waiting).len();
        if first == 0 {
            return;
        }
        gateway.is_asking = true;
        let ahead = gateway.lease.ahead(&terms, limit, own);
        let arrives = now + gateway.away;
        self.add(arrives, What::Ask(nth, own, first, ahead));
    }

    fn ask(&mut self, nth: usize, sent: Moment, first: usize, ahead: u32) {
        self.store.asked += 1;
        let (now, store) = (self.now, &mut self.store);
        let given = (0..first + ahead as usize).map(|_| {
            let (place, refusal) = store.join(now);
            (place, refusal, now)
        });
        let given = given.collect();
        let arrives = now + self.gateways[nth].away;
        self.add(arrives, What::Reply(nth, sent, first, given));
    }

    fn reply(&mut self, nth: usize, sent: Moment, first: usize, given: Vec<Given>) {
        let (length, limit) = (self.length, self.store.limit);
        let terms = LeaseTerms {
            length,
            rate: self.store.rate,
            algorithm: self.store.algorithm,
        };
        let is_forever = self.never_lapses;
        let gateway = &mut self.gateways[nth];
        gateway.is_asking = false;
        for (index, (place, refusal, decided)) in given.into_iter().enumerate() {
            if index < first {
                // As without leases: the limit is that of the store, whose answer takes a while.
                gateway.use_place(place, decided);
            }
            if let Some(refusal) = refusal {
                let drains_in = refusal.excess.requests() - 1.0;
                let drains_in = terms.rate.interval().mul_f64(drains_in.max(0.0));
                let retry_at = sent + refusal.retry_at.since(decided);
                let lease = &mut gateway.lease;
                let until = lease.refuses_until(&terms, sent, retry_at, drains_in);
                lease.refuse(limit, Place::Refused, until);
            }
            let Place::Given { until, .. } = place else {
                continue;
            };
            // As the batcher has it: the store decided after it was asked.
            let usable_until = sent + until.since(decided);
            if index < first {
                gateway.lease.reaches(usable_until);
                continue;
            }
            let usable_until = if is_forever {
                usable_until + 10 * length
            } else {
                usable_until
            };
            let ends = match terms.algorithm {
                Algorithm::TokenBucket => usable_until,
                _ => usable_until.min(sent + length),
            };
            gateway.lease.add(Leased {
                place,
                usable_until,
                ends,
            });
        }
        self.serve(nth);
    }

    fn give_back(&mut self, nth: usize, ended: Vec<Leased<Place>>) {
        if self.store.algorithm == Algorithm::TokenBucket || ended.is_empty() {
            return;
        }
        let places = ended.into_iter().map(|ended| ended.place).collect();
        let arrives = self.now + self.gateways[nth].away;
        self.add(arrives, What::GivenBack(places));
    }

    /// When requests went on at any gateway, in order.
    pub(super) fn went_on(&self) -> Vec<Moment> {
        let all = self.gateways.iter().flat_map(|it| &it.went_on);
        let mut all: Vec<_> = all.copied().collect();
        all.sort();
        all
    }
}
