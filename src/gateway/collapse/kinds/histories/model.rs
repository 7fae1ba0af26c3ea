//! Naive model of kinds: plain lists that are searched from the start.
//!
//! A kind is a number, a request too. `kinds` defines kind, leader, follower, release and probe.

use std::time::Duration;

use super::super::*;

/// Answer in a history. `number` distinguishes answers of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) kind: usize,
    pub(super) number: u64,
    pub(super) made: Moment,
    /// Lifetime that the answer itself states.
    pub(super) lifetime: Duration,
    pub(super) while_revalidate: Duration,
    pub(super) if_error: Duration,
}

/// Settings of a route.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    pub(super) keep: Duration,
    pub(super) stale: Duration,
}

impl Rules {
    pub(super) fn windows(self, answer: &Answer) -> Windows {
        let fresh = answer.made + answer.lifetime.min(self.keep);
        Windows {
            fresh,
            revalidate: fresh + answer.while_revalidate,
            error: fresh + self.stale.max(answer.if_error),
        }
    }
}

/// Follower.
#[derive(Debug)]
struct Waiter {
    kind: usize,
    request: usize,
    requester: Requester,
}

/// State that is remembered of a kind.
#[derive(Debug)]
struct Entry {
    kind: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// An answer, the next attempt after a failure, and the last client with a private answer.
    Answer(Answer, Option<NextAttempt>, Option<u64>),
    /// The last client with a private answer, and the end of that record.
    Refused(u64, Moment),
    /// End of the time without sharing, and whether the kind is probed.
    UnshareableUntil(Moment, bool),
}

/// Next attempt at the origin after a failure.
#[derive(Debug)]
struct NextAttempt {
    at: Moment,
    /// Clients that failed in a row.
    failed: Vec<u64>,
    have_others_come: bool,
}

/// Leader, or a release of followers.
#[derive(Debug)]
struct Busy {
    kind: usize,
    client: u64,
    /// Number of leaders in a row without an answer for the others.
    failures: u8,
    is_probe: bool,
}

/// Way in which a request of a kind proceeds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Way {
    Kept(Answer),
    /// The flag says whether the answer is refreshed.
    Stale(Answer, bool),
    Follow,
    Lead,
    /// Leads, and no other request waits for it.
    Probe,
    Alone,
}

/// Result for the followers of a failed leader.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Stale(Answer, Vec<usize>),
    Next(usize),
    Alone,
    Over,
}

/// Model of all kinds.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// At most one per kind.
    busy: Vec<Busy>,
    /// Waiters in order of arrival.
    waiters: Vec<Waiter>,
    /// Entries, the one used last at the end.
    entries: Vec<Entry>,
}

impl Model {
    fn is_busy(&self, kind: usize) -> bool {
        self.busy.iter().any(|it| it.kind == kind)
    }

    /// Ends the leader of a kind.
    fn end(&mut self, kind: usize) {
        self.busy.retain(|it| it.kind != kind);
    }

    fn take_entry(&mut self, kind: usize) -> Option<Entry> {
        let at = self.entries.iter().position(|it| it.kind == kind)?;
        Some(self.entries.remove(at))
    }

    /// Returns the entry of a kind, and moves it to the end.
    fn used_entry(&mut self, kind: usize) -> Option<&mut State> {
        let entry = self.take_entry(kind)?;
        self.entries.push(entry);
        self.entries.last_mut().map(|it| &mut it.state)
    }

    /// Replaces the entry of a kind.
    fn put(&mut self, kind: usize, state: State) {
        self.take_entry(kind);
        self.entries.push(Entry { kind, state });
    }

    /// Removes and returns all waiters of a kind.
    fn take_waiters(&mut self, kind: usize) -> Vec<usize> {
        let all = self.waiters.extract_if(.., |it| it.kind == kind);
        all.map(|it| it.request).collect()
    }

