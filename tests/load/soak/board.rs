//! Shared records of the soak test: faults, ends of requests, failures.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::load::soak::file::ROUTES;
use crate::support::now;

/// Shortest halt of the machine that is recorded.
pub const MIN_RECORDED_HALT: Duration = Duration::from_millis(100);

/// A fault that lasts for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trouble {
    /// Refuses connections, after breaking the open ones.
    Down,
    /// Breaks connections before, in the head of, or in the body of a response.
    Reset,
    /// Closes connections that are idle for a moment.
    CloseIdle,
    /// Answers late, and in small pieces.
    Slow,
    /// Leaves requests unanswered.
    Stall,
    /// Sends an invalid response, or more than the response.
    Garbage,
    /// Ends responses by closing the connection.
    Close,
    /// Answers 503, with or without Retry-After.
    Shed,
    /// The machine keeps a runnable thread waiting.
    ///
    /// Excuses a timeout only, but may explain other failures.
    Halt,
}

/// The result of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestOutcome {
    /// A complete and correct response with this status.
    Answered(u16),
    /// A complete and correct 503 of an origin.
    Shed,
    /// The origin broke its response off, and so did the gateway.
    CutByOrigin,
    LeftWaiting,
    LeftMidAnswer,
    /// The request was pipelined behind a response that ended the connection.
    BehindTheEnd,
}

impl RequestOutcome {
    /// Returns the status that the client received; `None` if it had disconnected before.
    pub fn status(self) -> Option<u16> {
        match self {
            Self::Answered(status) => Some(status),
            Self::Shed => Some(503),
            Self::CutByOrigin => Some(200),
            Self::LeftWaiting | Self::LeftMidAnswer | Self::BehindTheEnd => None,
        }
    }
}

/// End of a request.
#[derive(Clone, Debug)]
pub struct End {
    pub id: String,
    /// Index of its route in [`ROUTES`].
    pub route: usize,
    pub sent: Instant,
    pub at: Instant,
    pub fate: RequestOutcome,
}

/// Period in which one origin has one fault.
#[derive(Debug)]
struct Spell {
    trouble: Trouble,
    origin_index: usize,
    began: Instant,
    ended: Option<Instant>,
}

/// State shared by all threads of the soak.
#[derive(Debug, Default)]
pub struct Board {
    troubles: Mutex<Vec<Spell>>,
    /// Number of responses that origins have begun, and the unfinished ones.
    begun: AtomicU64,
    unfinished: Mutex<HashSet<u64>>,
    /// Number of arrivals of each POST at origins.
    posts: Mutex<HashMap<String, u32>>,
    ends: Mutex<Vec<End>>,
    /// Events that should not have happened.
    failures: Mutex<Vec<String>>,
}

