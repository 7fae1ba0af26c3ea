//! The gate of an origin: decides when a request may leave for the origin, and in which order.
//!
//! A *permit* is the right to run one request at the origin. A *slot* is an instant on the gate's
//! schedule at which one request may leave. The rate sets the interval between two slots.
//!
//! A request leaves when its slot has come and a permit is free. A request is due at the latest of
//! three instants: the next slot, the instant at which it became ready, and the instant at which a
//! permit became free. The next slot is then one interval later for each unit of the request's
//! cost.
//!
//! Time in which no request was ready, or no permit was free, is lost: no burst makes up for it. In
//! a pause no permit is free. An [outage](Gate::begin_outage) is a pause of unknown end.
//!
//! The gates of several gateways can [share](Gate::share_grid) one grid of slots. Requests then
//! leave in the slots that this gate was granted.
//!
//! Files: `slots` is the gate's own schedule, and `reserved` the slots of an earlier process.
//! `shared`, `granted`, `claims` and `key_reporting` belong to the shared grid. `lent` are permits
//! of a pool. `room` and `wait_timeout` limit the waiting. `turnover` measures how often permits
//! become free.

#[cfg(test)]
mod charge_tests;
mod claims;
mod granted;
mod key_reporting;
mod lent;
mod outage;
#[cfg(test)]
mod properties;
mod reserved;
mod room;
mod saved;
mod shared;
mod slots;
#[cfg(test)]
mod tests;
mod turnover;
mod wait_timeout;

use std::hash::Hash;
use std::num::NonZeroU32;

use super::bucket::{line as ticks, moment};
use super::fair_queue::Next;
use super::{Class, ClassPosition, ClassQueue, Cost, LeasedPermits, Moment, Rate, Share};
pub use claims::{Claims, GridAnswer, Sharing};
use granted::Granted;
pub use granted::SlotCounts;
pub use key_reporting::{KeyNews, KeyReport};
use outage::Outage;
use reserved::Reserved;
pub use room::{Full, WaitRejection};
pub use saved::SavedGate;
pub use shared::{ClassDemand, Demand};
use slots::{Departed, Ticks};
use turnover::Turnover;
pub use wait_timeout::{TimeoutReason, WaitLimits, WaitTimeout};

/// Limits of a gate: its rate, its permits, and its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateLimits {
    /// Rate of all departures together. `None`: no limit.
    pub rate: Option<Rate>,
    /// Upper bound of the requests at the origin. `None`: no limit.
    pub max_in_flight: Option<usize>,
    /// Upper bound of the waiters of one key. `None`: only `max_queue` applies.
    pub queue: Option<usize>,
    /// Upper bound of the waiters of all keys.
    pub max_queue: usize,
}

impl GateLimits {
    /// No limit at all.
    pub const NONE: Self = Self {
        rate: None,
        max_in_flight: None,
        queue: None,
        max_queue: usize::MAX,
    };
}

/// Schedule of an origin, with the requests that wait for it. `K` is a key, and `W` a waiter.
///
/// All instants passed to it must not decrease.
#[derive(Debug)]
pub struct Gate<K, W> {
    limits: GateLimits,
    /// Rate of this gate's own schedule: the configured rate, or an equal part of it.
    rate: Option<Rate>,
    /// Number of gates that share the rate while this one has its own schedule.
    parts: NonZeroU32,
    /// Slots that the gate was granted. `None`: it has a schedule of its own.
    granted: Option<Box<Granted>>,
    /// Counts of the slots that the gate was granted before it left the grid.
    slot_counts: SlotCounts,
    /// The queue of waiters.
    waiting: ClassQueue<K, Ready<W>>,
    /// Hash of a key, as a name of the key for other gateways.
    key_name: Option<fn(&K) -> u64>,
    /// Number of requests at the origin.
    in_flight: usize,
    /// Number of requests that the servers of the origin accept now. `None`: no limit.
    room: Option<usize>,
    /// Permits borrowed from a pool. `None`: the gate has no pool.
    lent: Option<LeasedPermits>,
    /// Last departure at a rate.
    last_departed: Option<Departed>,
    /// Number of the last departure, and the value of `last_departed` before it.
    ///
    /// `None`: something else has changed `last_departed` since.
    before_last: Option<(u64, Option<Departed>)>,
    /// Number of departures. A request that leaves again is not counted again.
    departures: u64,
    outage: Outage<K, Ready<W>>,
    /// Slots that the previous process reserved.
    reserved: Reserved,
    /// Instant of the last or next opening: a permit became free after all were taken, or a pause
    /// ends.
    opens: Moment,
    turnover: Turnover,
}

/// A waiter with the instant at which it became ready: it joined, or could not be sent.
#[derive(Debug)]
struct Ready<W> {
    since: Moment,
    waiter: W,
}

/// Result of a request's [join](Gate::join).
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// The request leaves now, and has a permit.
    Passed,
    /// The request waits here.
    Waiting(GatePosition),
    /// The request may not wait.
    Rejected(Full),
}

