//! An outage of the origin: no request leaves the gate until the origin is reachable again.
//!
//! A request that had left the gate and could not be sent (*unsent*) waits again, before the queue.
//! A recovered origin without a rate is not flooded: a *ramp* bounds the requests in flight, and
//! grows with time and with each answer.

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use super::{Full, Gate, GatePosition, Moment, Next, Ready, Share};

/// Interval at which the ramp of a recovered origin grows by one request.
///
/// Without this, tunnels and requests that wait for their clients would block the other waiters,
/// because they end late.
const RAMP_STEP: Duration = Duration::from_millis(100);

/// State of an outage, with the requests that had left and could not be sent.
#[derive(Debug)]
pub(super) struct Outage<K, W> {
    is_out: bool,
    /// Requests that had left and could not be sent, by their departure number.
    ///
    /// They leave again in this order, before the queue.
    unsent: BTreeMap<u64, Next<K, W>>,
    /// Number of unsent requests by key.
    by_key: HashMap<K, usize>,
    /// Total cost of the unsent requests.
    pub(super) costs: u64,
    /// Limit of an origin without a rate that has just recovered. `None`: no limit.
    ///
    /// Set only while requests wait.
    ramp: Option<Ramp>,
}

/// Upper bound of the requests at an origin that has just recovered: `permits`, plus one for each
/// [`RAMP_STEP`] since the end of the outage.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    /// End of the outage.
    since: Moment,
    /// Bound at the end of the outage, plus one for each request that has ended since.
    permits: usize,
}

impl Ramp {
    /// Returns the instant from which one more request may leave.
    fn opens_at(self, in_flight: usize) -> Moment {
        let missing = (in_flight + 1).saturating_sub(self.permits);
        let steps = u32::try_from(missing).unwrap_or(u32::MAX);
        self.since + RAMP_STEP.saturating_mul(steps)
    }
}

impl<K, W> Default for Outage<K, W> {
    fn default() -> Self {
        Self {
            is_out: false,
            unsent: BTreeMap::new(),
            by_key: HashMap::new(),
            costs: 0,
            ramp: None,
        }
    }
}

impl<K: Hash + Eq + Clone, W> Outage<K, W> {
    /// Returns the number of unsent requests.
    pub(super) fn len(&self) -> usize {
        self.unsent.len()
    }

    /// Returns whether there is no outage, and no unsent request is left.
    pub(super) fn is_over(&self) -> bool {
        !self.is_out && self.unsent.is_empty()
    }

    /// Returns whether the origin may get one more request, without waiting for a step of the ramp.
    pub(super) fn is_below_limit(&self, in_flight: usize) -> bool {
        self.ramp.is_none_or(|ramp| in_flight < ramp.permits)
    }

    /// Returns the instant from which the origin may get one more request.
    ///
    /// The Unix epoch: there is no ramp.
    pub(super) fn opens(&self, in_flight: usize) -> Moment {
        let opens = self.ramp.map(|ramp| ramp.opens_at(in_flight));
        opens.unwrap_or_default()
    }

    /// Removes the unsent request that leaves first.
    pub(super) fn take(&mut self) -> Option<(u64, Next<K, W>)> {
        let (number, unsent) = self.unsent.pop_first()?;
        self.uncount(&unsent);
        Some((number, unsent))
    }

    /// Removes the unsent request with this departure number.
    pub(super) fn leave(&mut self, number: u64) -> Option<W> {
        let unsent = self.unsent.remove(&number)?;
        self.uncount(&unsent);
        Some(unsent.waiter)
    }

    /// Subtracts a removed request from the counts.
    fn uncount(&mut self, unsent: &Next<K, W>) {
        self.costs -= u64::from(unsent.cost);
        if let Some(count) = self.by_key.get_mut(&unsent.key) {
            *count -= 1;
            if *count == 0 {
                self.by_key.remove(&unsent.key);
            }
        }
    }

