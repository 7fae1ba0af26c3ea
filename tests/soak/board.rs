use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::now;

/// What may be wrong for a while, at an origin or in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trouble {
    /// Refuses connections, after it has broken those that were open.
    Down,
    /// Breaks connections before, in the head of, or in the body of an answer.
    Reset,
    /// Closes connections that idle for a moment, without a word.
    CloseIdle,
    /// Answers late, and in small pieces.
    Slow,
    /// Leaves requests unanswered.
    Stall,
    /// Sends what is no answer, or more than the answer.
    Garbage,
    /// Ends answers with their connections.
    Close,
    /// The file lets few requests be at the origin at once.
    Crowded,
}

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// A complete and right answer with this status.
    Answered(u16),
    /// The origin broke its answer off, and so did the gateway.
    CutByOrigin,
    LeftWaiting,
    LeftMidAnswer,
    /// Pipelined behind an answer with which the connection ended.
    BehindTheEnd,
}

/// What all threads of the soak know together.
#[derive(Debug, Default)]
pub struct Board {
    troubles: Mutex<Vec<(Trouble, usize, Option<Instant>)>>,
    /// Answers that an origin has begun and not ended.
    unfinished: Mutex<HashSet<String>>,
    /// How often origins saw each POST.
    posts: Mutex<HashMap<String, u32>>,
    fates: Mutex<BTreeMap<Fate, i64>>,
    failures: Mutex<Vec<String>>,
}

/// A failed thread is reported by itself.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    pub fn trouble_begins(&self, trouble: Trouble, place: usize) {
        let mut troubles = locked(&self.troubles);
        // Nobody asks for what is long over.
        troubles.retain(|(_, _, end)| end.is_none_or(|end| end.elapsed().as_secs() < 60));
        troubles.push((trouble, place, None));
    }

    pub fn trouble_ends(&self, trouble: Trouble, place: usize) {
        let mut troubles = locked(&self.troubles);
        for (_, _, end) in troubles
            .iter_mut()
            .filter(|(which, at, _)| (*which, *at) == (trouble, place))
        {
            end.get_or_insert(now());
        }
    }

    /// Whether any of these was somewhere at any time since.
    pub fn any_of(&self, wanted: &[Trouble], since: Instant) -> bool {
        locked(&self.troubles)
            .iter()
            .any(|(trouble, _, end)| wanted.contains(trouble) && end.is_none_or(|end| end >= since))
    }

    pub fn answer_begins(&self, id: &str) {
        locked(&self.unfinished).insert(id.to_owned());
    }

    pub fn answer_ends(&self, id: &str) {
        locked(&self.unfinished).remove(id);
    }

    /// Whether the origin has sent the whole answer, of which the gateway may have passed on the end before the origin
    /// got to say so.
    pub fn is_whole(&self, id: &str) -> bool {
        let deadline = now() + Duration::from_secs(2);
        while self.was_cut(id) {
            if now() > deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Whether the answer's end was not sent by the origin.
    pub fn was_cut(&self, id: &str) -> bool {
        locked(&self.unfinished).contains(id)
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

    pub fn ended(&self, fate: Fate) {
        *locked(&self.fates).entry(fate).or_default() += 1;
    }

    pub fn fail(&self, what: String) {
        locked(&self.failures).push(what);
    }

    /// The first of what went wrong, and how much did.
    pub fn failures(&self) -> Option<String> {
        let failures = locked(&self.failures);
        let first: Vec<&str> = failures.iter().take(20).map(String::as_str).collect();
        (!first.is_empty())
            .then(|| format!("{} failures:\n  {}", failures.len(), first.join("\n  ")))
    }

    pub fn fates(&self) -> BTreeMap<Fate, i64> {
        locked(&self.fates).clone()
    }

    /// Whether a client may be told this at this moment, of a request that it sent at `sent`.
    pub fn allows(&self, status: u16, is_post: bool, sent: Instant) -> bool {
        use Trouble::{CloseIdle, Crowded, Down, Garbage, Reset, Stall};
        /// `fail_timeout` in the file, and as long again for those on the way.
        const OUT: Duration = Duration::from_secs(2);
        match status {
            200 | 429 => true,
            // A POST that was sent as the origin closed its connection must not be sent again.
            502 if is_post && self.any_of(&[CloseIdle], sent) => true,
            502 => self.any_of(&[Down, Reset, Garbage], sent),
            // Servers that are out.
            503 => {
                let before = sent.checked_sub(OUT).unwrap_or(sent);
                self.any_of(&[Crowded], sent)
                    || self.any_of(&[Down, Reset, Garbage, Stall, CloseIdle], before)
            }
            504 => self.any_of(&[Stall], sent),
            _ => false,
        }
    }
}
