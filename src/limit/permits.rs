//! Permits of one key: its running requests, and the waiters for permits.
//!
//! A *permit* is the right to run one request. `in_flight` is the number of requests of the key
//! that may run at the same time.

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use super::{Moment, Ticket};

/// Running requests of one key, and the waiters for permits.
///
/// This is nginx's `limit_conn`, but a request may wait instead of being rejected. A request runs
/// from the instant at which it [takes](Self::take) a permit until it [frees](Self::free) it.
///
/// Waiters with the same terms are in one *lane*, in the order in which they joined the key's
/// queue. Of the lanes for which a permit is free, the one whose first waiter joined first comes
/// first. A key has one lane for each `in_flight` and `max_wait` in use among the routes that share
/// its zone: nearly always one.
///
/// A request that needs permits of several keys waits in the lane of one of them, and is *asleep*
/// at the others. A sleeping request holds no permit, and gets none before it requests one again.
///
/// Takes no memory until the first request runs or waits.
#[derive(Debug)]
pub struct Permits<W>(Option<Box<State<W>>>);

#[derive(Debug)]
struct State<W> {
    running: HashSet<Ticket>,
    lanes: Vec<Lane<W>>,
    /// Instant at which each waiter joined, which is its key in the lane.
    joined: HashMap<Ticket, Moment>,
    asleep: HashSet<Ticket>,
}

/// Waiters with the same terms.
#[derive(Debug)]
struct Lane<W> {
    terms: Terms,
    waiters: BTreeMap<(Moment, Ticket), W>,
}

/// Conditions under which a waiter gets a permit or is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The waiter gets a permit once fewer requests of the key than this run.
    pub in_flight: NonZeroU32,
    /// The waiter is rejected once it has waited this long since it joined.
    pub max_wait: Option<Duration>,
}

impl<W> Default for Permits<W> {
    fn default() -> Self {
        Self(None)
    }
}

impl<W> Permits<W> {
    /// Returns the number of running requests.
    pub fn running(&self) -> usize {
        self.0.as_ref().map_or(0, |state| state.running.len())
    }

    /// Returns the number of waiters.
    pub fn depth(&self) -> usize {
        self.0.as_ref().map_or(0, |state| state.joined.len())
    }

    /// Returns the number of requests that wait for a permit of another key, and need one here too.
    pub fn asleep(&self) -> usize {
        self.0.as_ref().map_or(0, |state| state.asleep.len())
    }

    /// Counts a request that waits for a permit of another key.
    pub fn sleep(&mut self, ticket: Ticket) {
        self.state().asleep.insert(ticket);
    }

    /// Stops counting a sleeping request: it requests a permit now, or has left.
    pub fn wake(&mut self, ticket: Ticket) {
        if let Some(state) = &mut self.0 {
            state.asleep.remove(&ticket);
        }
        self.shrink();
    }

    /// Returns whether one more request with this `in_flight` may run.
    pub fn is_free(&self, in_flight: NonZeroU32) -> bool {
        self.running() < in_flight.get() as usize
    }

    /// Counts a request as running from now on, whether a permit was free or not.
    pub fn take(&mut self, ticket: Ticket) {
        self.state().running.insert(ticket);
    }

    /// Frees the permit of a request that has ended. Does nothing if the request did not run.
    ///
    /// A waiter may get the permit: [take](Self::take_next) it at once.
    pub fn free(&mut self, ticket: Ticket) {
        if let Some(state) = &mut self.0 {
            state.running.remove(&ticket);
        }
        self.shrink();
    }

    /// Makes a request wait for a permit. It joined the key's queue at `joined`.
    pub fn wait(&mut self, terms: Terms, ticket: Ticket, joined: Moment, waiter: W) {
        let state = self.state();
        state.joined.insert(ticket, joined);
        state.lane(terms).insert((joined, ticket), waiter);
    }

    /// Removes a waiter that disconnected or expired; `None` if it does not wait.
    pub fn leave(&mut self, ticket: Ticket) -> Option<W> {
        let state = self.0.as_mut()?;
        let entry = (state.joined.remove(&ticket)?, ticket);
        let mut lanes = state.lanes.iter_mut();
        let waiter = lanes.find_map(|lane| lane.waiters.remove(&entry));
        self.shrink();
        waiter
    }

    /// Removes and returns the next waiter for which a permit is free. It does not run yet.
    pub fn take_next(&mut self) -> Option<W> {
        let running = self.running();
        self.take_next_where(|in_flight| running < in_flight.get() as usize)
    }

    /// Removes and returns the next waiter whose `in_flight` satisfies `is_free`. It does not run
    /// yet.
    pub fn take_next_where(&mut self, is_free: impl Fn(NonZeroU32) -> bool) -> Option<W> {
        self.take_first(|lane| is_free(lane.terms.in_flight))
    }