    /// Decides by the entry of a kind; `None` if it does not decide.
    fn decide_by_entry(
        &mut self,
        kind: usize,
        requester: Requester,
        rules: Rules,
        now: Moment,
    ) -> Option<Way> {
        let is_busy = self.is_busy(kind);
        let has_probe = self.busy.iter().any(|it| it.kind == kind && it.is_probe);
        match self.used_entry(kind)? {
            State::Refused(..) => None,
            State::UnshareableUntil(until, _) if now >= *until => None,
            State::UnshareableUntil(_, true) if !is_busy && requester.may_lead => Some(Way::Probe),
            State::UnshareableUntil(..) => (!is_busy || has_probe).then_some(Way::Alone),
            State::Answer(answer, retry, _) => {
                let windows = rules.windows(answer);
                if now < windows.fresh {
                    return Some(Way::Kept(answer.clone()));
                }
                let is_usable = now < windows.revalidate || retry.is_some() && now < windows.error;
                let is_due = match retry {
                    Some(attempt) if is_usable => {
                        let has_failed = attempt.failed.contains(&requester.client);
                        attempt.have_others_come |= !has_failed;
                        let has_to_wait = has_failed && attempt.have_others_come;
                        now >= attempt.at + Duration::from_secs(if has_to_wait { 2 } else { 0 })
                    }
                    _ => true,
                };
                is_usable.then(|| Way::Stale(answer.clone(), is_due && !is_busy))
            }
        }
    }

    /// Adds a request. Returns how it proceeds.
    pub(super) fn come(
        &mut self,
        kind: usize,
        request: usize,
        requester: Requester,
        rules: Rules,
        now: Moment,
    ) -> Way {
        let found = self.decide_by_entry(kind, requester, rules, now);
        let way = found.unwrap_or_else(|| {
            if self.is_busy(kind) {
                Way::Follow
            } else if requester.may_lead {
                Way::Lead
            } else {
                Way::Alone
            }
        });
        match way {
            Way::Lead | Way::Probe | Way::Stale(_, true) => self.busy.push(Busy {
                kind,
                client: requester.client,
                failures: 0,
                is_probe: way == Way::Probe,
            }),
            Way::Follow => self.waiters.push(Waiter {
                kind,
                request,
                requester,
            }),
            _ => {}
        }
        way
    }

    /// Completes the answer of a leader. Returns the requests that get it.
    pub(super) fn complete(&mut self, answer: Answer, rules: Rules, now: Moment) -> Vec<usize> {
        let kind = answer.kind;
        self.end(kind);
        let windows = rules.windows(&answer);
        if now < windows.fresh || now < windows.revalidate || now < windows.error {
            self.put(kind, State::Answer(answer, None, None));
        } else {
            self.take_entry(kind);
        }
        self.take_waiters(kind)
    }

    /// Records that a kind is not shared for a while.
    pub(super) fn mark_unshareable(&mut self, kind: usize, is_probed: bool, now: Moment) {
        let until = now + Duration::from_secs(10);
        self.put(kind, State::UnshareableUntil(until, is_probed));
    }

    /// Releases all requests that wait for a leader, whatever it does later.
    pub(super) fn abandon(&mut self, kind: usize, now: Moment) {
        for busy in self.busy.iter_mut().filter(|it| it.kind == kind) {
            busy.is_probe = false;
        }
        self.mark_unshareable(kind, true, now);
    }

    /// Returns a stale answer and its receivers, while the origin cannot be reached.
    pub(super) fn stand_in(
        &mut self,
        kind: usize,
        goes_on: bool,
        rules: Rules,
        now: Moment,
    ) -> Option<(Answer, Vec<usize>)> {
        let leader = self.busy.iter().find(|it| it.kind == kind)?.client;
        let Some(State::Answer(answer, retry, _)) = self.used_entry(kind) else {
            return None;
        };
        if now >= rules.windows(answer).error {
            return None;
        }
        let mut failed = retry.take().map_or_else(Vec::new, |attempt| attempt.failed);
        if !failed.contains(&leader) && failed.len() < 8 {
            failed.push(leader);
        }
        *retry = Some(NextAttempt {
            at: now + Duration::from_secs(1),
            failed,
            have_others_come: false,
        });
        let answer = answer.clone();
        if !goes_on {
            self.end(kind);
        }
        Some((answer, self.take_waiters(kind)))
    }

