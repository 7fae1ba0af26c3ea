//! What requests of a kind do, said as simply as possible: lists that are searched from the start.

use std::time::Duration;

use super::super::*;

/// An answer of these histories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) kind: usize,
    pub(super) number: u64,
    pub(super) made: Moment,
    /// How long it is fresh by itself.
    pub(super) own: Duration,
    pub(super) while_revalidate: Duration,
    pub(super) if_error: Duration,
}

/// What a route says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) keep: Duration,
    pub(super) stale: Duration,
}

impl Rules {
    pub(super) fn windows(self, answer: &Answer) -> Windows {
        let fresh = answer.made + answer.own.min(self.keep);
        Windows {
            fresh,
            revalidate: fresh + answer.while_revalidate,
            error: fresh + self.stale.max(answer.if_error),
        }
    }
}

#[derive(Debug)]
struct Waiter {
    kind: usize,
    request: usize,
    may_lead: bool,
}

#[derive(Debug)]
struct Entry {
    kind: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// An answer; after a failure, when the origin may be asked again.
    Answer(Answer, Option<Moment>),
    UnshareableUntil(Moment),
}

/// What a request does when it comes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Does {
    Kept(Answer),
    /// Whether it is fetched anew.
    Stale(Answer, bool),
    Follow,
    Lead,
    Alone,
}

/// What becomes of those who followed a leader that failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Then {
    Stale(Answer, Vec<usize>),
    Next(usize),
    Alone,
    Over,
}

/// All kinds.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// The kinds that have a leader or a release, and how often in a row their leaders have failed.
    busy: Vec<(usize, u8)>,
    /// In the order in which they came.
    waiters: Vec<Waiter>,
    /// The last one was used last.
    entries: Vec<Entry>,
}

impl Model {
    fn is_busy(&self, kind: usize) -> bool {
        self.busy.iter().any(|it| it.0 == kind)
    }

    fn ends(&mut self, kind: usize) {
        self.busy.retain(|it| it.0 != kind);
    }

    fn take_entry(&mut self, kind: usize) -> Option<Entry> {
        let at = self.entries.iter().position(|it| it.kind == kind)?;
        Some(self.entries.remove(at))
    }

    /// The entry of a kind, which becomes the last one.
    fn used_entry(&mut self, kind: usize) -> Option<&mut State> {
        let entry = self.take_entry(kind)?;
        self.entries.push(entry);
        self.entries.last_mut().map(|it| &mut it.state)
    }

    fn put(&mut self, kind: usize, state: State) {
        self.take_entry(kind);
        self.entries.push(Entry { kind, state });
    }

    /// Takes all who wait for a kind.
    fn take_waiters(&mut self, kind: usize) -> Vec<usize> {
        let all = self.waiters.extract_if(.., |it| it.kind == kind);
        all.map(|it| it.request).collect()
    }

    fn of_entry(&mut self, kind: usize, rules: Rules, now: Moment) -> Option<Does> {
        let is_busy = self.is_busy(kind);
        match self.used_entry(kind)? {
            State::UnshareableUntil(until) => (now < *until && !is_busy).then_some(Does::Alone),
            State::Answer(answer, retry) => {
                let windows = rules.windows(answer);
                if now < windows.fresh {
                    return Some(Does::Kept(answer.clone()));
                }
                let is_due = retry.is_none_or(|at| at <= now);
                let may = now < windows.revalidate || retry.is_some() && now < windows.error;
                may.then(|| Does::Stale(answer.clone(), is_due && !is_busy))
            }
        }
    }

    pub(super) fn comes(
        &mut self,
        kind: usize,
        request: usize,
        may_lead: bool,
        rules: Rules,
        now: Moment,
    ) -> Does {
        let does = self.of_entry(kind, rules, now).unwrap_or_else(|| {
            if self.is_busy(kind) {
                Does::Follow
            } else if may_lead {
                Does::Lead
            } else {
                Does::Alone
            }
        });
        match does {
            Does::Lead | Does::Stale(_, true) => self.busy.push((kind, 0)),
            Does::Follow => self.waiters.push(Waiter {
                kind,
                request,
                may_lead,
            }),
            _ => {}
        }
        does
    }

    pub(super) fn completes(&mut self, answer: Answer, rules: Rules, now: Moment) -> Vec<usize> {
        let kind = answer.kind;
        self.ends(kind);
        let windows = rules.windows(&answer);
        if now < windows.fresh || now < windows.revalidate || now < windows.error {
            self.put(kind, State::Answer(answer, None));
        } else {
            self.take_entry(kind);
        }
        self.take_waiters(kind)
    }

    pub(super) fn is_unshareable(&mut self, kind: usize, now: Moment) {
        self.put(kind, State::UnshareableUntil(now + Duration::from_secs(10)));
    }

    pub(super) fn releases(&mut self, kind: usize) -> Option<usize> {
        let first = self.waiters.iter().position(|it| it.kind == kind);
        if first.is_none() {
            self.ends(kind);
        }
        first.map(|at| self.waiters.remove(at).request)
    }

    /// `now`: `None` if the leader left.
    pub(super) fn fails(&mut self, kind: usize, rules: Rules, now: Option<Moment>) -> Then {
        if let Some(now) = now
            && let Some(State::Answer(answer, retry)) = self.used_entry(kind)
            && now < rules.windows(answer).error
        {
            *retry = Some(now + Duration::from_secs(1));
            let answer = answer.clone();
            self.ends(kind);
            return Then::Stale(answer, self.take_waiters(kind));
        }
        if !self.waiters.iter().any(|it| it.kind == kind) {
            self.ends(kind);
            return Then::Over;
        }
        let busy = self.busy.iter_mut().find(|it| it.0 == kind);
        let failures = &mut busy.expect("a leader").1;
        *failures += u8::from(now.is_some());
        if let Some(now) = now
            && *failures == 2
        {
            self.is_unshareable(kind, now);
            return Then::Alone;
        }
        let mut waiters = self.waiters.iter();
        match waiters.position(|it| it.kind == kind && it.may_lead) {
            Some(at) => Then::Next(self.waiters.remove(at).request),
            None => Then::Alone,
        }
    }

    /// Returns whether nobody follows any more.
    pub(super) fn leaves(&mut self, request: usize) -> bool {
        let at = self.waiters.iter().position(|it| it.request == request);
        let kind = self.waiters.remove(at.expect("it waits")).kind;
        !self.waiters.iter().any(|it| it.kind == kind)
    }

    /// Returns whether that was an answer.
    pub(super) fn evicts(&mut self) -> Option<bool> {
        if self.entries.is_empty() {
            return None;
        }
        let entry = self.entries.remove(0);
        Some(matches!(entry.state, State::Answer(..)))
    }

    pub(super) fn answers(&self) -> usize {
        let is_answer = |it: &&Entry| matches!(it.state, State::Answer(..));
        self.entries.iter().filter(is_answer).count()
    }

    pub(super) fn entries(&self) -> usize {
        self.entries.len()
    }
}