/// Locks a mutex. A thread that failed is reported separately.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    pub fn trouble_begins(&self, trouble: Trouble, origin_index: usize) {
        locked(&self.troubles).push(Spell {
            trouble,
            origin_index,
            began: now(),
            ended: None,
        });
    }

    /// Records that a thread was kept waiting for this long.
    pub fn halted_for(&self, span: Duration) {
        let ended = now();
        locked(&self.troubles).push(Spell {
            trouble: Trouble::Halt,
            origin_index: 0,
            began: ended.checked_sub(span).unwrap_or(ended),
            ended: Some(ended),
        });
    }

    pub fn trouble_ends(&self, trouble: Trouble, origin_index: usize) {
        let mut troubles = locked(&self.troubles);
        for spell in troubles
            .iter_mut()
            .filter(|spell| (spell.trouble, spell.origin_index) == (trouble, origin_index))
        {
            spell.ended.get_or_insert(now());
        }
    }

    /// Returns whether any of these faults was active between two instants.
    fn any_of(&self, expected: &[Trouble], from: Instant, to: Instant) -> bool {
        let was_active =
            |spell: &Spell| spell.began <= to && spell.ended.is_none_or(|end| end >= from);
        locked(&self.troubles)
            .iter()
            .any(|spell| expected.contains(&spell.trouble) && was_active(spell))
    }

    /// Returns whether servers may have been out between two instants.
    pub fn servers_out(&self, from: Instant, to: Instant) -> bool {
        use Trouble::{CloseIdle, Down, Garbage, Reset, Stall};
        /// `fail_timeout` of the file, and as long again for requests in flight.
        const OUT: Duration = Duration::from_secs(2);
        let before = from.checked_sub(OUT).unwrap_or(from);
        self.any_of(&[Down, Reset, Garbage, Stall, CloseIdle], before, to)
    }

    /// Returns whether an origin may have exceeded `response_timeout` between two instants.
    ///
    /// An origin runs on the same machine, so it is late when the machine halts.
    pub fn may_time_out(&self, from: Instant, to: Instant) -> bool {
        /// A third of `response_timeout`. A slow origin takes nearly another third.
        const LONG: Duration = Duration::from_millis(500);
        let halted = |spell: &Spell| {
            let end = spell.ended.unwrap_or(to).min(to);
            end.saturating_duration_since(spell.began.max(from))
        };
        let troubles = locked(&self.troubles);
        let halts = troubles
            .iter()
            .filter(|spell| spell.trouble == Trouble::Halt);
        let long = halts.map(halted).sum::<Duration>() >= LONG;
        drop(troubles);
        long || self.any_of(&[Trouble::Stall], from, to)
    }

    /// Returns the number of a response that an origin begins.
    ///
    /// A retried request has several responses. The abandoned one may begin, and be broken off,
    /// after the other was complete.
    pub fn answer_begins(&self) -> u64 {
        let nth = self.begun.fetch_add(1, Ordering::Relaxed);
        locked(&self.unfinished).insert(nth);
        nth
    }

    pub fn answer_ends(&self, nth: u64) {
        locked(&self.unfinished).remove(&nth);
    }

    /// Returns whether the origin has sent the complete response.
    ///
    /// The gateway may have forwarded its end before the origin recorded it.
    pub fn is_whole(&self, nth: u64) -> bool {
        let deadline = now() + Duration::from_secs(2);
        while self.was_cut(nth) {
            if now() > deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Returns whether the origin did not send the end of the response.
    pub fn was_cut(&self, nth: u64) -> bool {
        locked(&self.unfinished).contains(&nth)
    }

    pub fn saw_post(&self, id: &str) {
        let mut posts = locked(&self.posts);
        let times = posts.entry(id.to_owned()).or_default();
        *times += 1;
        let times = *times;
        drop(posts);
        if times > 1 {
            self.fail(format!("the origins saw the POST {id} {times} times"));
        }
    }

    pub fn has_seen_post(&self, id: &str) -> bool {
        locked(&self.posts).contains_key(id)
    }

    pub fn ended(&self, end: End) {
        locked(&self.ends).push(end);
    }

    pub fn fail(&self, what: String) {
        self.failed_since(now(), what);
    }

    /// Records a failure, with the faults around the request that was sent then.
    pub fn failed_since(&self, sent: Instant, mut what: String) {
        let from = sent.checked_sub(Duration::from_secs(3)).unwrap_or(sent);
        let troubles = locked(&self.troubles);
        let lately = |spell: &&Spell| spell.ended.is_none_or(|end| end >= from);
        for Spell {
            trouble,
            origin_index,
            ..
        } in troubles.iter().filter(lately)
        {
            what += &format!("; {trouble:?} at {origin_index}");
        }
        drop(troubles);
        locked(&self.failures).push(what);
    }

    pub fn has_failed(&self) -> bool {
        !locked(&self.failures).is_empty()
    }

    /// Returns the first failures, and their number.
    pub fn failures(&self) -> Option<String> {
        let failures = locked(&self.failures);
        let first = failures[..failures.len().min(20)].join("\n  ");
        (!first.is_empty()).then(|| format!("{} failures:\n  {first}", failures.len()))
    }

    pub fn fates(&self) -> BTreeMap<RequestOutcome, i64> {
        let mut fates = BTreeMap::new();
        for end in locked(&self.ends).iter() {
            *fates.entry(end.fate).or_default() += 1;
        }
        fates
    }

    pub fn ends(&self) -> Vec<End> {
        locked(&self.ends).clone()
    }

    /// Returns whether the gateway may answer so, to a request of `ROUTES[route]` sent at `sent`.
    pub fn allows(&self, status: u16, route: usize, is_post: bool, sent: Instant) -> bool {
        use Trouble::{CloseIdle, Down, Garbage, Reset};
        let had = |troubles: &[Trouble]| self.any_of(troubles, sent, now());
        match status {
            // 503 and 504 are checked at the end, by the access log and the halts of the machine.
            200 | 503 | 504 => true,
            status if status == ROUTES[route].reject_status => true,
            // A POST that was sent as the origin closed its connection is not retryable.
            502 if is_post && had(&[CloseIdle]) => true,
            502 => had(&[Down, Reset, Garbage]),
            _ => false,
        }
    }

    /// Returns whether an origin may have answered 503 to a request that was sent at `sent`.
    pub fn may_shed(&self, sent: Instant) -> bool {
        self.any_of(&[Trouble::Shed], sent, now())
    }
}