    /// Removes and returns the next follower. Without one, ends the leader.
    pub(super) fn release(&mut self, kind: usize) -> Option<usize> {
        let first = self.waiters.iter().position(|it| it.kind == kind);
        if first.is_none() {
            self.end(kind);
        }
        first.map(|at| self.waiters.remove(at).request)
    }

    /// Ends a leader without an answer for its followers.
    pub(super) fn fail(&mut self, kind: usize, rules: Rules, cause: Cause, now: Moment) -> Outcome {
        let counts = cause != Cause::Left;
        let leader = self.busy.iter().find(|it| it.kind == kind);
        let client = leader.expect("a leader").client;
        let mut follows_refusal = false;
        if counts && let Some(State::Refused(before, until)) = self.used_entry(kind) {
            follows_refusal = cause == Cause::Private && *before != client && now < *until;
        }
        if cause == Cause::Failed
            && let Some((answer, answered)) = self.stand_in(kind, false, rules, now)
        {
            return Outcome::Stale(answer, answered);
        }
        if counts && let Some(State::Answer(_, retry, refused)) = self.used_entry(kind) {
            *retry = None;
            let before = *refused;
            if cause == Cause::Private {
                *refused = Some(client);
                if before.is_some_and(|it| it != client) {
                    self.take_entry(kind);
                }
            }
        }
        let at = self.busy.iter().position(|it| it.kind == kind);
        let mut busy = self.busy.remove(at.expect("a leader"));
        busy.failures += u8::from(counts);
        if follows_refusal {
            busy.failures = 2;
        }
        if !self.waiters.iter().any(|it| it.kind == kind) {
            let entry = self.entries.iter().find(|it| it.kind == kind);
            let is_kept = entry.is_some_and(|it| matches!(it.state, State::Answer(..)));
            let is_own = cause == Cause::Private && !is_kept;
            if counts && busy.is_probe || is_own && busy.failures >= 2 {
                self.mark_unshareable(kind, true, now);
            } else if is_own {
                let until = now + Duration::from_secs(10);
                self.put(kind, State::Refused(client, until));
            }
            return Outcome::Over;
        }
        if counts && busy.failures >= 2 {
            self.mark_unshareable(kind, true, now);
            self.busy.push(busy);
            return Outcome::Alone;
        }
        let leads = |it: &Waiter| it.kind == kind && it.requester.may_lead;
        let of_other = |it: &Waiter| leads(it) && it.requester.client != busy.client;
        let other = self.waiters.iter().position(of_other).filter(|_| counts);
        let Some(at) = other.or_else(|| self.waiters.iter().position(leads)) else {
            self.busy.push(busy);
            return Outcome::Alone;
        };
        let next = self.waiters.remove(at);
        (busy.client, busy.is_probe) = (next.requester.client, false);
        self.busy.push(busy);
        Outcome::Next(next.request)
    }

    /// Removes a follower. Returns whether it was the last one of its kind.
    pub(super) fn leave(&mut self, request: usize) -> bool {
        let at = self.waiters.iter().position(|it| it.request == request);
        let kind = self.waiters.remove(at.expect("it waits")).kind;
        !self.waiters.iter().any(|it| it.kind == kind)
    }

    /// Evicts the entry used least recently. Returns whether it was an answer.
    pub(super) fn evict(&mut self) -> Option<bool> {
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

    /// Returns the kinds that have an entry.
    pub(super) fn kinds(&self) -> impl Iterator<Item = usize> {
        self.entries.iter().map(|it| it.kind)
    }
}
