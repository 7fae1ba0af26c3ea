//! Who leads, who follows, and what is kept: the requests of each kind, without a clock.
//!
//! Requests of one kind ask for the same thing. The first one leads: it goes to the origin.
//! Requests that come before its answer is complete follow. Followers that get no answer go on by
//! themselves, in the order in which they came. Each goes as soon as the one before it has joined
//! the queue of the origin.
//!
//! - If an answer is too large, its kind is not shared for a while.
//! - A failure, or an answer that may not be shared, may concern one request alone, so the next
//!   request leads. After two in a row, one request at a time probes whether an answer may be
//!   shared again, and no other request waits for it.
//!
//! `failed` has how a leader ends, or goes on, without an answer for the others.

mod failed;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use limit::Moment;
use lru::LruCache;

use super::followers::{Asker, Followers};
use super::terms::Windows;
use failed::Retry;
pub use failed::{Cause, Failed};

/// The duration for which requests of a kind go on by themselves.
///
/// It counts from the last answer that could not be shared, or from the last probe without one.
pub const UNSHAREABLE_FOR: Duration = Duration::from_secs(10);

/// The bytes that tell one kind from all others.
pub type KindKey = Arc<[u8]>;

/// Bytes that an entry takes beside those of its key and its answer.
const ENTRY: usize = 160;

/// Names the request that leads, and what it leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlightId {
    pub(super) key: KindKey,
    number: u64,
}

/// What a request of a kind does.
#[derive(Debug, PartialEq, Eq)]
pub enum Lookup<A> {
    /// It gets this answer.
    Kept(A),
    /// It gets this answer, which is stale. With a flight, the answer is fetched anew behind it.
    Stale(A, Option<FlightId>),
    /// It waits for the answer of another request. The number identifies it among the followers.
    Follow(KindKey, u64),
    /// It goes to the origin, and others wait for it.
    Lead(FlightId),
    /// It goes to the origin, and its answer is for itself alone.
    Alone,
}

/// A leader and its followers.
#[derive(Debug)]
struct Flight<W, S> {
    /// The key of this flight in the map.
    key: KindKey,
    number: u64,
    state: S,
    /// The client of the leader.
    client: u64,
    followers: Followers<W>,
    failures: u8,
    /// Whether it probes a kind that is not shared. Then no request waits for it.
    is_probe: bool,
}

enum Entry<A> {
    Kept {
        answer: A,
        /// `None`: the origin has answered since its last failure.
        retry: Option<Retry>,
        /// The last client that got an answer that may not be shared. A second client ends the entry.
        refused: Option<u64>,
        /// The instant at which it expires, also as a stale answer.
        until: Moment,
    },
    /// The last answer may not be shared, which may concern the client of its leader alone.
    Refused { client: u64, until: Moment },
    Unshareable {
        until: Moment,
        /// Whether one request at a time probes whether the kind may be shared again.
        is_probed: bool,
    },
}

/// All kinds that have requests now, or have an answer.
///
/// `A`: an answer; `W`: a waiter; `S`: the state that a leader and its followers share.
#[derive(Debug)]
pub struct Kinds<A, W, S> {
    flights: HashMap<KindKey, Flight<W, S>, RandomState>,
    entries: LruCache<KindKey, Entry<A>, RandomState>,
    next: u64,
    /// Bytes that the entries take beside their answers.
    bytes: usize,
    /// Number of entries that hold an answer.
    answers: usize,
    /// The instant at which the last of the answers that were kept expires.
    until: Moment,
}

impl<A, W, S> Default for Kinds<A, W, S> {
    fn default() -> Self {
        Self {
            flights: HashMap::default(),
            entries: LruCache::unbounded_with_hasher(RandomState::default()),
            next: 0,
            bytes: 0,
            answers: 0,
            until: Moment::default(),
        }
    }
}

