//! Leaders, followers and kept answers of each kind of request. Has no clock.
//!
//! Requests of one kind are for the same resource. The first one *leads*: it goes to the origin.
//! Requests that arrive before the leader's answer is complete *follow*. A leader with its
//! followers is a *flight*. If the followers get no answer, they are *released*: each goes to the
//! origin for itself, in order of arrival. A follower is released as soon as the one before it has
//! joined the origin's queue.
//!
//! - If an answer is too large, its kind is not shared for a while.
//! - A failure, or an answer that may not be shared, may concern one request only. So the next
//!   request leads. After two of these in a row, one request at a time *probes* whether an answer
//!   may be shared again, and no other request waits for it.
//!
//! `without_answer` handles leaders without an answer for their followers.

mod without_answer;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use limit::Moment;
use lru::LruCache;

use super::followers::{Followers, Requester};
use super::terms::Windows;
use without_answer::Retry;
pub use without_answer::{Cause, FailureResult};

/// Time for which requests of a kind are not shared.
///
/// It counts from the last answer that could not be shared, or from the last failed probe.
pub const UNSHAREABLE_FOR: Duration = Duration::from_secs(10);

/// Key of a kind: bytes that distinguish it from all others.
pub type KindKey = Arc<[u8]>;

/// Bytes of memory that an entry takes beside its key and its answer.
const ENTRY_OVERHEAD: usize = 160;

/// Identifier of a leader and its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlightId {
    pub(super) key: KindKey,
    number: u64,
}

/// Result of a lookup: how a request of a kind proceeds.
///
/// `A`: an answer. `L` identifies a leader, `F` a follower.
#[derive(Debug, PartialEq, Eq)]
pub enum Lookup<A, L = FlightId, F = (KindKey, u64)> {
    /// The request gets this answer.
    Kept(A),
    /// The request gets this stale answer. With a leader, the caller must refresh the answer.
    Stale(A, Option<L>),
    /// The request waits for its leader.
    Follow(F),
    /// The request goes to the origin, and others wait for it.
    Lead(L),
    /// The request goes to the origin, and its answer is not shared.
    Alone,
}

/// Leader with its followers.
struct Flight<W, S> {
    /// Key of this flight in the map.
    key: KindKey,
    number: u64,
    state: S,
    /// Hash of the leader's client.
    client: u64,
    followers: Followers<W>,
    /// Number of leaders in a row without an answer for the followers.
    failures: u8,
    /// Whether the leader probes whether the kind may be shared again. Then no request follows it.
    is_probe: bool,
}

/// State that is remembered of a kind, whether or not it has requests in flight.
enum Entry<A> {
    Kept {
        answer: A,
        /// Next attempt after a failure; `None` if the origin has not failed since it answered.
        retry: Option<Retry>,
        /// Client that last got an answer of its own. A second such client ends the entry.
        refused: Option<u64>,
        /// Instant at which the answer expires, also as a stale one.
        until: Moment,
    },
    /// The last answer may not be shared. This may concern the client of its leader only.
    Refused { client: u64, until: Moment },
    /// The kind is not shared until then.
    Unshareable {
        until: Moment,
        /// Whether one request at a time probes whether the kind may be shared again.
        is_probed: bool,
    },
}

/// All kinds that have requests in flight or an entry.
///
/// `A`: an answer; `W`: a waiter; `S`: the state that a leader and its followers share.
pub struct Kinds<A, W, S> {
    flights: HashMap<KindKey, Flight<W, S>, RandomState>,
    entries: LruCache<KindKey, Entry<A>, RandomState>,
    /// Number of the leader or follower that was numbered last. Numbers only increase.
    last_number: u64,
    /// Bytes that the entries take beside their answers.
    bytes: usize,
    /// Number of entries that hold an answer.
    answers: usize,
    /// Instant at which the last of all answers kept so far expires.
    until: Moment,
}

impl<A, W, S> Default for Kinds<A, W, S> {
    fn default() -> Self {
        Self {
            flights: HashMap::default(),
            entries: LruCache::unbounded_with_hasher(RandomState::default()),
            last_number: 0,
            bytes: 0,
            answers: 0,
            until: Moment::default(),
        }
    }
}

impl<A: Clone, W, S: Clone + Default> Kinds<A, W, S> {
    /// Decides how a request of a kind proceeds.
    ///
    /// `wait`: creates its waiter if the request has to follow. `windows`: returns the instants
    /// until which an answer may be used.
    pub fn look_up(
        &mut self,
        key: &[u8],
        now: Moment,
        requester: Requester,
        windows: impl Fn(&A) -> Windows,
        wait: impl FnOnce(&S) -> W,
    ) -> Lookup<A> {
        match self.entries.get_mut(key) {
            Some(Entry::Unshareable { until, is_probed }) if now < *until => {
                match self.flights.get(key).map(|flight| flight.is_probe) {
                    None if *is_probed && requester.may_lead => {
                        return Lookup::Lead(self.begin_flight(key, requester.client, true));
                    }
                    None | Some(true) => return Lookup::Alone,
                    // Earlier requests are still being released, one after the other: follow them.
                    Some(false) => {}
                }
            }
            Some(Entry::Kept { answer, retry, .. }) => {
                let windows = windows(answer);
                if now < windows.fresh {
                    return Lookup::Kept(answer.clone());
                }
                let is_failing = retry.is_some() && now < windows.error;
                if now < windows.revalidate || is_failing {
                    let answer = answer.clone();
                    let retry = retry.as_mut();
                    let is_due = retry.is_none_or(|it| it.check_due(requester.client, now));
                    let fetches = is_due && !self.flights.contains_key(key);
                    let refresh = fetches.then(|| self.begin_flight(key, requester.client, false));
                    return Lookup::Stale(answer, refresh);
                }
            }
            Some(Entry::Unshareable { .. } | Entry::Refused { .. }) | None => {}
        }
        if let Some(flight) = self.flights.get_mut(key) {
            self.last_number += 1;
            let waiter = wait(&flight.state);
            let number = self.last_number;
            flight.followers.push(number, waiter, requester);
            return Lookup::Follow((Arc::clone(&flight.key), number));
        }
        if requester.may_lead {
            Lookup::Lead(self.begin_flight(key, requester.client, false))
        } else {
            Lookup::Alone
        }
    }

