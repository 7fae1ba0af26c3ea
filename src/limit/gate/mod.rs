//! What stands in front of an origin: when a request may leave, and whose turn it is.
//!
//! A request leaves when its slot in time has come and a place is free. It is due at the latest of
//! three moments: the next slot, the moment at which it became ready, and the moment at which a
//! place came free. The next slot is then one interval later for each whole cost. Time in which
//! nobody was ready, or no place was free, is lost: no burst makes it up. A pause is a time in
//! which no place is free. An [outage](Gate::begin_outage) is a pause of unknown end.
//!
//! Gates of several gateways can [share](Gate::share_grid) one grid of slots: then the slots are
//! those that this gate was granted.

#[cfg(test)]
mod charged;
mod claims;
mod granted;
mod lent;
mod outage;
#[cfg(test)]
mod properties;
mod reserved;
mod room;
mod saved;
mod shared;
mod slots;
mod telling;
#[cfg(test)]
mod tests;
mod turnover;
mod wait_timeout;

use std::hash::Hash;
use std::num::NonZeroU32;

use super::fair_queue::Next;
use super::{Class, ClassPosition, ClassQueue, Cost, LentPlaces, Moment, Rate, Share};
pub use claims::{Claims, GridAnswer, Sharing};
use granted::Granted;
pub use granted::SlotCounts;
use outage::Outage;
use reserved::Reserved;
pub use room::{Full, InVain};
pub use saved::SavedGate;
pub use shared::{ClassDemand, Demand};
use slots::{Paced, Ticks, moment, ticks};
pub use telling::{KeyNews, KeyReport};
use turnover::Turnover;
pub use wait_timeout::{GivesUp, WaitLimits, WaitTimeout};

/// What a gate lets through and how many may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateLimits {
    /// The pace of all departures together; `None`: no pace.
    pub rate: Option<Rate>,
    /// Requests at the origin at once; `None`: no limit.
    pub max_in_flight: Option<usize>,
    /// Requests of one key that may wait; `None`: only `max_queue` counts.
    pub queue: Option<usize>,
    /// Requests of all keys that may wait.
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

/// The schedule of an origin and the requests that wait for it.
///
/// All times that it is told must not go back.
#[derive(Debug)]
pub struct Gate<K, W> {
    limits: GateLimits,
    /// The pace of this gate's own schedule: the rate, or an equal part of it.
    rate: Option<Rate>,
    /// How many gates share the rate while this one stands alone.
    parts: NonZeroU32,
    /// The slots that it was granted; `None`: it has a schedule of its own.
    granted: Option<Box<Granted>>,
    /// What became of slots that it was granted before.
    slot_counts: SlotCounts,
    waiting: ClassQueue<K, Ready<W>>,
    /// What a key hashes to, for other gateways.
    key_name: Option<fn(&K) -> u64>,
    in_flight: usize,
    /// Requests that the servers of the origin take at once now; `None`: no limit.
    room: Option<usize>,
    /// What it has borrowed from a pool; `None`: it borrows nothing.
    lent: Option<LentPlaces>,
    /// The last departure with a pace.
    last: Option<Paced>,
    /// The number of the last departure, and what `last` was before it; `None` if something else
    /// has changed `last` since.
    before: Option<(u64, Option<Paced>)>,
    /// How many requests have left, each counted once.
    departures: u64,
    outage: Outage<K, Ready<W>>,
    /// Slots of the process before.
    reserved: Reserved,
    /// When it last opened: a place came free after all were taken, or a pause ended or will end.
    opens: Moment,
    /// How often places come free while requests wait for one.
    turnover: Turnover,
}

#[derive(Debug)]
struct Ready<W> {
    since: Moment,
    waiter: W,
}

/// What becomes of a request at the gate.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// It leaves now, and has a place at the origin.
    Passed,
    /// It waits here.
    Waiting(GatePosition),
    /// It may not wait.
    Rejected(Full),
}

