//! Zones in a replay, with their waiters and charges.
//!
//! A zone limits the rate of each key. A request over the rate waits for its departure, or is
//! rejected.

use std::collections::BTreeSet;
use std::rc::Rc;

use config::{RouteLimit, Settings, Zone};
use limit::{Account, Charge, Excess, Moment, Queue, Ticket, Verdict};

use crate::replay::zone_keys::ZoneKeys;

/// The zones, with their waiters and refundable charges.
pub(super) struct ZoneQueues<'a> {
    zones: &'a [Zone],
    /// Keys of each zone.
    keys: Vec<ZoneKeys<KeyState>>,
    /// Next departure of each key that has waiters, by zone.
    due: BTreeSet<(Moment, usize, Rc<[u8]>)>,
}

/// State of a key in a zone.
struct KeyState {
    counter: Counter,
    /// Number of requests that were charged here and wait, here or in another zone.
    waiting: u32,
    /// Instant of the key's entry in [`ZoneQueues::due`].
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
            || KeyState::new(settings, key, now),
        )
    }

    /// Returns the verdict that a request would get, and the number of waiters of its key.
    pub(super) fn predict(
        &self,
        requested: RouteLimit,
        key: &[u8],
        now: Moment,
    ) -> Option<(Verdict, usize)> {
        let rate = self.zones[requested.zone].rate_of(key);
        let state = self.keys[requested.zone].peek(key)?;
        Some(match &state.counter {
            Counter::Queue(queue) => {
                // A copy of the bucket decides, so nothing is charged.
                let verdict = queue.bucket().decide(rate, requested.limit, now);
                (verdict, queue.depth())
            }
            Counter::Account(account) => {
                let refusal = account.refuses(rate, requested.limit, now);
                let excess = Excess::default();
                (refusal.map_or(Verdict::Pass { excess }, Verdict::Reject), 0)
            }
        })
    }

    /// Charges an accepted request. It waits for its slot unless `passes_at_once` (in a dry run).
    pub(super) fn join(
        &mut self,
        requested: RouteLimit,
        key: &Rc<[u8]>,
        number: u64,
        passes_at_once: bool,
        now: Moment,
    ) -> Option<(Verdict, Charged)> {
        let RouteLimit { zone, limit } = requested;
        let rate = self.zones[zone].rate_of(key);
        let state = self.keys[zone].peek_mut(key)?;
        let (verdict, charge) = match &mut state.counter {
            Counter::Queue(queue) if passes_at_once => queue.charge(limit, now),
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

    /// Counts a request as waiting at its keys, or no longer. Keys with waiters are not evicted.
    pub(super) fn set_waiting(&mut self, charges: &[Charged], is_waiting: bool) {
        for Charged { zone, key, .. } in charges {
            if let Some(state) = self.keys[*zone].peek_mut(key) {
                state.waiting = if is_waiting {
                    state.waiting + 1
                } else {
                    state.waiting.saturating_sub(1)
                };
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
            let Some(state) = self.keys[zone].peek_mut(&key) else {
                continue;
            };
            state.due = None;
            if let Counter::Queue(queue) = &mut state.counter {
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
            let Some(state) = self.keys[*zone].peek_mut(key) else {
                continue;
            };
            match &mut state.counter {
                Counter::Queue(queue) => queue.refund(*charge, now),
                Counter::Account(account) => account.refund(rate, *charge, now),
            }
            self.reschedule(*zone, key);
        }
    }

    /// Updates the next departure of a key.
    fn reschedule(&mut self, zone: usize, key: &Rc<[u8]>) {
        let Some(state) = self.keys[zone].peek_mut(key) else {
            return;
        };
        let due = match &state.counter {
            Counter::Queue(queue) => queue.due(),
            Counter::Account(_) => None,
        };
        if due != state.due {
            if let Some(before) = state.due {
                self.due.remove(&(before, zone, Rc::clone(key)));
            }
            state.due = due;
            self.due.extend(due.map(|due| (due, zone, Rc::clone(key))));
        }
    }
}

impl KeyState {
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