impl<A: Clone, W, S: Clone + Default> Kinds<A, W, S> {
    /// Decides what a request of a kind does.
    ///
    /// `wait` makes its waiter if it has to follow. `windows`: until when an answer serves it.
    pub fn ask(
        &mut self,
        key: &[u8],
        now: Moment,
        asker: Asker,
        windows: impl Fn(&A) -> Windows,
        wait: impl FnOnce(&S) -> W,
    ) -> Lookup<A> {
        match self.entries.get_mut(key) {
            Some(Entry::Unshareable { until, is_probed }) if now < *until => {
                match self.flights.get(key).map(|flight| flight.is_probe) {
                    None if *is_probed && asker.may_lead => {
                        return Lookup::Lead(self.begin(key, asker.client, true));
                    }
                    None | Some(true) => return Lookup::Alone,
                    // Earlier requests still go on one behind the other.
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
                    let is_due = retry.as_mut().is_none_or(|it| it.is_due(asker.client, now));
                    let fetches = is_due && !self.flights.contains_key(key);
                    let refresh = fetches.then(|| self.begin(key, asker.client, false));
                    return Lookup::Stale(answer, refresh);
                }
            }
            Some(Entry::Unshareable { .. } | Entry::Refused { .. }) | None => {}
        }
        if let Some(flight) = self.flights.get_mut(key) {
            self.next += 1;
            let waiter = wait(&flight.state);
            flight.followers.push(self.next, waiter, asker);
            return Lookup::Follow(Arc::clone(&flight.key), self.next);
        }
        if asker.may_lead {
            Lookup::Lead(self.begin(key, asker.client, false))
        } else {
            Lookup::Alone
        }
    }

    fn begin(&mut self, key: &[u8], client: u64, is_probe: bool) -> FlightId {
        self.next += 1;
        let key = KindKey::from(key);
        let flight = Flight {
            key: Arc::clone(&key),
            number: self.next,
            state: S::default(),
            client,
            followers: Followers::default(),
            failures: 0,
            is_probe,
        };
        self.flights.insert(Arc::clone(&key), flight);
        FlightId {
            key,
            number: self.next,
        }
    }

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

    /// Completes the answer. Returns the waiters that get it, in the order in which they came.
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
            self.put(&id.key, kept);
        } else {
            self.forget(&id.key);
        }
        flight.map_or_else(Vec::new, |flight| flight.followers.into_waiters())
    }

    /// Records that the answer is too large, so the followers go on by themselves.
    ///
    /// The caller [releases](Self::release) them.
    pub fn unshareable(&mut self, id: &FlightId, now: Moment) {
        if self.flight(id).is_some() {
            self.mark(&id.key, now, false);
        }
    }

    fn mark(&mut self, key: &KindKey, now: Moment, is_probed: bool) {
        let until = now + UNSHAREABLE_FOR;
        self.put(key, Entry::Unshareable { until, is_probed });
    }

    /// Takes the next follower that goes on by itself. `None`: there is none left.
    pub fn release(&mut self, id: &FlightId) -> Option<W> {
        let flight = self.flight(id)?;
        let next = flight.followers.pop_first();
        if next.is_none() {
            self.flights.remove(&id.key);
        }
        next
    }

    /// One that followed leaves. Returns whether nobody follows any more.
    pub fn leave(&mut self, key: &[u8], follower: u64) -> bool {
        let Some(flight) = self.flights.get_mut(key) else {
            return false;
        };
        flight.followers.remove(follower) && flight.followers.is_empty()
    }

    /// Evicts the entry that was used least recently. Returns until when it served, as a stale answer
    /// at last: the beginning of time if it held no answer.
    ///
    /// `None`: there is no entry.
    pub fn evict(&mut self) -> Option<Moment> {
        let (key, entry) = self.entries.pop_lru()?;
        self.bytes -= key.len() + ENTRY;
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

    /// Returns the number of answers that are kept.
    pub fn answers(&self) -> usize {
        self.answers
    }

    /// Returns whether an answer may serve at `now`, also as a stale one.
    ///
    /// It may be the one that was to serve for the longest time, and was evicted.
    pub fn may_serve(&self, now: Moment) -> bool {
        self.answers > 0 && now < self.until
    }

    fn put(&mut self, key: &KindKey, entry: Entry<A>) {
        self.answers += usize::from(matches!(entry, Entry::Kept { .. }));
        self.forget(key);
        self.bytes += key.len() + ENTRY;
        self.entries.put(Arc::clone(key), entry);
    }

    fn forget(&mut self, key: &KindKey) {
        if let Some(before) = self.entries.pop(key) {
            self.bytes -= key.len() + ENTRY;
            self.answers -= usize::from(matches!(before, Entry::Kept { .. }));
        }
    }
}

#[cfg(test)]
mod histories;
