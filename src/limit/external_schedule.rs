//! Waiters whose departure times are assigned by the store that gateways share.
//!
//! A *departure time* is the instant at which a waiter may leave. The store grants one for each
//! waiter, and it has a *charge*, which the store needs to take it back. `delay` is the parameter
//! of nginx's `limit_req`: the level above which a request waits.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{Cost, Departure, Moment, Ticket};

/// Waiters of a key, with the departure times that the store has assigned to them.
///
/// Waiters with the same `delay` are in one *lane*, in order of arrival. A lane has as many times
/// as waiters, in order: the first waiter takes the first time. So when a waiter leaves early, each
/// waiter behind it takes the time before its own, and the last time is no longer used.
///
/// `W` is a waiter, and `C` the charge of a time.
#[derive(Clone, Debug)]
pub struct ExternalSchedule<W, C> {
    lanes: Vec<Lane<W, C>>,
    /// Lane (`delay`) and position of each waiter.
    seats: HashMap<Ticket, (u32, u64)>,
    /// Position of the next waiter. Positions count up.
    next_position: u64,
}

/// Waiters with the same `delay`, and their departure times.
#[derive(Clone, Debug)]
struct Lane<W, C> {
    delay: u32,
    /// Keyed by position.
    waiters: BTreeMap<u64, ScheduledWaiter<W>>,
    /// Departure times with their charges, the earliest first.
    times: VecDeque<(Moment, C)>,
}

#[derive(Clone, Debug)]
struct ScheduledWaiter<W> {
    ticket: Ticket,
    /// Instant at which it joined.
    since: Moment,
    waiter: W,
}

impl<W, C> Lane<W, C> {
    /// Adds a departure time, behind all times that are not later.
    fn add(&mut self, due: Moment, charge: C) {
        let index = self.times.partition_point(|(other, _)| *other <= due);
        self.times.insert(index, (due, charge));
    }
}

impl<W, C> Default for ExternalSchedule<W, C> {
    fn default() -> Self {
        Self {
            lanes: Vec::new(),
            seats: HashMap::new(),
            next_position: 0,
        }
    }
}

impl<W, C> ExternalSchedule<W, C> {
    /// Returns the number of waiters.
    pub fn depth(&self) -> usize {
        self.seats.len()
    }

    /// Returns the instant at which the oldest waiter joined, or `None` without waiters.
    pub fn oldest(&self) -> Option<Moment> {
        let heads = self
            .lanes
            .iter()
            .filter_map(|lane| lane.waiters.values().next());
        heads.map(|head| head.since).min()
    }

    /// Returns whether any waiter has this `delay`.
    ///
    /// A new request then waits behind it, even if its own time is earlier.
    pub fn is_busy(&self, delay: u32) -> bool {
        self.lanes.iter().any(|lane| lane.delay == delay)
    }

    /// Returns the `delay` of the next waiter, or `None` without waiters.
    pub fn next_delay(&self) -> Option<u32> {
        self.first().map(|(_, found)| self.lanes[found].delay)
    }

    /// Adds a waiter behind the others with this `delay`, and adds its assigned time.
    ///
    /// `since` is the instant at which the waiter joined.
    pub fn seat(
        &mut self,
        delay: u32,
        ticket: Ticket,
        since: Moment,
        waiter: W,
        (due, charge): (Moment, C),
    ) {
        let position = self.next_position;
        self.next_position += 1;
        self.seats.insert(ticket, (delay, position));
        let lane = self.lane(delay);
        let scheduled = ScheduledWaiter {
            ticket,
            since,
            waiter,
        };
        lane.waiters.insert(position, scheduled);
        lane.add(due, charge);
    }

    /// Returns the departure of the next waiter, or `None` without waiters.
    pub fn due(&self) -> Option<Moment> {
        self.first().map(|(due, _)| due)
    }

    /// Removes and returns the next waiter that is due at `now`, if any.
    pub fn take_due(&mut self, now: Moment) -> Option<Departure<W, C>> {
        let (_, found) = self.first().filter(|(due, _)| *due <= now)?;
        let lane = &mut self.lanes[found];
        let (due, charge) = lane.times.pop_front()?;
        let (_, ScheduledWaiter { ticket, waiter, .. }) = lane.waiters.pop_first()?;
        if lane.waiters.is_empty() {
            self.lanes.swap_remove(found);
        }
        self.seats.remove(&ticket);
        Some(Departure {
            due,
            charge,
            waiter,
        })
    }

    /// Removes a waiter that disconnected or expired; `None` if it does not wait any more.
    ///
    /// The waiters behind it move up. Removes the last time whose charge `fits` this waiter, and
    /// returns the charge. The caller refunds it. If no charge fits, returns `None`, too, and the
    /// lane keeps one time more than it has waiters.
    pub fn leave(&mut self, ticket: Ticket, fits: impl Fn(&W, &C) -> bool) -> Option<C> {
        let (delay, position) = self.seats.remove(&ticket)?;
        let found = self.lanes.iter().position(|lane| lane.delay == delay)?;
        let lane = &mut self.lanes[found];
        let ScheduledWaiter { waiter, .. } = lane.waiters.remove(&position)?;
        let mut times = lane.times.iter();
        let last = times.rposition(|(_, charge)| fits(&waiter, charge));
        let unused = last.and_then(|last| lane.times.remove(last));
        if lane.waiters.is_empty() {
            self.lanes.swap_remove(found);
        }
        unused.map(|(_, charge)| charge)
    }

