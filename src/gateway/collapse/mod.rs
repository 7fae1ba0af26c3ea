//! Request collapsing: requests for the same resource share one response of the origin.
//!
//! All requests with the same key are of one *kind*. The first request of a kind *leads*: it goes
//! to the origin. Later requests *follow*: they wait for its answer. A leader with its followers is
//! a *flight*. Complete answers may be kept for later requests.
//!
//! | module | content |
//! |---|---|
//! | `kinds` | leaders, followers and kept answers, without a clock |
//! | `terms`, `directives` | rules of a shared cache for an answer (RFC 9111) |
//! | `date` | dates of HTTP |
//! | `answer` | a complete answer |
//! | `memory` | memory of all answers, and bodies that slow readers can lose |
//! | `present` | the part of an answer that one request gets: all, a range, or 304 |
//! | `flight`, `leader`, `follower` | a request that others wait for, and its two sides |
//! | `followers` | the queue of followers |
//! | `report` | samples and metrics |

mod answer;
mod date;
mod directives;
mod flight;
mod follower;
mod followers;
mod kinds;
mod leader;
mod memory;
mod present;
pub(crate) mod report;
mod terms;

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::{Collapse, client_network};
use foldhash::fast::RandomState;
use limit::Moment;
use tokio::sync::oneshot;

use crate::time::clock;
use answer::KeptAnswer;
use flight::Flight;
use followers::Requester;
use kinds::{Cause, Failed, FlightId, Kinds, Lookup};
use memory::{Memory, READERS_PART};

pub use answer::{AnswerFields, AnswerHead, SharedAnswer};
pub(crate) use date::parse_date;
pub use follower::{FollowResult, Follower, ReleasedTurn};
pub use leader::{Gathered, Leader};
pub use memory::AnswerBody;
pub use present::{Preconditions, Presented};
pub(crate) use terms::{ACCEL_EXPIRES, is_stream};
pub use terms::{Head, Terms, Verdict, Windows};

/// Answers of all routes, and the requests that wait for them.
pub struct SharedAnswers {
    kinds: Mutex<KindTable>,
    memory: Arc<Memory>,
    /// Maximum number of bytes of all answers.
    limit: AtomicUsize,
    /// Whether complete answers are kept: see [`SharedAnswers::retire`].
    keeps: AtomicBool,
    /// See [`SharedAnswers::evicted`].
    evicted: AtomicU64,
    /// Hashes the addresses of clients.
    clients: RandomState,
}

/// Table of all kinds, with the types of the gateway.
type KindTable = Kinds<Arc<KeptAnswer>, oneshot::Sender<FollowResult>, Arc<Flight>>;

/// Result of a lookup, with the types of the gateway.
pub type CollapseLookup = Lookup<Arc<SharedAnswer>, Leader, Follower>;

/// Numbers of the kept answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Number of answers that new requests can get.
    pub answers: usize,
    /// Bytes of all answers, including the ones that only slow readers hold.
    pub bytes: usize,
}