    /// Returns the `in_flight` of each lane, and its number of waiters. A lane has equal [`Terms`].
    pub fn waiting(&self) -> impl Iterator<Item = (NonZeroU32, usize)> {
        self.lanes()
            .map(|lane| (lane.terms.in_flight, lane.waiters.len()))
    }

    /// Removes and returns a waiter that has waited for its `max_wait` at `now`.
    pub fn take_expired(&mut self, now: Moment) -> Option<W> {
        self.take_first(|lane| lane.expires().is_some_and(|expires| expires <= now))
    }

    /// Changes the `in_flight` of waiters: each pair is the old and the new value.
    ///
    /// Some may get a permit now: [take](Self::take_next) them at once.
    pub fn change(&mut self, changes: &[(NonZeroU32, NonZeroU32)]) {
        let Some(state) = &mut self.0 else {
            return;
        };
        for lane in std::mem::take(&mut state.lanes) {
            let in_flight = changed(lane.terms.in_flight, changes);
            let terms = Terms {
                in_flight,
                ..lane.terms
            };
            state.lane(terms).append(&mut { lane.waiters });
        }
    }

    /// Returns the next instant at which a waiter has waited for its `max_wait`.
    pub fn expires(&self) -> Option<Moment> {
        self.lanes().filter_map(Lane::expires).min()
    }

    /// Returns the first waiter of each lane. One of them is the oldest waiter.
    pub fn first_waiters(&self) -> impl Iterator<Item = &W> {
        self.lanes().filter_map(|lane| lane.waiters.values().next())
    }

    /// Removes and returns all waiters.
    pub fn reject_all(&mut self) -> Vec<W> {
        let Some(state) = &mut self.0 else {
            return Vec::new();
        };
        state.joined.clear();
        let lanes = std::mem::take(&mut state.lanes).into_iter();
        let waiters = lanes.flat_map(|lane| lane.waiters.into_values()).collect();
        self.shrink();
        waiters
    }

    /// Returns the same running requests, without the waiters.
    #[must_use]
    pub fn without_waiters(mut self) -> Self {
        self.reject_all();
        self
    }

    /// Removes and returns the waiter that joined first, of the lanes that `accepts` accepts.
    fn take_first(&mut self, accepts: impl Fn(&Lane<W>) -> bool) -> Option<W> {
        let state = self.0.as_mut()?;
        let lanes = state.lanes.iter_mut().filter(|lane| accepts(lane));
        let lane = lanes.min_by_key(|lane| lane.waiters.keys().next().copied())?;
        let ((_, ticket), waiter) = lane.waiters.pop_first()?;
        state.joined.remove(&ticket);
        self.shrink();
        Some(waiter)
    }

    fn lanes(&self) -> impl Iterator<Item = &Lane<W>> {
        self.0.iter().flat_map(|state| state.lanes.iter())
    }

    /// Returns the state, and allocates it if there is none yet.
    fn state(&mut self) -> &mut State<W> {
        self.0.get_or_insert_with(|| {
            Box::new(State {
                running: HashSet::new(),
                lanes: Vec::new(),
                joined: HashMap::new(),
                asleep: HashSet::new(),
            })
        })
    }

    /// Frees the memory of lanes without waiters, and all memory if nothing is left.
    fn shrink(&mut self) {
        let Some(state) = &mut self.0 else {
            return;
        };
        state.lanes.retain(|lane| !lane.waiters.is_empty());
        if state.running.is_empty() && state.joined.is_empty() && state.asleep.is_empty() {
            self.0 = None;
        }
    }
}

impl<W> State<W> {
    /// Returns the waiters with these terms.
    fn lane(&mut self, terms: Terms) -> &mut BTreeMap<(Moment, Ticket), W> {
        let found = self.lanes.iter().position(|lane| lane.terms == terms);
        let index = found.unwrap_or_else(|| {
            let waiters = BTreeMap::new();
            self.lanes.push(Lane { terms, waiters });
            self.lanes.len() - 1
        });
        &mut self.lanes[index].waiters
    }
}

impl<W> Lane<W> {
    /// Returns the instant at which the first waiter has waited for its `max_wait`.
    fn expires(&self) -> Option<Moment> {
        let ((joined, _), _) = self.waiters.first_key_value()?;
        Some(*joined + self.terms.max_wait?)
    }
}

/// Returns the new value of `in_flight`. Each change is a pair of the old and the new value.
pub fn changed(in_flight: NonZeroU32, changes: &[(NonZeroU32, NonZeroU32)]) -> NonZeroU32 {
    let change = changes.iter().find(|(before, _)| *before == in_flight);
    change.map_or(in_flight, |(_, after)| *after)
}
