#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use super::{Moment, Ticket};

/// The running requests of one key, and those that wait until fewer run.
///
/// This is nginx's `limit_conn`, but a request may wait instead of being refused. A request runs
/// from the moment it [takes](Self::take) a place until it [frees](Self::free) it.
///
/// Requests with the same terms wait in one *lane*, in the order in which they joined the key's
/// queue. Of the lanes with a free place, the one whose first waiter joined first comes first. A
/// key has one lane for each `in_flight` and `max_wait` in use among the routes that share its
/// zone: nearly always one.
///
/// A request that needs places of several keys waits in the lane of one of them, and is *asleep* at
/// the others. Where it is asleep it holds no place, and gets none before it asks again.
///
/// Takes no memory until the first request runs or waits.
#[derive(Debug)]
pub struct Places<W>(Option<Box<State<W>>>);

#[derive(Debug)]
struct State<W> {
    running: HashSet<Ticket>,
    lanes: Vec<Lane<W>>,
    /// Where each waiter is in its lane.
    joined: HashMap<Ticket, Moment>,
    asleep: HashSet<Ticket>,
}

/// The waiters with the same terms.
#[derive(Debug)]
struct Lane<W> {
    terms: Terms,
    waiters: BTreeMap<(Moment, Ticket), W>,
}

/// Until when a request waits for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// It leaves once fewer requests of the key than this run.
    pub in_flight: NonZeroU32,
    /// It is rejected once it has waited this long since it joined.
    pub max_wait: Option<Duration>,
}

impl<W> Default for Places<W> {
    fn default() -> Self {
        Self(None)
    }
}

impl<W> Places<W> {
    /// Number of running requests.
    pub fn running(&self) -> usize {
        self.0.as_ref().map_or(0, |state| state.running.len())
    }

    /// Number of requests that wait for a place.
    pub fn depth(&self) -> usize {
        self.0.as_ref().map_or(0, |state| state.joined.len())
    }

    /// Number of requests that wait for a place of another key, and need one here, too.
    pub fn asleep(&self) -> usize {
        self.0.as_ref().map_or(0, |state| state.asleep.len())
    }

    /// Counts a request that waits for a place of another key.
    pub fn sleep(&mut self, ticket: Ticket) {
        self.state().asleep.insert(ticket);
    }

    /// A request that was asleep asks for a place, or has left.
    pub fn wake(&mut self, ticket: Ticket) {
        if let Some(state) = &mut self.0 {
            state.asleep.remove(&ticket);
        }
        self.shrink();
    }

    /// Whether one more request may run where `in_flight` may.
    pub fn is_free(&self, in_flight: NonZeroU32) -> bool {
        self.running() < most(in_flight)
    }

    /// A request runs from now on, whether a place was free or not.
    pub fn take(&mut self, ticket: Ticket) {
        self.state().running.insert(ticket);
    }

    /// A request has ended. Does nothing if it did not run.
    ///
    /// A waiter may have a place now: [take](Self::take_next) it at once.
    pub fn free(&mut self, ticket: Ticket) {
        if let Some(state) = &mut self.0 {
            state.running.remove(&ticket);
        }
        self.shrink();
    }

    /// Makes a request wait for a place. It joined the key's queue at `joined`.
    pub fn wait(&mut self, terms: Terms, ticket: Ticket, joined: Moment, waiter: W) {
        let state = self.state();
        state.joined.insert(ticket, joined);
        state.lane(terms).insert((joined, ticket), waiter);
    }

    /// Removes a waiter that leaves before its turn; `None` if it does not wait.
    pub fn leave(&mut self, ticket: Ticket) -> Option<W> {
        let state = self.0.as_mut()?;
        let at = (state.joined.remove(&ticket)?, ticket);
        let mut lanes = state.lanes.iter_mut();
        let left = lanes.find_map(|lane| lane.waiters.remove(&at));
        self.shrink();
        left
    }

    /// Takes the next waiter for which a place is free. The waiter does not run yet.
    pub fn take_next(&mut self) -> Option<W> {
        let running = self.running();
        self.take_next_where(|in_flight| running < most(in_flight))
    }

    /// Takes the next waiter for whose `in_flight` a place is free. The waiter does not run yet.
    pub fn take_next_where(&mut self, is_free: impl Fn(NonZeroU32) -> bool) -> Option<W> {
        self.first(|lane| {
            let (at, _) = lane.waiters.first_key_value()?;
            is_free(lane.terms.in_flight).then_some(*at)
        })
    }

    /// The `in_flight` of each lane, and how many wait there.
    pub fn waiting(&self) -> impl Iterator<Item = (NonZeroU32, usize)> {
        self.lanes()
            .map(|lane| (lane.terms.in_flight, lane.waiters.len()))
    }

    /// Takes a waiter that has waited for its `max_wait` at `now`.
    pub fn take_expired(&mut self, now: Moment) -> Option<W> {
        self.first(|lane| {
            let at = lane.waiters.first_key_value()?.0;
            (lane.expires()? <= now).then_some(*at)
        })
    }

    /// Those who wait for the first number of each pair wait for the second from now on.
    ///
    /// Some may have a place now: [take](Self::take_next) them at once.
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

    /// When the next waiter has waited for its `max_wait`.
    pub fn expires(&self) -> Option<Moment> {
        self.lanes().filter_map(Lane::expires).min()
    }

    /// The first waiter of each lane. One of them has waited longest.
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

    /// Continues with the requests that ran here before, without those that waited.
    #[must_use]
    pub fn without_waiters(mut self) -> Self {
        self.reject_all();
        self
    }

    /// Removes the first of the waiters that `at` names, one of each lane at most.
    fn first(&mut self, at: impl Fn(&Lane<W>) -> Option<(Moment, Ticket)>) -> Option<W> {
        let state = self.0.as_mut()?;
        let found = state
            .lanes
            .iter_mut()
            .filter_map(|lane| Some((at(lane)?, lane)));
        let (at, lane) = found.min_by_key(|(at, _)| *at)?;
        let waiter = lane.waiters.remove(&at);
        state.joined.remove(&at.1);
        self.shrink();
        waiter
    }

    fn lanes(&self) -> impl Iterator<Item = &Lane<W>> {
        self.0.iter().flat_map(|state| state.lanes.iter())
    }

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

    /// Gives back the memory of lanes without waiters, and all if nothing is left.
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
    /// The waiters with these terms.
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
    /// When the first waiter, which joined first, has waited for its `max_wait`.
    fn expires(&self) -> Option<Moment> {
        let ((joined, _), _) = self.waiters.first_key_value()?;
        Some(*joined + self.terms.max_wait?)
    }
}

/// The second number of the pair that begins with this one, or else this one.
pub fn changed(in_flight: NonZeroU32, changes: &[(NonZeroU32, NonZeroU32)]) -> NonZeroU32 {
    let change = changes.iter().find(|(before, _)| *before == in_flight);
    change.map_or(in_flight, |(_, after)| *after)
}

fn most(in_flight: NonZeroU32) -> usize {
    usize::try_from(in_flight.get()).unwrap_or(usize::MAX)
}