impl SharedAnswers {
    /// Creates an empty table. `limit`: maximum number of bytes of all answers.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            kinds: Mutex::default(),
            memory: Arc::default(),
            limit: AtomicUsize::new(limit),
            keeps: AtomicBool::new(true),
            evicted: AtomicU64::new(0),
            clients: RandomState::default(),
        })
    }

    /// Changes the maximum number of bytes of all answers.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
        self.keeps.store(true, Ordering::Relaxed);
        self.forget(0);
    }

    /// Drops all answers and keeps no new ones, because no route shares answers any more.
    ///
    /// Present followers still get their answers.
    pub fn retire(&self) {
        self.keeps.store(false, Ordering::Relaxed);
        self.forget_all();
    }

    /// Drops all kept answers.
    fn forget_all(&self) {
        let mut kinds = self.lock();
        while kinds.evict().is_some() {}
    }

    /// Returns the number of answers that were dropped too early, for lack of memory.
    ///
    /// Counts kept answers that could still be used, and bodies that were cut off while clients
    /// read them.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Returns the numbers of the kept answers.
    pub fn kept(&self) -> Kept {
        let kinds = self.lock();
        Kept {
            answers: kinds.answers(),
            bytes: self.memory.used() + kinds.bytes(),
        }
    }

    /// Returns whether a kept answer may be used at `now`, also as a stale one.
    pub fn may_serve(&self, now: Moment) -> bool {
        self.lock().may_serve(now)
    }

    /// Decides how a request proceeds. `key`: the key of its kind.
    ///
    /// `may_lead`: whether the answer to this request may be shared with others.
    pub fn look_up(
        self: &Arc<Self>,
        key: &[u8],
        collapse: &Arc<Collapse>,
        client: Option<IpAddr>,
        may_lead: bool,
        now: Moment,
    ) -> CollapseLookup {
        let client = self.clients.hash_one(client.map(client_network));
        let requester = Requester { client, may_lead };
        let mut waits = None;
        let mut kinds = self.lock();
        let windows = |answer: &Arc<KeptAnswer>| answer.0.windows(collapse);
        let found = kinds.look_up(key, now, requester, windows, |flight| {
            let (sender, result) = oneshot::channel();
            waits = Some((result, Arc::clone(flight)));
            sender
        });
        let mut leader = |id: FlightId| {
            let flight = kinds.state(&id).unwrap_or_default();
            Leader::new(self, id, flight, collapse)
        };
        match found {
            Lookup::Kept(answer) => Lookup::Kept(Arc::clone(&answer.0)),
            Lookup::Stale(answer, id) => Lookup::Stale(Arc::clone(&answer.0), id.map(leader)),
            Lookup::Lead(id) => Lookup::Lead(leader(id)),
            Lookup::Follow((key, number)) => {
                drop(kinds);
                let Some((result, flight)) = waits else {
                    return Lookup::Alone;
                };
                self.abandon(&key, &flight, collapse.follow_timeout, now);
                Lookup::Follow(Follower {
                    shared: Arc::clone(self),
                    key,
                    number,
                    result,
                    flight,
                    has_result: false,
                })
            }
            Lookup::Alone => Lookup::Alone,
        }
    }

    /// Sends a complete answer to the followers, and keeps it unless the table is retired.
    fn complete(&self, id: &FlightId, answer: &Arc<SharedAnswer>, windows: &Windows, now: Moment) {
        let kept = Arc::new(KeptAnswer(Arc::clone(answer)));
        let followers = self.lock().complete(id, kept, windows, now);
        send(followers, || FollowResult::Answer(Arc::clone(answer)));
        if self.keeps.load(Ordering::Relaxed) {
            self.make_room(0);
        } else {
            self.forget_all();
        }
    }

    /// Releases the followers of an answer that is too large to share.
    fn unshareable(self: &Arc<Self>, id: &FlightId, now: Moment) {
        self.lock().unshareable(id, now);
        self.make_room(0);
        self.release(id);
    }

    /// Releases the next follower: it goes to the origin for itself.
    fn release(self: &Arc<Self>, id: &FlightId) {
        let next = self.lock().release(id);
        if let Some(next) = next {
            let release = ReleasedTurn::new(self, id);
            // If this follower has left, dropping the release passes the turn to the next one.
            let _left = next.send(FollowResult::Alone(release));
        }
    }

    /// Ends a leader without an answer for its followers. Returns the stale answer it gets, if any.
    fn failed(
        self: &Arc<Self>,
        leader: &Leader,
        cause: Cause,
        now: Moment,
    ) -> Option<Arc<SharedAnswer>> {
        let windows = |answer: &Arc<KeptAnswer>| answer.0.windows(&leader.collapse);
        let failed = self.lock().failed(&leader.id, cause, windows, now);
        // A new entry may have been added.
        self.make_room(0);
        match failed {
            Failed::Stale(kept, followers) => return Some(send_stale(&kept, followers)),
            Failed::Next(next, id) => {
                leader.flight.restart();
                let promoted = leader.next(id);
                // If this follower has left, dropping the leader makes the next follower lead.
                let _left = next.send(FollowResult::Lead(Box::new(promoted)));
            }
            Failed::Alone => self.release(&leader.id),
            Failed::Over => {}
        }
        None
    }

    /// Abandons a flight whose response has had no end for `limit`, and releases its followers.
    ///
    /// Returns whether the flight is abandoned.
    fn abandon(
        self: &Arc<Self>,
        key: &[u8],
        flight: &Arc<Flight>,
        limit: Duration,
        now: Moment,
    ) -> bool {
        if !flight.is_endless(limit, now) {
            return false;
        }
        let is_it = |it: &Arc<Flight>| Arc::ptr_eq(it, flight);
        let abandoned = self.lock().abandon(key, is_it, now);
        self.make_room(0);
        if let Some(id) = &abandoned {
            flight.abandon();
            self.release(id);
        }
        flight.is_abandoned()
    }

    /// Returns the stale answer to use while the origin cannot be reached.
    ///
    /// The followers get it, too.
    fn stand_in(&self, leader: &Leader, goes_on: bool, now: Moment) -> Option<Arc<SharedAnswer>> {
        let windows = |answer: &Arc<KeptAnswer>| answer.0.windows(&leader.collapse);
        let (kept, followers) = self.lock().stand_in(&leader.id, goes_on, windows, now)?;
        Some(send_stale(&kept, followers))
    }

    /// Makes room for `bytes` more. Returns whether they fit. Counts the evictions.
    fn make_room(&self, bytes: usize) -> bool {
        let (fits, evicted) = self.forget(bytes);
        self.evicted.fetch_add(evicted, Ordering::Relaxed);
        fits
    }

    /// Makes room for `bytes` more. Returns whether they fit, and the number of early evictions.
    ///
    /// While the memory is too full, the group that exceeds its part loses an answer: either the
    /// answers that are kept, or those held only by readers.
    fn forget(&self, bytes: usize) -> (bool, u64) {
        let limit = self.limit.load(Ordering::Relaxed);
        let mut kinds = self.lock();
        let mut evicted = 0;
        loop {
            let all = self.memory.used() + kinds.bytes() + bytes;
            if all <= limit {
                return (true, evicted);
            }
            let others = all.saturating_sub(self.memory.held());
            if others <= limit - limit / READERS_PART && self.memory.cut_off() {
                evicted += 1;
                continue;
            }
            let Some(until) = kinds.evict() else {
                return (false, evicted);
            };
            evicted += u64::from(clock::now() < until);
        }
    }

    fn lock(&self) -> MutexGuard<'_, KindTable> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a result to each of the followers.
fn send(followers: Vec<oneshot::Sender<FollowResult>>, result: impl Fn() -> FollowResult) {
    for follower in followers {
        // A disconnected follower needs no answer.
        let _disconnected = follower.send(result());
    }
}

/// Sends a stale answer to the followers, and returns it.
fn send_stale(
    kept: &KeptAnswer,
    followers: Vec<oneshot::Sender<FollowResult>>,
) -> Arc<SharedAnswer> {
    send(followers, || FollowResult::Stale(Arc::clone(&kept.0)));
    Arc::clone(&kept.0)
}

#[cfg(test)]
mod tests;