/// Position of a waiter at a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatePosition {
    /// In the queue.
    InQueue(ClassPosition),
    /// Ahead of the queue, by its departure number: sending failed, so it waits again.
    AtHead(u64),
}

/// A request that leaves the gate, with a permit.
#[derive(Debug, PartialEq, Eq)]
pub struct Release<K, W> {
    /// Instant at which it is due: its slot, or later if it was not ready or no permit was free.
    pub due: Moment,
    /// Key of the request.
    pub key: K,
    /// Cost of the request.
    pub cost: u32,
    /// Number of its departure. A request that leaves again keeps its first number.
    pub number: u64,
    /// The waiter.
    pub waiter: W,
}

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// Creates a gate without waiters.
    pub fn new(limits: GateLimits) -> Self {
        Self {
            limits,
            rate: limits.rate,
            parts: NonZeroU32::MIN,
            granted: None,
            slot_counts: SlotCounts::default(),
            waiting: ClassQueue::default(),
            key_name: None,
            in_flight: 0,
            room: None,
            lent: None,
            last_departed: None,
            before_last: None,
            departures: 0,
            outage: Outage::default(),
            reserved: Reserved::default(),
            opens: Moment::from_nanos(0),
            turnover: Turnover::default(),
        }
    }

    /// Returns the limits.
    pub fn limits(&self) -> &GateLimits {
        &self.limits
    }

    /// Changes the limits. All waiters stay and get new slots.
    ///
    /// The next slot is one new interval after the last departure, or now if that is later. All
    /// requests that are due by `now` must have been [taken](Self::take) before.
    pub fn set_limits(&mut self, limits: GateLimits, now: Moment) {
        self.set_rate(limits.rate);
        self.limits = limits;
        // A request that only the new limits allow does not leave before `now`.
        self.opens = self.opens.max(now);
    }

    /// Changes the rate of the gate's own schedule to its part of `rate`.
    fn set_rate(&mut self, rate: Option<Rate>) {
        let rate = rate.map(|rate| rate.divided(self.parts));
        if let (Some(Departed { at, cost }), Some(before)) = (self.last_departed, self.rate) {
            // The ticks of a departure are those of its rate.
            let due = moment(before, at);
            self.last_departed = rate.map(|rate| Departed::new(rate, due, cost));
        }
        self.before_last = None;
        self.rate = rate;
    }

    /// Divides the gate between these classes from now on: see [`ClassQueue::set_classes`].
    pub fn set_classes(&mut self, classes: &[Class]) {
        self.stop_key_reporting();
        self.waiting.set_classes(classes);
    }

    /// Returns the configured classes, each with its number of waiters.
    pub fn classes(&self) -> impl Iterator<Item = (&Class, usize)> {
        self.waiting.classes()
    }

    /// Returns the number of waiters.
    pub fn depth(&self) -> usize {
        self.waiting.len() + self.outage.len()
    }

    /// Returns the number of departures: the number of the last new departure.
    pub fn departures(&self) -> u64 {
        self.departures
    }

    /// Returns when the gate last opened, or will: a permit became free, or a pause ends.
    pub fn opens(&self) -> Moment {
        self.opens
    }

    /// Returns the number of requests at the origin.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Calls `visit` for some of the keys that have waiters: see [`ClassQueue::depths`].
    pub fn depths(
        &self,
        from: (usize, usize),
        max_steps: usize,
        visit: impl FnMut(&K, usize),
    ) -> Option<(usize, usize)> {
        self.waiting.depths(from, max_steps, visit)
    }

    /// Lets a request pass if it need not wait, without a key. Returns whether it passes.
    ///
    /// For a gate with one queue for all keys. All requests that are due by `now` must have been
    /// [taken](Self::take) before.
    pub fn pass(&mut self, cost: Cost, now: Moment) -> bool {
        let passes = self.is_free(now);
        if passes {
            self.expire(now);
            self.departures += 1;
            self.depart(self.departures, now, cost.get().into());
        }
        passes
    }

    /// Lets a request pass if it need not wait, and charges its key. Returns whether it passes.
    ///
    /// All requests that are due by `now` must have been [taken](Self::take) before.
    pub fn pass_as(&mut self, share: &Share<K>, cost: Cost, now: Moment) -> bool {
        if self.is_idle(now) {
            self.waiting.restart();
        }
        let passes = self.pass(cost, now);
        if passes {
            self.waiting.depart(share, cost.get());
        }
        passes
    }

    /// Joins the gate: the request leaves at once, waits, or is rejected.
    ///
    /// Its key is charged when the request leaves. All requests that are due by `now` must have
    /// been [taken](Self::take) before. `waiter` is called if the request waits.
    pub fn join(
        &mut self,
        share: &Share<K>,
        cost: Cost,
        now: Moment,
        waiter: impl FnOnce() -> W,
    ) -> Admission {
        self.join_since(share, cost, now, now, waiter)
    }

    /// Joins the gate, for a request that has waited elsewhere since the instant `since`.
    ///
    /// In the queue of its key it gets the position that it would have if it had joined then.
    pub fn join_since(
        &mut self,
        share: &Share<K>,
        cost: Cost,
        since: Moment,
        now: Moment,
        waiter: impl FnOnce() -> W,
    ) -> Admission {
        if self.pass_as(share, cost, now) {
            return Admission::Passed;
        }
        if self.waiting.is_empty() {
            self.expire(now);
        }
        if let Err(full) = self.predict(share, now) {
            return Admission::Rejected(full);
        }
        let ready = Ready {
            since,
            waiter: waiter(),
        };
        let position = self.waiting.join(share, cost.get(), ready);
        if since < now {
            self.waiting.advance(&position, |other| other.since > since);
        }
        Admission::Waiting(GatePosition::InQueue(position))
    }

    /// Removes and returns the next request that is due by `until`.
    pub fn take(&mut self, until: Moment) -> Option<Release<K, W>> {
        if self.due()? > until {
            return None;
        }
        self.expire(self.opens);
        let opens = self.opens.max(self.outage.opens(self.in_flight));
        let (number, Next { key, cost, waiter }) = self.next()?;
        let due = self.depart(number, waiter.since.max(opens), cost.into());
        self.outage.note_removed(self.waiting.is_empty());
        Some(Release {
            due,
            key,
            cost,
            number,
            waiter: waiter.waiter,
        })
    }

    /// Removes the next waiter. Returns it with its departure number.
    ///
    /// Requests whose sending failed go before the queue, and keep their number.
    fn next(&mut self) -> Option<(u64, Next<K, Ready<W>>)> {
        self.outage.take().or_else(|| {
            let next = self.waiting.take()?;
            self.departures += 1;
            Some((self.departures, next))
        })
    }

    /// Returns when the next request is due. `None`: no request waits, or no permit is free.
    pub fn due(&self) -> Option<Moment> {
        if self.depth() == 0 || !self.is_below_limit() || self.is_out() {
            return None;
        }
        self.departs(self.opens.max(self.outage.opens(self.in_flight)))
    }

    /// Removes a waiter. The positions behind it move up.
    pub fn leave(&mut self, position: &GatePosition) -> Option<W> {
        let removed = match position {
            GatePosition::InQueue(position) => self.waiting.leave(position),
            GatePosition::AtHead(number) => self.outage.leave(*number),
        };
        self.outage.note_removed(self.waiting.is_empty());
        removed.map(|ready| ready.waiter)
    }

    /// Lets no request leave before `until`. A pause that ends later stays.
    pub fn pause(&mut self, until: Moment) {
        self.opens = self.opens.max(until);
    }

    /// Ends a pause.
    pub fn resume(&mut self, now: Moment) {
        self.opens = self.opens.min(now);
    }

    /// Returns the permit of a request that left the gate.
    pub fn give_back(&mut self, now: Moment) {
        self.turnover.permit_came_free(self.depth() > 0, now);
        self.change_permits(now, |gate| {
            gate.in_flight = gate.in_flight.saturating_sub(1);
            gate.outage.answered();
        });
    }

    /// Removes and returns all waiters.
    pub fn clear(&mut self) -> Vec<W> {
        let unsent = self.outage.clear();
        let waiting = unsent.into_iter().chain(self.waiting.clear());
        waiting.map(|ready| ready.waiter).collect()
    }

    /// Returns whether a request would leave at once.
    pub fn is_free(&self, now: Moment) -> bool {
        let is_open = self.waiting.is_empty() && self.has_permit() && self.opens <= now;
        let departs = || self.departs(now).is_some_and(|at| at <= now);
        is_open && self.outage.is_over() && departs()
    }

    /// Returns whether the charges of all keys may be dropped, because the gate is idle.
    ///
    /// The gate is idle if the slot after the last departure has come and no request waits.
    fn is_idle(&self, now: Moment) -> bool {
        let has_slot = || match &self.granted {
            None => self.slot(now).1 <= now,
            Some(granted) => granted.is_idle(now),
        };
        self.depth() == 0 && self.has_permit() && has_slot()
    }

    /// Returns whether a permit is free.
    pub fn has_permit(&self) -> bool {
        self.is_below_limit() && self.outage.is_below_limit(self.in_flight)
    }

    /// Returns whether a permit is free, without the limit for an origin that has just recovered.
    fn is_below_limit(&self) -> bool {
        let lent = self.lent.map(|lent| lent.permits);
        let limits = [self.limits.max_in_flight, self.room, lent];
        limits
            .into_iter()
            .flatten()
            .all(|limit| self.in_flight < limit)
    }

    /// Applies a change of the permits. The gate opens if a permit becomes free, and none was free.
    fn change_permits(&mut self, now: Moment, change: impl FnOnce(&mut Self)) {
        let was_full = !self.has_permit();
        change(self);
        if was_full && self.has_permit() {
            self.opens = self.opens.max(now);
        }
    }
}
