use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::now;

/// A fault that lasts for a while, at an origin or in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trouble {
    /// Refuses connections, after breaking the open ones.
    Down,
    /// Breaks connections before, in the head of, or in the body of an answer.
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
    /// The file allows few requests at the origin at once.
    Crowded,
    /// The machine keeps a runnable thread waiting. It excuses no failure, but may explain one.
    Halt,
}

/// The result of one request.
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

/// A time during which one origin, or the file, has one trouble.
#[derive(Debug)]
struct Spell {
    trouble: Trouble,
    place: usize,
    began: Instant,
    ended: Option<Instant>,
}

/// Something that should not have happened.
#[derive(Clone, Debug)]
pub struct Failure {
    pub what: String,
    /// When the request it is about was sent, if there is one.
    pub since: Instant,
    pub at: Instant,
}

/// The state shared by all threads of the soak.
#[derive(Debug, Default)]
pub struct Board {
    troubles: Mutex<Vec<Spell>>,
    /// How many responses origins have begun, and which of them are unfinished.
    begun: AtomicU64,
    unfinished: Mutex<HashSet<u64>>,
    /// What origins did recently, with which request.
    deeds: Mutex<VecDeque<(Instant, String, String)>>,
    /// How often origins saw each POST.
    posts: Mutex<HashMap<String, u32>>,
    fates: Mutex<BTreeMap<Fate, i64>>,
    failures: Mutex<Vec<Failure>>,
}

/// A failed thread is reported by itself.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    pub fn trouble_begins(&self, trouble: Trouble, place: usize) {
        let mut troubles = locked(&self.troubles);
        // Old entries are not needed.
        troubles.retain(|spell| spell.ended.is_none_or(|end| end.elapsed().as_secs() < 60));
        troubles.push(Spell {
            trouble,
            place,
            began: now(),
            ended: None,
        });
    }

    /// Records that the machine stood still for this long, as seen by one thread.
    pub fn halted_for(&self, span: Duration) {
        let ended = now();
        locked(&self.troubles).push(Spell {
            trouble: Trouble::Halt,
            place: 0,
            began: ended.checked_sub(span).unwrap_or(ended),
            ended: Some(ended),
        });
    }

    pub fn trouble_ends(&self, trouble: Trouble, place: usize) {
        let mut troubles = locked(&self.troubles);
        for spell in troubles
            .iter_mut()
            .filter(|spell| (spell.trouble, spell.place) == (trouble, place))
        {
            spell.ended.get_or_insert(now());
        }
    }

    /// Whether any of these faults was active at any time since.
    pub fn any_of(&self, wanted: &[Trouble], since: Instant) -> bool {
        let was_since = |spell: &Spell| spell.ended.is_none_or(|end| end >= since);
        locked(&self.troubles)
            .iter()
            .any(|spell| wanted.contains(&spell.trouble) && was_since(spell))
    }

    /// The faults from a few seconds before a request was sent, each with when it began and ended, counted
    /// from then.
    fn troubles_around(&self, sent: Instant) -> String {
        const BEFORE: Duration = Duration::from_secs(3);
        let from = sent.checked_sub(BEFORE).unwrap_or(sent);
        let troubles = locked(&self.troubles);
        let lately = troubles
            .iter()
            .filter(|spell| spell.ended.is_none_or(|end| end >= from));
        let lines = lately.map(|spell| {
            let Spell { trouble, place, .. } = spell;
            let began = offset(spell.began, sent);
            let ended = spell
                .ended
                .map_or("now".to_owned(), |end| offset(end, sent));
            format!("{trouble:?} at {place} from {began} to {ended}")
        });
        lines.collect::<Vec<_>>().join("; ")
    }

    /// The number of a response that an origin begins. A repeated request has several responses, and the abandoned one
    /// may begin, and be broken off, after the other was complete.
    pub fn answer_begins(&self) -> u64 {
        let nth = self.begun.fetch_add(1, Ordering::Relaxed);
        locked(&self.unfinished).insert(nth);
        nth
    }

    pub fn answer_ends(&self, nth: u64) {
        locked(&self.unfinished).remove(&nth);
    }

    /// Whether the origin has sent the whole response; the gateway may have forwarded its end before the origin
    /// recorded it.
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

    /// Whether the origin did not send the end of the response.
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

    pub fn ended(&self, fate: Fate) {
        *locked(&self.fates).entry(fate).or_default() += 1;
    }

    pub fn fail(&self, what: String) {
        self.failed_since(now(), what);
    }

    /// An origin did this with a request.
    pub fn did(&self, id: &str, what: String) {
        /// Longer than any request takes.
        const LATELY: Duration = Duration::from_secs(20);
        let mut deeds = locked(&self.deeds);
        while deeds.front().is_some_and(|(at, ..)| at.elapsed() > LATELY) {
            deeds.pop_front();
        }
        deeds.push_back((now(), id.to_owned(), what));
    }

    /// What origins did with a request, each with when, counted from when it was sent.
    fn deeds_with(&self, id: &str, sent: Instant) -> String {
        let deeds = locked(&self.deeds);
        let with_it = deeds.iter().filter(|(_, which, _)| which == id);
        let told = with_it.map(|(at, _, what)| format!("{what} at {}", offset(*at, sent)));
        told.collect::<Vec<_>>().join("; ")
    }

    /// Records that the request `id`, sent then, had a result that should not happen.
    pub fn failed_with(&self, id: &str, sent: Instant, mut what: String) {
        what += "\n    origins: ";
        what += &self.deeds_with(id, sent);
        self.failed_since(sent, what);
    }

    fn failed_since(&self, sent: Instant, mut what: String) {
        what += "\n    troubles: ";
        what += &self.troubles_around(sent);
        let failure = Failure {
            what,
            since: sent,
            at: now(),
        };
        locked(&self.failures).push(failure);
    }

    pub fn has_failed(&self) -> bool {
        !locked(&self.failures).is_empty()
    }

    /// The first failures, each with what `log` has for that time, and the number of failures.
    pub fn failures(&self, log: impl Fn(&Failure) -> Vec<String>) -> Option<String> {
        let failures = locked(&self.failures);
        let tell = |failure: &Failure| {
            let lines = log(failure).join("\n    ");
            format!("{}\n    {lines}", failure.what)
        };
        let first: Vec<String> = failures.iter().take(20).map(tell).collect();
        (!first.is_empty())
            .then(|| format!("{} failures:\n  {}", failures.len(), first.join("\n  ")))
    }

    pub fn fates(&self) -> BTreeMap<Fate, i64> {
        locked(&self.fates).clone()
    }

    /// Whether a client may get this status now, for a request that it sent at `sent`.
    pub fn allows(&self, status: u16, is_post: bool, sent: Instant) -> bool {
        use Trouble::{CloseIdle, Crowded, Down, Garbage, Reset, Stall};
        /// `fail_timeout` in the file, and as long again for requests in flight.
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

/// A time, counted from another one.
fn offset(moment: Instant, from: Instant) -> String {
    let before = from.saturating_duration_since(moment);
    if before.is_zero() {
        format!("+{:.3} s", moment.duration_since(from).as_secs_f64())
    } else {
        format!("-{:.3} s", before.as_secs_f64())
    }
}
