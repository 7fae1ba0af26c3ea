//! Zones in a replay, with their waiters and charges.
//!
//! A zone limits the rate of each key. A request over the rate waits for its departure, or is
//! rejected.

use std::collections::BTreeSet;
use std::rc::Rc;

use config::{RouteLimit, Settings, Zone};
use limit::{Account, Charge, Excess, Moment, Queue, Ticket, Verdict};

use super::super::zone_keys::ZoneKeys;

/// The zones, with their waiters and refundable charges.
pub(super) struct ZoneQueues<'a> {
    zones: &'a [Zone],
    keys: Vec<ZoneKeys<Known>>,
    /// Next departure of each key that has waiters, by zone.
    due: BTreeSet<(Moment, usize, Rc<[u8]>)>,
}

/// State of a key in a zone.
struct Known {
    counter: Counter,
    /// Number of requests that hold a charge and wait for an admission by some zone.
    waiting: u32,
    /// Entry of the key in `due`.
    due: Option<Moment>,
}

/// Charges of a key, and its waiters if the algorithm has a queue.
enum Counter {
    /// For an algorithm with a queue.
    Queue(Box<Queue<u64>>),
    /// For all other algorithms.
    Account(Account),
}

/// Charge of a request in a zone.
pub(super) struct Charged {
    zone: usize,
    key: Rc<[u8]>,
    charge: Charge,
}

impl<'a> ZoneQueues<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        Self {
            zones: &settings.zones,
            keys: settings.zones.iter().map(ZoneKeys::new).collect(),
            due: BTreeSet::new(),
        }
    }

    /// Returns the configuration of a zone.
    pub(super) fn zone(&self, zone: usize) -> &'a Zone {
        &self.zones[zone]
    }

    /// Marks a key as used. Returns `false` if the zone is full and all its keys have waiters.
    pub(super) fn remember(&mut self, zone: usize, key: &[u8], now: Moment) -> bool {
        let settings = &self.zones[zone];
        self.keys[zone].remember(
            key,
            |oldest| oldest.waiting > 0,
            || Known::new(settings, key, now),
        )
    }

    /// Returns the level at which a request would be rejected; `None` if it would be accepted.
    pub(super) fn refuses(&self, requested: RouteLimit, key: &[u8], now: Moment) -> Option<Excess> {
        let rate = self.zones[requested.zone].rate_of(key);
        let refusal = match &self.keys[requested.zone].peek(key)?.counter {
            Counter::Queue(queue) => queue.bucket().refuses(rate, requested.limit, now),
            Counter::Account(account) => account.refuses(rate, requested.limit, now),
        };
        refusal.map(|refusal| refusal.excess)
    }

    /// Predicts a join: whether the request would wait, the queue's length, and the level.
    pub(super) fn predict_join(
        &self,
        requested: RouteLimit,
        key: &[u8],
        now: Moment,
    ) -> (bool, usize, Excess) {
        let known = self.keys[requested.zone].peek(key);
        let Some(Counter::Queue(queue)) = known.map(|known| &known.counter) else {
            return (false, 0, Excess::default());
        };
        let rate = self.zones[requested.zone].rate_of(key);
        let (waits, excess) = match queue.bucket().decide(rate, requested.limit, now) {
            Verdict::Pass { excess } => (false, excess),
            Verdict::Delay { excess, .. } => (true, excess),
            Verdict::Reject(refusal) => (true, refusal.excess),
        };
        (waits, queue.depth(), excess)
    }

    /// Charges an accepted request. It waits for its slot unless `passes`.
    pub(super) fn join(
        &mut self,
        requested: RouteLimit,
        key: &Rc<[u8]>,
        number: u64,
        passes: bool,
        now: Moment,
    ) -> Option<(Verdict, Charged)> {
        let RouteLimit { zone, limit } = requested;
        let rate = self.zones[zone].rate_of(key);
        let known = self.keys[zone].peek_mut(key)?;
        let (verdict, charge) = match &mut known.counter {
            Counter::Queue(queue) if passes => queue.charge(limit, now),
            Counter::Queue(queue) => queue.join(limit, Ticket(number), now, || number),
            Counter::Account(account) => {
                let verdict = account.decide(rate, limit, now);
                (verdict, Some(Charge::of_passing(now, limit.cost)))
            }
        };
        self.reschedule(zone, key);
        let (key, charge) = (Rc::clone(key), charge?);
        Some((verdict, Charged { zone, key, charge }))
    }

    /// Counts a request as waiting, or no longer: until all zones admit it, its keys are not
    /// evicted.
    pub(super) fn set_waiting(&mut self, charges: &[Charged], is_waiting: bool) {
        for Charged { zone, key, .. } in charges {
            if let Some(known) = self.keys[*zone].peek_mut(key) {
                let left = known.waiting.saturating_sub(1);
                known.waiting = if is_waiting { known.waiting + 1 } else { left };
            }
        }
    }

    /// Returns the instant of the next departure.
    pub(super) fn due(&self) -> Option<Moment> {
        self.due.first().map(|(due, ..)| *due)
    }

    /// Takes all departures due by `now`: the numbers of the requests, in order of arrival.
    pub(super) fn take_due(&mut self, now: Moment) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some((due, ..)) = self.due.first()
            && *due <= now
            && let Some((_, zone, key)) = self.due.pop_first()
        {
            let Some(known) = self.keys[zone].peek_mut(&key) else {
                continue;
            };
            known.due = None;
            if let Counter::Queue(queue) = &mut known.counter {
                let departures = std::iter::from_fn(|| queue.take_due(now));
                numbers.extend(departures.map(|departure| departure.waiter));
            }
            self.reschedule(zone, &key);
        }
        numbers.sort_unstable();
        numbers
    }

    /// Refunds the charges of a request. The waiters after it move up.
    pub(super) fn refund(&mut self, charges: &[Charged], now: Moment) {
        for Charged { zone, key, charge } in charges {
            let rate = self.zones[*zone].rate_of(key);
            let Some(known) = self.keys[*zone].peek_mut(key) else {
                continue;
            };
            match &mut known.counter {
                Counter::Queue(queue) => queue.refund(*charge, now),
                Counter::Account(account) => account.refund(rate, *charge, now),
            }
            self.reschedule(*zone, key);
        }
    }

    /// Updates the next departure of a key.
    fn reschedule(&mut self, zone: usize, key: &Rc<[u8]>) {
        let Some(known) = self.keys[zone].peek_mut(key) else {
            return;
        };
        let due = match &known.counter {
            Counter::Queue(queue) => queue.due(),
            Counter::Account(_) => None,
        };
        if due != known.due {
            if let Some(before) = known.due {
                self.due.remove(&(before, zone, Rc::clone(key)));
            }
            known.due = due;
            self.due.extend(due.map(|due| (due, zone, Rc::clone(key))));
        }
    }
}

impl Known {
    fn new(zone: &Zone, key: &[u8], now: Moment) -> Self {
        let rate = zone.rate_of(key);
        Self {
            counter: match Account::new(zone.algorithm) {
                Account::Bucket(bucket) => Counter::Queue(Box::new(Queue::new(rate, bucket, now))),
                meter @ Account::Meter(_) => Counter::Account(meter),
            },
            waiting: 0,
            due: None,
        }
    }
}
