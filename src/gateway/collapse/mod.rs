//! Request collapsing: requests for the same resource share one response of the origin.
//!
//! All requests with the same key are of one *kind*. The first request of a kind *leads*: it goes
//! to the origin. Later requests *follow*: they wait for the leader's answer. A leader with its
//! followers is a *flight*. Followers without an answer are *released*: each goes to the origin for
//! itself. Complete answers may be kept for later requests; a kept answer that is no longer fresh
//! is *stale*.
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
use kinds::{Cause, FailureResult, FlightId, Kinds, Lookup};
use memory::{Memory, READERS_DIVISOR};

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
    /// Whether complete answers are kept. Not after [`SharedAnswers::retire`].
    keeps_answers: AtomicBool,
    /// Number of answers that were [evicted](SharedAnswers::evicted).
    evicted: AtomicU64,
    /// Hasher of the addresses of clients.
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
            keeps_answers: AtomicBool::new(true),
            evicted: AtomicU64::new(0),
            clients: RandomState::default(),
        })
    }

    /// Changes the maximum number of bytes of all answers.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
        self.keeps_answers.store(true, Ordering::Relaxed);
        self.make_room(0);
    }

    /// Drops all answers and keeps no new ones, because no route shares answers any more.
    ///
    /// Present followers still get their answers.
    pub fn retire(&self) {
        self.keeps_answers.store(false, Ordering::Relaxed);
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
    /// read them. A limit that was lowered counts as lack of memory.
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
    /// `client`: its address; `None` for a Unix socket. `may_lead`: whether the answer to this
    /// request may be shared with others.
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
        // Set if the request follows: the receiver of its result, and the flight.
        let mut followed = None;
        let mut kinds = self.lock();
        let windows = |answer: &Arc<KeptAnswer>| answer.0.windows(collapse);
        let found = kinds.look_up(key, now, requester, windows, |flight| {
            let (sender, result) = oneshot::channel();
            followed = Some((result, Arc::clone(flight)));
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
                let Some((result, flight)) = followed else {
                    return Lookup::Alone;
                };
                // Only a new follower notices that the leader's response has had no end for too
                // long. All followers are then released.
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

    /// Drops answers that do not fit any more; all answers if the table is retired.
    fn drop_excess(&self) {
        if self.keeps_answers.load(Ordering::Relaxed) {
            self.make_room(0);
        } else {
            self.forget_all();
        }
    }

    /// Releases the next follower: it goes to the origin for itself.
    fn release(self: &Arc<Self>, id: &FlightId) {
        let next = self.lock().release(id);
        if let Some(next) = next {
            let turn = ReleasedTurn::new(self, id);
            // If this follower has left, dropping the turn passes it to the next one.
            let _left = next.send(FollowResult::Alone(turn));
        }
    }

    /// Ends a leader without an answer for its followers.
    ///
    /// Returns the stale answer that the leader gets, if there is one.
    fn end_failed(
        self: &Arc<Self>,
        leader: &Leader,
        cause: Cause,
        now: Moment,
    ) -> Option<Arc<SharedAnswer>> {
        let windows = |answer: &Arc<KeptAnswer>| answer.0.windows(&leader.collapse);
        let failed = self.lock().end_failed(&leader.id, cause, windows, now);
        // The memory of the kind's entry may have grown.
        self.make_room(0);
        match failed {
            FailureResult::Stale(kept, followers) => return Some(send_stale(&kept, followers)),
            FailureResult::Next(next, id) => {
                leader.flight.restart();
                let promoted = leader.promote(id);
                // If this follower has left, dropping the leader makes the next follower lead.
                let _left = next.send(FollowResult::Lead(Box::new(promoted)));
            }
            FailureResult::Alone => self.release(&leader.id),
            FailureResult::Over => {}
        }
        None
    }

    /// Abandons a flight whose response has had no end for `limit`: releases its followers.
    ///
    /// Returns whether the flight is abandoned, now or since earlier.
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
        let is_same = |other: &Arc<Flight>| Arc::ptr_eq(other, flight);
        let abandoned = self.lock().abandon(key, is_same, now);
        self.make_room(0);
        if let Some(id) = &abandoned {
            flight.abandon();
            self.release(id);
        }
        flight.is_abandoned()
    }

    /// Makes room for `bytes` more. Returns whether they fit.
    ///
    /// While the memory is too full, cuts off an answer that only slow readers hold. If the other
    /// answers take more than three quarters, evicts the least recently used kept one instead.
    fn make_room(&self, bytes: usize) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let mut kinds = self.lock();
        loop {
            let all = self.memory.used() + kinds.bytes() + bytes;
            if all <= limit {
                return true;
            }
            let others = all.saturating_sub(self.memory.held());
            let others_fit = others <= limit - limit / READERS_DIVISOR;
            // Whether the dropped answer could still be used.
            let is_in_use = if others_fit && self.memory.cut_off() {
                true
            } else if let Some(until) = kinds.evict() {
                clock::now() < until
            } else {
                return false;
            };
            let evicted = u64::from(is_in_use);
            self.evicted.fetch_add(evicted, Ordering::Relaxed);
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
