use std::cell::RefCell;
use std::collections::HashMap;
use std::mem;
use std::rc::Rc;
use std::time::Duration;

use super::file::IDLE;
use crate::limit::{Moment, parse_duration};

/// What the visitors get.
#[derive(Clone, Debug)]
pub(super) struct SaleScore(Rc<RefCell<SaleCounts>>);

#[derive(Debug)]
struct SaleCounts {
    idle: Duration,
    second: SaleSecond,
    total: SaleTotal,
    /// Visitors who are to come, or wait and come back.
    pending: u64,
    waiting: u64,
    /// When each visitor inside has left, if it asks nothing more.
    inside: HashMap<usize, Moment>,
}

/// What the visitors got in a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SaleSecond {
    pub(super) came: u64,
    pub(super) let_in: u64,
    /// Left and never come back.
    pub(super) went: u64,
    pub(super) polls: u64,
    pub(super) failed: u32,
    /// At the end of the second.
    pub(super) waiting: u64,
    /// At the end of the second.
    pub(super) inside: usize,
    /// Of those let in.
    waits: Vec<Duration>,
}

/// What the visitors got in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SaleTotal {
    pub(super) came: u64,
    pub(super) let_in: u64,
    pub(super) went: u64,
    pub(super) failed: u64,
    pub(super) waiting: u64,
    pub(super) max_inside: usize,
    pub(super) max_polls: u64,
    pub(super) longest: Duration,
}

impl Default for SaleScore {
    fn default() -> Self {
        Self(Rc::new(RefCell::new(SaleCounts {
            idle: parse_duration(IDLE).unwrap_or_default(),
            second: SaleSecond::default(),
            total: SaleTotal::default(),
            pending: 0,
            waiting: 0,
            inside: HashMap::new(),
        })))
    }
}

impl SaleScore {
    fn with<T>(&self, count: impl FnOnce(&mut SaleCounts) -> T) -> T {
        count(&mut self.0.borrow_mut())
    }

    /// A visitor will come.
    pub(super) fn expect(&self) {
        self.with(|it| it.pending += 1);
    }

    /// A visitor comes. It waits until it is known to be inside.
    pub(super) fn came(&self) {
        self.with(|it| {
            it.second.came += 1;
            it.waiting += 1;
        });
    }

    /// A visitor who waits asks again.
    pub(super) fn polled(&self) {
        self.with(|it| it.second.polls += 1);
    }

    /// A visitor is let in by a request that it sent at `sent`, after a wait.
    pub(super) fn entered(&self, id: usize, sent: Moment, wait: Duration) {
        self.with(|it| {
            it.end_wait();
            it.second.let_in += 1;
            it.second.waits.push(wait);
            it.total.longest = it.total.longest.max(wait);
            it.inside.insert(id, sent + it.idle);
            it.look(sent);
        });
    }

    /// A visitor inside was answered, by a request that it sent at `sent`.
    pub(super) fn asked(&self, id: usize, sent: Moment) {
        self.with(|it| it.inside.insert(id, sent + it.idle));
    }

    /// A visitor leaves, and never comes back.
    pub(super) fn went(&self) {
        self.with(|it| {
            it.end_wait();
            it.second.went += 1;
        });
    }

    /// A visitor who waited got an answer that is none.
    pub(super) fn gave_up(&self) {
        self.with(|it| {
            it.end_wait();
            it.second.failed += 1;
        });
    }

    /// A visitor inside got an answer that is none.
    pub(super) fn failed(&self) {
        self.with(|it| it.second.failed += 1);
    }

    /// Whether nobody is to come, waits or is inside.
    pub(super) fn is_over(&self) -> bool {
        self.with(|it| it.pending == 0 && it.inside.is_empty())
    }

    /// Ends the second, and begins the next.
    pub(super) fn next_second(&self, now: Moment) -> SaleSecond {
        self.with(|it| {
            it.look(now);
            let second = SaleSecond {
                waiting: it.waiting,
                inside: it.inside.len(),
                ..mem::take(&mut it.second)
            };
            let total = &mut it.total;
            total.came += second.came;
            total.let_in += second.let_in;
            total.went += second.went;
            total.failed += u64::from(second.failed);
            total.max_polls = total.max_polls.max(second.polls);
            second
        })
    }

    /// The counts in all.
    pub(super) fn total(&self, now: Moment) -> SaleTotal {
        self.next_second(now);
        self.with(|it| SaleTotal {
            waiting: it.waiting,
            ..it.total
        })
    }
}

impl SaleCounts {
    fn end_wait(&mut self) {
        self.pending -= 1;
        self.waiting -= 1;
    }

    /// Looks who is inside.
    fn look(&mut self, now: Moment) {
        self.inside.retain(|_, end| *end > now);
        self.total.max_inside = self.total.max_inside.max(self.inside.len());
    }
}

impl SaleSecond {
    /// The median wait of those who were let in: of an even number, the upper one.
    pub(super) fn median_wait(&self) -> Option<Duration> {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        waits.get(waits.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitor_is_inside_until_idle_has_passed_since_its_last_request() {
        let score = SaleScore::default();
        let at = |millis| Moment::from_nanos(1_000_000_000_000) + Duration::from_millis(millis);
        for _ in 0..3 {
            score.expect();
            score.came();
        }
        score.went();
        score.polled();
        score.entered(1, at(0), Duration::ZERO);
        score.entered(2, at(500), Duration::from_secs(1));
        let second = score.next_second(at(1000));
        assert_eq!((second.came, second.let_in, second.went), (3, 2, 1));
        assert_eq!((second.polls, second.waiting, second.inside), (1, 0, 2));
        assert_eq!(second.median_wait(), Some(Duration::from_secs(1)));
        score.asked(1, at(1500));
        assert_eq!(score.next_second(at(2600)).inside, 1);
        assert!(!score.is_over());
        let total = score.total(at(3500));
        assert_eq!((total.let_in, total.max_inside, total.max_polls), (2, 2, 1));
        assert!(score.is_over());
    }
}
