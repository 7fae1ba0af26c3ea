use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{Cost, Departure, Moment, Ticket};

/// The waiters of a key whose schedule is kept elsewhere, with the departure times assigned there.
///
/// Waiters with the same `delay` wait in one lane, in order of arrival. A lane has as many times
/// as waiters, sorted by time: the first waiter takes the first time. So when a waiter leaves,
/// each waiter behind it takes the time before its own, and the last time is left over. `C` is the
/// charge that belongs to a time; it is needed to give the time back.
#[derive(Clone, Debug)]
pub struct ExternalSchedule<W, C> {
    lanes: Vec<Lane<W, C>>,
    /// The `delay` (lane) and the place of each waiter.
    seats: HashMap<Ticket, (u32, u64)>,
    /// The place of the next waiter. Places count up.
    next: u64,
}

#[derive(Clone, Debug)]
struct Lane<W, C> {
    delay: u32,
    /// Keyed by place.
    waiters: BTreeMap<u64, Waiting<W>>,
    times: VecDeque<(Moment, C)>,
}

#[derive(Clone, Debug)]
struct Waiting<W> {
    ticket: Ticket,
    since: Moment,
    waiter: W,
}

impl<W, C> Lane<W, C> {
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
            next: 0,
        }
    }
}

impl<W, C> ExternalSchedule<W, C> {
    /// Number of waiters.
    pub fn depth(&self) -> usize {
        self.seats.len()
    }

    /// When the waiter that has waited longest joined; `None` if nothing waits.
    pub fn oldest(&self) -> Option<Moment> {
        let heads = self
            .lanes
            .iter()
            .filter_map(|lane| lane.waiters.values().next());
        heads.map(|head| head.since).min()
    }

    /// Whether any waiter has this `delay`.
    ///
    /// A new request then waits behind it, however early its own time is.
    pub fn is_busy(&self, delay: u32) -> bool {
        self.lanes.iter().any(|lane| lane.delay == delay)
    }

    /// The `delay` of the waiter that is due next; `None` if nothing waits.
    pub fn next_delay(&self) -> Option<u32> {
        self.first().map(|(_, found)| self.lanes[found].delay)
    }

    /// Adds a waiter behind the others with this `delay`, and adds its assigned time.
    ///
    /// `since` is when the waiter joined.
    pub fn seat(
        &mut self,
        delay: u32,
        ticket: Ticket,
        since: Moment,
        waiter: W,
        (due, charge): (Moment, C),
    ) {
        let place = self.next;
        self.next += 1;
        self.seats.insert(ticket, (delay, place));
        let lane = self.lane(delay);
        let waiting = Waiting {
            ticket,
            since,
            waiter,
        };
        lane.waiters.insert(place, waiting);
        lane.add(due, charge);
    }

    /// When the next waiter is due; `None` if nothing waits.
    pub fn due(&self) -> Option<Moment> {
        self.first().map(|(due, _)| due)
    }