    /// Removes and returns all unsent requests.
    pub(super) fn clear(&mut self) -> Vec<W> {
        (self.costs, self.ramp) = (0, None);
        self.by_key.clear();
        let unsent = std::mem::take(&mut self.unsent);
        unsent.into_values().map(|unsent| unsent.waiter).collect()
    }

    /// Records that a waiter was removed. Ends the ramp if it was the last one.
    ///
    /// `queue_is_empty`: the queue behind the unsent requests is empty.
    pub(super) fn note_removed(&mut self, queue_is_empty: bool) {
        if queue_is_empty && self.unsent.is_empty() {
            self.ramp = None;
        }
    }

    /// Records that a request is no longer at the origin.
    ///
    /// Two more requests may leave: one in its place, and one because the ramp grows.
    pub(super) fn answered(&mut self) {
        if let Some(ramp) = &mut self.ramp {
            ramp.permits += 1;
        }
    }
}

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// Starts an outage: no request leaves until its [end](Self::end_outage).
    pub fn begin_outage(&mut self) {
        self.outage.is_out = true;
        self.outage.ramp = None;
    }

    /// Ends an outage: waiters leave from `now` on.
    ///
    /// With a rate, they leave at that rate. Without a rate, the origin gets one more request than
    /// it has, then two for each request that ends, and one more each 100 ms, until no request
    /// waits.
    pub fn end_outage(&mut self, now: Moment) {
        if !std::mem::take(&mut self.outage.is_out) {
            return;
        }
        self.opens = self.opens.max(now);
        let is_paced = self.limits.rate.is_some();
        self.outage.ramp = (!is_paced && self.depth() > 0).then_some(Ramp {
            since: now,
            permits: self.in_flight + 1,
        });
    }

    /// Returns whether there is an outage.
    pub fn is_out(&self) -> bool {
        self.outage.is_out
    }

    /// Checks that one more request of `key` whose sending failed may wait again.
    ///
    /// The position that such a request had in the queue may have been taken since. So up to
    /// `max_queue` unsent requests may wait in addition to the queue. If keys share the gate, a key
    /// must have fewer unsent requests than are still free of `max_queue`. So one key alone gets
    /// half: each of its unsent requests raises its number and lowers the free one, and the two
    /// meet in the middle.
    ///
    /// # Errors
    ///
    /// Returns an error if the request may not wait.
    pub fn check_room_at_head(&self, key: &K, now: Moment) -> Result<(), Full> {
        let free = self.limits.max_queue.saturating_sub(self.outage.len());
        let of_key = self.outage.by_key.get(key).copied().unwrap_or_default();
        // With a queue by keys, keys share the gate.
        let is_shared = self.limits.queue.is_some();
        if free > 0 && (!is_shared || of_key < free) {
            return Ok(());
        }
        Err(self.full(&Share::of(key.clone()), now))
    }

    /// Puts back request `number`, which had left and could not be sent.
    ///
    /// Its permit is returned. The request leaves again before the queue, and before later
    /// departures. If it was the last departure, its slot is free again.
    pub fn put_back(
        &mut self,
        number: u64,
        key: K,
        cost: u32,
        now: Moment,
        waiter: W,
    ) -> GatePosition {
        let in_flight = self.in_flight.saturating_sub(1);
        self.change_permits(now, |gate| gate.in_flight = in_flight);
        // If this was the last departure, undo it: restore the `last_departed` before it.
        if let Some((_, before)) = self.before_last.take_if(|(last, _)| *last == number) {
            self.last_departed = before;
        }
        self.join_at_head(number, key, cost, now, waiter)
    }

    /// Adds a request before the queue, at the position of departure `number`.
    pub fn join_at_head(
        &mut self,
        number: u64,
        key: K,
        cost: u32,
        now: Moment,
        waiter: W,
    ) -> GatePosition {
        let waiter = Ready { since: now, waiter };
        let unsent = Next { key, cost, waiter };
        self.outage.costs += u64::from(cost);
        *self.outage.by_key.entry(unsent.key.clone()).or_default() += 1;
        self.outage.unsent.insert(number, unsent);
        GatePosition::AtHead(number)
    }
}