    /// Adds a flight for a new leader. Returns the leader's id.
    fn begin_flight(&mut self, key: &[u8], client: u64, is_probe: bool) -> FlightId {
        self.last_number += 1;
        let key = KindKey::from(key);
        let flight = Flight {
            key: Arc::clone(&key),
            number: self.last_number,
            state: S::default(),
            client,
            followers: Followers::default(),
            failures: 0,
            is_probe,
        };
        self.flights.insert(Arc::clone(&key), flight);
        FlightId {
            key,
            number: self.last_number,
        }
    }

    /// Returns the flight of a leader; `None` if the leader has ended or was replaced.
    fn flight(&mut self, id: &FlightId) -> Option<&mut Flight<W, S>> {
        let flight = self.flights.get_mut(&id.key);
        flight.filter(|flight| flight.number == id.number)
    }

    /// Returns the state that a leader and its followers share.
    pub fn state(&mut self, id: &FlightId) -> Option<S> {
        self.flight(id).map(|flight| flight.state.clone())
    }

    /// Returns whether other requests wait for this leader.
    pub fn is_followed(&mut self, id: &FlightId) -> bool {
        self.flight(id)
            .is_some_and(|flight| !flight.followers.is_empty())
    }

    /// Completes the answer. Returns the waiters that get it, in order of arrival.
    ///
    /// The answer is kept if it can serve later requests.
    pub fn complete(&mut self, id: &FlightId, answer: A, windows: &Windows, now: Moment) -> Vec<W> {
        if self.flight(id).is_none() {
            return Vec::new();
        }
        let flight = self.flights.remove(&id.key);
        if now < windows.end() {
            self.until = self.until.max(windows.end());
            let kept = Entry::Kept {
                answer,
                retry: None,
                refused: None,
                until: windows.end(),
            };
            self.set_entry(&id.key, kept);
        } else {
            self.remove_entry(&id.key);
        }
        flight.map_or_else(Vec::new, |flight| flight.followers.into_waiters())
    }

    /// Records that the answer is too large to share.
    ///
    /// The caller must [release](Self::release) the followers, which go to the origin for
    /// themselves.
    pub fn end_too_large(&mut self, id: &FlightId, now: Moment) {
        if self.flight(id).is_some() {
            self.mark_unshareable(&id.key, now, false);
        }
    }

    /// Records that a kind is not shared for [`UNSHAREABLE_FOR`].
    fn mark_unshareable(&mut self, key: &KindKey, now: Moment, is_probed: bool) {
        let until = now + UNSHAREABLE_FOR;
        self.set_entry(key, Entry::Unshareable { until, is_probed });
    }

    /// Removes and returns the next follower to release. Without one, ends the flight.
    pub fn release(&mut self, id: &FlightId) -> Option<W> {
        let flight = self.flight(id)?;
        let next = flight.followers.pop_first();
        if next.is_none() {
            self.flights.remove(&id.key);
        }
        next
    }

    /// Removes a follower that leaves. Returns whether it was the last one.
    pub fn leave(&mut self, key: &[u8], follower: u64) -> bool {
        let Some(flight) = self.flights.get_mut(key) else {
            return false;
        };
        flight.followers.remove(follower) && flight.followers.is_empty()
    }

    /// Evicts the entry used least recently.
    ///
    /// Returns the instant until which its answer could be used, also as a stale one; zero if the
    /// entry held no answer. Returns `None` if there is no entry.
    pub fn evict(&mut self) -> Option<Moment> {
        let (key, entry) = self.entries.pop_lru()?;
        self.bytes -= key.len() + ENTRY_OVERHEAD;
        let Entry::Kept { until, .. } = entry else {
            return Some(Moment::default());
        };
        self.answers -= 1;
        Some(until)
    }

    /// Returns the bytes that the entries take beside their answers.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of kept answers.
    pub fn answers(&self) -> usize {
        self.answers
    }

    /// Returns whether a kept answer may be used at `now`, also as a stale one.
    ///
    /// May return true although the answer with the longest life was evicted.
    pub fn may_serve(&self, now: Moment) -> bool {
        self.answers > 0 && now < self.until
    }

    /// Sets the entry of a kind, and updates the counts.
    fn set_entry(&mut self, key: &KindKey, entry: Entry<A>) {
        self.answers += usize::from(matches!(entry, Entry::Kept { .. }));
        self.remove_entry(key);
        self.bytes += key.len() + ENTRY_OVERHEAD;
        self.entries.put(Arc::clone(key), entry);
    }

    /// Removes the entry of a kind, and updates the counts.
    fn remove_entry(&mut self, key: &KindKey) {
        if let Some(before) = self.entries.pop(key) {
            self.bytes -= key.len() + ENTRY_OVERHEAD;
            self.answers -= usize::from(matches!(before, Entry::Kept { .. }));
        }
    }
}

#[cfg(test)]
mod histories;