/// The position of a request that waits at a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatePosition {
    /// In the queue.
    InQueue(ClassPosition),
    /// Ahead of the queue, by the number of its departure: sending failed, so it is queued again.
    AtHead(u64),
}

/// A request that leaves the gate. It has a place at the origin.
#[derive(Debug, PartialEq, Eq)]
pub struct Release<K, W> {
    /// When it is due: its slot, or later if it was not ready or no place was free.
    pub due: Moment,
    /// Its key.
    pub key: K,
    /// What it costs.
    pub cost: u32,
    /// The number of its departure: if it has to leave again, that of the first one.
    pub number: u64,
    /// The waiter itself.
    pub waiter: W,
}

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// A gate at which nothing waits.
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
            last: None,
            before: None,
            departures: 0,
            outage: Outage::default(),
            reserved: Reserved::default(),
            opens: Moment::from_nanos(0),
            turnover: Turnover::default(),
        }
    }

    /// What it lets through.
    pub fn limits(&self) -> &GateLimits {
        &self.limits
    }

    /// Changes what it lets through. All waiters stay and get new times.
    ///
    /// The next slot is one new interval behind the last departure, or now if that is later. All
    /// requests that are due by `now` must have been [taken](Self::take) before.
    pub fn set_limits(&mut self, limits: GateLimits, now: Moment) {
        self.set_rate(limits.rate);
        self.limits = limits;
        // Under the new limits more might have left before, but they did not.
        self.opens = self.opens.max(now);
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        let rate = rate.map(|rate| rate.divided(self.parts));
        if let (Some((due, cost)), Some(before)) = (self.last, self.rate) {
            let due = moment(before, due);
            self.last = rate.map(|rate| (ticks(rate, due), cost));
        }
        self.before = None;
        self.rate = rate;
    }

    /// Shares the gate between these classes from now on: see [`ClassQueue::set_classes`].
    pub fn set_classes(&mut self, classes: &[Class]) {
        self.stop_telling();
        self.waiting.set_classes(classes);
    }

    /// The classes of the file, each with its number of waiters.
    pub fn classes(&self) -> impl Iterator<Item = (&Class, usize)> {
        self.waiting.classes()
    }

    /// Number of requests that wait.
    pub fn depth(&self) -> usize {
        self.waiting.len() + self.outage.len()
    }

    /// How many requests have left, each counted once: the number of the last new departure.
    pub fn departures(&self) -> u64 {
        self.departures
    }

    /// When it last opened, or will: a place came free after all were taken, or a pause ends.
    pub fn opens(&self) -> Moment {
        self.opens
    }

    /// Number of requests at the origin.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// A part of the keys that have waiters in the queue: see [`ClassQueue::depths`].
    pub fn depths(
        &self,
        from: (usize, usize),
        most: usize,
        see: impl FnMut(&K, usize),
    ) -> Option<(usize, usize)> {
        self.waiting.depths(from, most, see)
    }

    /// Lets a request pass if it need not wait. This needs no key, and charges none.
    ///
    /// It is for a gate that is one queue for all. All requests that are due by `now` must have been [taken](Self::take) before.
    pub fn pass(&mut self, cost: Cost, now: Moment) -> bool {
        let passes = self.is_free(now);
        if passes {
            self.lapse(now);
            self.departures += 1;
            self.depart(self.departures, now, cost.get().into());
        }
        passes
    }

    /// Lets a request pass if it need not wait, and charges its key.
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

    /// A request comes: it leaves at once, waits, or may not wait.
    ///
    /// Its key is charged when it leaves, at once or later.
    ///
    /// All requests that are due by `now` must have been [taken](Self::take) before. `waiter` is
    /// called if it waits.
    pub fn join(
        &mut self,
        share: &Share<K>,
        cost: Cost,
        now: Moment,
        waiter: impl FnOnce() -> W,
    ) -> Admission {
        self.join_since(share, cost, now, now, waiter)
    }

    /// The same for a request that has waited elsewhere `since` a moment: in the line of its key it
    /// stands where it would if it had joined then.
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
            self.lapse(now);
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

    /// Takes the next request that is due by `until`.
    pub fn take(&mut self, until: Moment) -> Option<Release<K, W>> {
        if self.due()? > until {
            return None;
        }
        self.lapse(self.opens);
        let opens = self.opens.max(self.outage.opens(self.in_flight));
        let (number, Next { key, cost, waiter }) = self.next()?;
        let due = self.depart(number, waiter.since.max(opens), cost.into());
        self.outage.left(self.waiting.is_empty());
        Some(Release {
            due,
            key,
            cost,
            number,
            waiter: waiter.waiter,
        })
    }

    /// Takes the waiter that leaves next: those that could not be sent go before the queue.
    fn next(&mut self) -> Option<(u64, Next<K, Ready<W>>)> {
        let unsent = self.outage.take();
        if unsent.is_some() {
            return unsent;
        }
        let next = self.waiting.take()?;
        self.departures += 1;
        Some((self.departures, next))
    }

    /// When the next request is due; `None` if nothing waits or no place is free.
    pub fn due(&self) -> Option<Moment> {
        let is_ready = self.depth() > 0 && self.has_permit() && !self.is_out();
        let opens = || self.opens.max(self.outage.opens(self.in_flight));
        is_ready.then(|| self.departs(opens())).flatten()
    }

    /// A request that waits leaves. Those behind it move up.
    pub fn leave(&mut self, position: &GatePosition) -> Option<W> {
        let left = match position {
            GatePosition::InQueue(position) => self.waiting.leave(position),
            GatePosition::AtHead(number) => self.outage.leave(*number),
        };
        self.outage.left(self.waiting.is_empty());
        left.map(|ready| ready.waiter)
    }

    /// Lets nothing leave before `until`. A pause only ever gets longer.
    pub fn pause(&mut self, until: Moment) {
        self.opens = self.opens.max(until);
    }

    /// Ends a pause.
    pub fn resume(&mut self, now: Moment) {
        self.opens = self.opens.min(now);
    }

    /// A request that left the gate gives its place at the origin back.
    pub fn give_back(&mut self, now: Moment) {
        self.turnover.place_came_free(self.depth() > 0, now);
        let was_full = !self.has_place();
        self.in_flight = self.in_flight.saturating_sub(1);
        self.outage.answered();
        self.note_free_place(was_full, now);
    }

    /// Removes and returns all waiters.
    pub fn clear(&mut self) -> Vec<W> {
        let unsent = self.outage.clear();
        let waiting = unsent.into_iter().chain(self.waiting.clear());
        waiting.map(|ready| ready.waiter).collect()
    }

    /// Whether a request would leave at once.
    pub fn is_free(&self, now: Moment) -> bool {
        let is_open = self.waiting.is_empty() && self.has_place() && self.opens <= now;
        let departs = || self.departs(now).is_some_and(|at| at <= now);
        is_open && self.outage.is_over() && departs()
    }

    /// Whether nothing is charged against anybody: the slot behind the last departure has come,
    /// and nobody waited for it.
    fn is_idle(&self, now: Moment) -> bool {
        let is_empty = self.depth() == 0 && self.has_place();
        is_empty
            && match &self.granted {
                None => self.slot(now).1 <= now,
                Some(granted) => granted.is_idle(now),
            }
    }

    /// Whether a place at the origin is free.
    pub fn has_place(&self) -> bool {
        self.has_permit() && self.outage.has_permit(self.in_flight)
    }

    /// The same, whether the origin is just back or not.
    fn has_permit(&self) -> bool {
        let fits = |most: Option<usize>| most.is_none_or(|most| self.in_flight < most);
        let is_lent = fits(self.lent.map(|lent| lent.places));
        is_lent && fits(self.limits.max_in_flight) && fits(self.room)
    }

    fn note_free_place(&mut self, was_full: bool, now: Moment) {
        if was_full && self.has_place() {
            self.opens = self.opens.max(now);
        }
    }
}