    /// Returns the departure time of each waiter if no waiter leaves early, lane by lane.
    pub fn schedule(&self) -> impl Iterator<Item = (Moment, &W)> {
        self.lanes.iter().flat_map(|lane| {
            let waiters = lane.waiters.values().map(|waiting| &waiting.waiter);
            lane.times.iter().map(|(due, _)| *due).zip(waiters)
        })
    }

    /// Returns the waiters that are due by this instant.
    pub fn due_by(&self, moment: Moment) -> impl Iterator<Item = &W> {
        self.lanes.iter().flat_map(move |lane| {
            let times = lane.times.iter();
            let due = times.take_while(move |(due, _)| *due <= moment);
            let waiters = lane.waiters.values().map(|waiting| &waiting.waiter);
            due.zip(waiters).map(|(_, waiter)| waiter)
        })
    }

    /// Returns all waiters, in any order.
    pub fn waiters_mut(&mut self) -> impl Iterator<Item = &mut W> {
        let lanes = self.lanes.iter_mut();
        lanes.flat_map(|lane| lane.waiters.values_mut().map(|waiting| &mut waiting.waiter))
    }

    /// Returns all times, lane by lane: the lane's `delay`, the time and its charge.
    pub fn times(&self) -> impl Iterator<Item = (u32, Moment, &C)> {
        self.lanes.iter().flat_map(|lane| {
            let times = lane.times.iter();
            times.map(|(due, charge)| (lane.delay, *due, charge))
        })
    }

    /// Replaces the first time whose charge `is_old` accepts, in the lane with this `delay`.
    ///
    /// # Errors
    ///
    /// Returns the new time's charge if there is no such old time any more.
    pub fn exchange(
        &mut self,
        delay: u32,
        is_old: impl Fn(&C) -> bool,
        (due, charge): (Moment, C),
    ) -> Result<(), C> {
        let lane = self.lanes.iter_mut().find(|lane| lane.delay == delay);
        let found = lane.and_then(|lane| {
            let old = lane.times.iter().position(|(_, charge)| is_old(charge))?;
            Some((lane, old))
        });
        let Some((lane, old)) = found else {
            return Err(charge);
        };
        lane.times.remove(old);
        lane.add(due, charge);
        Ok(())
    }

    /// Moves waiters with this `delay` back: replaces the first times by later ones.
    ///
    /// The sum of the costs of the replaced times is at most `total`. `cost_of` returns the cost of
    /// a charge, or `None` if its time must stay.
    ///
    /// The new times are in `total` slots of the caller. `later(before, cost)` returns the time
    /// that begins behind the first `before` of these slots and takes `cost` of them. Slots that no
    /// replaced time needs are skipped at the beginning.
    pub fn postpone(
        &mut self,
        delay: u32,
        total: Cost,
        cost_of: impl Fn(&C) -> Option<Cost>,
        later: impl Fn(u32, Cost) -> (Moment, C),
    ) {
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.delay == delay) else {
            return;
        };
        let (mut rest, mut replaced, mut index) = (total.get(), Vec::new(), 0);
        while let Some((_, charge)) = lane.times.get(index) {
            let Some(cost) = cost_of(charge) else {
                index += 1;
                continue;
            };
            let Some(rest_after) = rest.checked_sub(cost.get()) else {
                break;
            };
            rest = rest_after;
            replaced.push(cost);
            lane.times.remove(index);
        }
        let mut before = rest;
        for cost in replaced {
            let (due, charge) = later(before, cost);
            lane.add(due, charge);
            before += cost.get();
        }
    }

    /// Replaces each time for which `change` returns another one. Calls it in order of each lane.
    pub fn exchange_some(&mut self, mut change: impl FnMut(Moment, &C) -> Option<(Moment, C)>) {
        for lane in &mut self.lanes {
            for time in &mut lane.times {
                if let Some(new) = change(time.0, &time.1) {
                    *time = new;
                }
            }
            lane.times.make_contiguous().sort_by_key(|(due, _)| *due);
        }
    }

    /// Changes all times. `change` must keep their order.
    pub fn retime(&mut self, change: impl Fn(Moment) -> Moment) {
        let times = self.lanes.iter_mut().flat_map(|lane| &mut lane.times);
        times.for_each(|(due, _)| *due = change(*due));
    }

    /// Removes and returns all waiters, and the charges of their times, the latest time first.
    pub fn reject_all(&mut self) -> (Vec<W>, Vec<C>) {
        self.seats.clear();
        let (mut removed, mut times) = (Vec::new(), Vec::new());
        for lane in self.lanes.drain(..) {
            removed.extend(lane.waiters.into_values().map(|waiting| waiting.waiter));
            times.extend(lane.times);
        }
        times.sort_by_key(|(due, _)| std::cmp::Reverse(*due));
        let charges = times.into_iter().map(|(_, charge)| charge);
        (removed, charges.collect())
    }

    /// Returns the earliest departure time, and the index of its lane.
    fn first(&self) -> Option<(Moment, usize)> {
        let heads = self.lanes.iter().enumerate();
        let heads = heads.filter_map(|(index, lane)| Some((lane.times.front()?.0, index)));
        heads.min()
    }

    /// Returns the lane of a `delay`. Adds an empty one if there is none.
    fn lane(&mut self, delay: u32) -> &mut Lane<W, C> {
        let found = self.lanes.iter().position(|lane| lane.delay == delay);
        let found = found.unwrap_or_else(|| {
            self.lanes.push(Lane {
                delay,
                waiters: BTreeMap::new(),
                times: VecDeque::new(),
            });
            self.lanes.len() - 1
        });
        &mut self.lanes[found]
    }
}

#[cfg(test)]
mod tests;