    /// Takes the next waiter that is due at `now`, if there is one.
    pub fn take_due(&mut self, now: Moment) -> Option<Departure<W, C>> {
        let (_, found) = self.first().filter(|(due, _)| *due <= now)?;
        let lane = &mut self.lanes[found];
        let (due, charge) = lane.times.pop_front()?;
        let (_, Waiting { ticket, waiter, .. }) = lane.waiters.pop_first()?;
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

    /// Removes a waiter that leaves before its turn; `None` if it does not wait (any more).
    ///
    /// The waiters behind it move up. Returns the charge of the last time that `is_of` accepts as
    /// that of such a waiter, for the caller to give back.
    pub fn leave(&mut self, ticket: Ticket, is_of: impl Fn(&W, &C) -> bool) -> Option<C> {
        let (delay, place) = self.seats.remove(&ticket)?;
        let found = self.lanes.iter().position(|lane| lane.delay == delay)?;
        let lane = &mut self.lanes[found];
        let left = lane.waiters.remove(&place)?;
        let mut times = lane.times.iter();
        let last = times.rposition(|(_, charge)| is_of(&left.waiter, charge));
        let last = last.and_then(|last| lane.times.remove(last));
        if lane.waiters.is_empty() {
            self.lanes.swap_remove(found);
        }
        last.map(|(_, charge)| charge)
    }

    /// When the waiters are due if nobody leaves before, lane by lane.
    pub fn schedule(&self) -> impl Iterator<Item = (Moment, &W)> {
        self.lanes.iter().flat_map(|lane| {
            let waiters = lane.waiters.values().map(|waiting| &waiting.waiter);
            lane.times.iter().map(|(due, _)| *due).zip(waiters)
        })
    }

    /// The waiters that are due by this moment.
    pub fn due_by(&self, moment: Moment) -> impl Iterator<Item = &W> {
        self.lanes.iter().flat_map(move |lane| {
            let due = lane.times.iter().take_while(move |(due, _)| *due <= moment);
            let waiters = lane.waiters.values().map(|waiting| &waiting.waiter);
            due.zip(waiters).map(|(_, waiter)| waiter)
        })
    }

    /// All waiters, in no order.
    pub fn waiters_mut(&mut self) -> impl Iterator<Item = &mut W> {
        let lanes = self.lanes.iter_mut();
        lanes.flat_map(|lane| lane.waiters.values_mut().map(|waiting| &mut waiting.waiter))
    }

    /// All times, lane by lane: the lane's `delay`, the time and its charge.
    pub fn times(&self) -> impl Iterator<Item = (u32, Moment, &C)> {
        self.lanes.iter().flat_map(|lane| {
            let times = lane.times.iter();
            times.map(|(due, charge)| (lane.delay, *due, charge))
        })
    }

    /// Replaces a time in the lane with this `delay`: the first whose charge `is_old` accepts.
    ///
    /// # Errors
    ///
    /// Returns the new time's charge if there is no such old time (any more).
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

    /// Moves waiters with this `delay` back: their first times are left unused, and later ones are
    /// added, as many as before.
    ///
    /// The times left unused cost `most` together, or as much below it as whole times can.
    /// `cost_of` is what a charge costs, or `None` if its time stays. `later` makes a time of this
    /// cost, from the part of `most` with this index on; what is over of `most` comes first.
    pub fn postpone(
        &mut self,
        delay: u32,
        most: Cost,
        cost_of: impl Fn(&C) -> Option<Cost>,
        later: impl Fn(u32, Cost) -> (Moment, C),
    ) {
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.delay == delay) else {
            return;
        };
        let (mut left, mut unused, mut index) = (most.get(), Vec::new(), 0);
        while let Some((_, charge)) = lane.times.get(index) {
            let Some(cost) = cost_of(charge) else {
                index += 1;
                continue;
            };
            let Some(less) = left.checked_sub(cost.get()) else {
                break;
            };
            left = less;
            unused.push(cost);
            lane.times.remove(index);
        }
        for cost in unused {
            let (due, charge) = later(left, cost);
            lane.add(due, charge);
            left += cost.get();
        }
    }

    /// Replaces each time for which `change` has another one, lane by lane in their order.
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
        let (mut gone, mut times) = (Vec::new(), Vec::new());
        for lane in self.lanes.drain(..) {
            gone.extend(lane.waiters.into_values().map(|waiting| waiting.waiter));
            times.extend(lane.times);
        }
        times.sort_by_key(|(due, _)| std::cmp::Reverse(*due));
        (gone, times.into_iter().map(|(_, charge)| charge).collect())
    }

    /// The earliest first time of any lane, and that lane's index.
    fn first(&self) -> Option<(Moment, usize)> {
        let heads = self.lanes.iter().enumerate();
        let heads = heads.filter_map(|(index, lane)| Some((lane.times.front()?.0, index)));
        heads.min()
    }

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
