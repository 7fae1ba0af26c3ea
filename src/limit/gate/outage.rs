//! An outage of the origin: nothing leaves until it can be reached again.

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use super::{Full, Gate, GatePosition, Moment, Next, Ready, Share};

/// Time after which an origin without a pace that is just back gets one more request, whatever it answers.
///
/// Requests that wait for their clients, and tunnels, are not answered for long.
const RAMP_STEP: Duration = Duration::from_millis(100);

/// Whether the origin can be reached, and the requests that had left when it could not.
#[derive(Debug)]
pub(super) struct Outage<K, W> {
    is_out: bool,
    /// Requests that had left and could not be sent, by the number of their departure.
    ///
    /// They leave again in this order, before the queue.
    unsent: BTreeMap<u64, Next<K, W>>,
    /// Number of unsent requests by key.
    by_key: HashMap<K, usize>,
    /// What the unsent requests cost together.
    costs: u64,
    /// What an origin without a pace that is just back gets; `None`: no limit.
    ///
    /// There is a limit only while requests wait.
    ramp: Option<Ramp>,
}

/// Upper bound of the requests at an origin that is just back.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    since: Moment,
    /// The bound at first, and one more for each request that was answered since.
    permits: usize,
}

impl Ramp {
    /// The moment from which one more request may leave.
    fn has_permit_at(self, in_flight: usize) -> Moment {
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
    /// Number of unsent requests.
    pub(super) fn len(&self) -> usize {
        self.unsent.len()
    }

    pub(super) fn costs(&self) -> u64 {
        self.costs
    }

    /// Whether nothing of an outage keeps a new request from leaving at once.
    pub(super) fn is_over(&self) -> bool {
        !self.is_out && self.unsent.is_empty()
    }

    /// Returns whether the origin may get one more request now.
    pub(super) fn has_permit(&self, in_flight: usize) -> bool {
        self.ramp.is_none_or(|ramp| in_flight < ramp.permits)
    }

    /// The moment from which the origin may get one more request: the first of all if it always may.
    pub(super) fn opens(&self, in_flight: usize) -> Moment {
        let opens = self.ramp.map(|ramp| ramp.has_permit_at(in_flight));
        opens.unwrap_or_default()
    }

    /// Takes the unsent request that leaves first.
    pub(super) fn take(&mut self) -> Option<(u64, Next<K, W>)> {
        let (number, unsent) = self.unsent.pop_first()?;
        self.uncount(&unsent);
        Some((number, unsent))
    }

    pub(super) fn leave(&mut self, number: u64) -> Option<W> {
        let unsent = self.unsent.remove(&number)?;
        self.uncount(&unsent);
        Some(unsent.waiter)
    }

    fn uncount(&mut self, unsent: &Next<K, W>) {
        self.costs -= u64::from(unsent.cost);
        if let Some(count) = self.by_key.get_mut(&unsent.key) {
            *count -= 1;
            if *count == 0 {
                self.by_key.remove(&unsent.key);
            }
        }
    }

    pub(super) fn clear(&mut self) -> Vec<W> {
        (self.costs, self.ramp) = (0, None);
        self.by_key.clear();
        let unsent = std::mem::take(&mut self.unsent);
        unsent.into_values().map(|unsent| unsent.waiter).collect()
    }

    /// Notes that a waiter has left, and whether the queue behind the unsent requests is empty.
    pub(super) fn left(&mut self, queue_is_empty: bool) {
        if queue_is_empty && self.unsent.is_empty() {
            self.ramp = None;
        }
    }

    /// Notes that a request is no longer at the origin: two may take its place.
    pub(super) fn answered(&mut self) {
        if let Some(ramp) = &mut self.ramp {
            ramp.permits += 1;
        }
    }
}

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// Lets nothing leave until the [end of the outage](Self::end_outage).
    pub fn begin_outage(&mut self) {
        self.outage.is_out = true;
        self.outage.ramp = None;
    }

    /// The origin can be reached again: those who wait leave from `now` on.
    ///
    /// With a pace, they leave at that pace. Without one, the origin gets one more request than it
    /// has, then two for each one that it is done with, and one more each 100 ms, until none waits.
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

    /// Whether there is an outage.
    pub fn is_out(&self) -> bool {
        self.outage.is_out
    }

    /// Whether one more request of this key that could not be sent may wait again.
    ///
    /// They had a position in the queue before, which others may have taken since: so up to
    /// `max_queue` of them may wait beside those in the queue. Where keys share the gate, a key may have as many as are left
    /// of `max_queue`, so one key alone takes half of it.
    ///
    /// # Errors
    ///
    /// Returns an error if it may not.
    pub fn check_room_at_head(&self, key: &K, now: Moment) -> Result<(), Full> {
        let left = self.limits.max_queue.saturating_sub(self.outage.len());
        let of_key = self.outage.by_key.get(key).copied().unwrap_or_default();
        let is_shared = self.limits.queue.is_some();
        if left > 0 && (!is_shared || of_key < left) {
            return Ok(());
        }
        Err(self.full(&Share::of(key.clone()), now))
    }

    /// Takes back a request that had left as the `number`th and could not be sent.
    ///
    /// It gives its place back, and leaves again before the queue and before those that had left
    /// after it. Its slot counts for nothing if it was the last one.
    pub fn put_back(
        &mut self,
        number: u64,
        key: K,
        cost: u32,
        now: Moment,
        waiter: W,
    ) -> GatePosition {
        let was_full = !self.has_place();
        self.in_flight = self.in_flight.saturating_sub(1);
        self.note_free_place(was_full, now);
        if let Some((_, before)) = self.before.take_if(|(last, _)| *last == number) {
            self.last = before;
        }
        self.join_at_head(number, key, cost, now, waiter)
    }

    /// Adds a request that leaves before the queue, where one would that had left as the `number`th.
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
