//! Leaders that have no answer for the others, or none soon.

use std::sync::Arc;
use std::time::Duration;

use limit::Moment;

use super::super::terms::Windows;
use super::{Entry, FlightId, Kinds, UNSHAREABLE_FOR};

/// How long a stale answer serves, after the origin failed, before it is asked again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How much longer a client whose leader has failed may not ask, if other clients have come since.
///
/// What fails for one client alone may be answered for them.
const RETRY_ALONE_AFTER: Duration = Duration::from_secs(2);

/// How many failed clients are remembered.
const MAX_FAILED: usize = 8;

/// When the origin is asked again after a failure, and by whom.
pub(super) struct Retry {
    at: Moment,
    /// The clients of the leaders that have failed in a row, without duplicates; at most [`MAX_FAILED`].
    failed: Vec<u64>,
    /// Whether a request of another client has come since the last failure.
    have_others_come: bool,
}

impl Retry {
    /// Returns whether a request of `client`, which comes now, may ask the origin.
    pub(super) fn is_due(&mut self, client: u64, now: Moment) -> bool {
        let has_failed = self.failed.contains(&client);
        self.have_others_come |= !has_failed;
        let is_left_to_others = has_failed && self.have_others_come;
        now >= self.at && (!is_left_to_others || now >= self.at + RETRY_ALONE_AFTER)
    }

    /// Records that the leader of `client` has failed.
    fn failed(&mut self, client: u64, now: Moment) {
        self.at = now + RETRY_AFTER;
        self.have_others_come = false;
        if !self.failed.contains(&client) && self.failed.len() < MAX_FAILED {
            self.failed.push(client);
        }
    }
}

/// How many leaders in a row may have no answer for the others before these go on by themselves.
const MAX_FAILURES: u8 = 2;

/// Why a leader has no answer for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It has left.
    Left,
    /// Its answer may not be shared, which may concern it alone.
    OwnAnswer,
    /// The origin failed.
    Failed,
}

/// What becomes of those who followed a leader that has no answer for them.
#[derive(Debug, PartialEq, Eq)]
pub enum Failed<A, W> {
    /// They get this stale answer, and so does the leader.
    Stale(A, Vec<W>),
    /// The first of them that may lead leads now.
    Next(W, FlightId),
    /// They go on by themselves: see [`Kinds::release`].
    Alone,
    /// Nobody followed.
    Over,
}

impl<A: Clone, W, S: Clone + Default> Kinds<A, W, S> {
    /// The leader got no answer for the others.
    ///
    /// If it has left, `now` does not matter.
    pub fn failed(
        &mut self,
        id: &FlightId,
        cause: Cause,
        windows: impl Fn(&A) -> Windows,
        now: Moment,
    ) -> Failed<A, W> {
        if cause == Cause::Failed
            && let Some((answer, followers)) = self.stand_in(id, false, windows, now)
        {
            return Failed::Stale(answer, followers);
        }
        let Some(flight) = self.flight(id) else {
            return Failed::Over;
        };
        let (is_probe, client) = (flight.is_probe, flight.client);
        let (counts, is_own) = (cause != Cause::Left, cause == Cause::OwnAnswer);
        let mut failures = flight.failures + u8::from(counts);
        let mut is_kept = false;
        match counts.then(|| self.entries.get_mut(&id.key)).flatten() {
            Some(Entry::Kept { retry, refused, .. }) => {
                // The origin answers, so no stale answer has to stand in for it.
                *retry = None;
                is_kept = true;
                if is_own && refused.replace(client).is_some_and(|it| it != client) {
                    self.forget(&id.key);
                    is_kept = false;
                }
            }
            // Two clients in a row, although none waited for the other one.
            Some(Entry::Refused {
                client: before,
                until,
            }) if is_own && *before != client && now < *until => failures = MAX_FAILURES,
            _ => {}
        }
        let Some(flight) = self.flights.get_mut(&id.key) else {
            return Failed::Over;
        };
        if flight.followers.is_empty() {
            self.flights.remove(&id.key);
            let ends = is_own && !is_kept && failures >= MAX_FAILURES;
            if ends || is_probe && counts {
                self.mark(&id.key, now, true);
            } else if is_own && !is_kept {
                let until = now + UNSHAREABLE_FOR;
                self.put(&id.key, Entry::Refused { client, until });
            }
            return Failed::Over;
        }
        if failures >= MAX_FAILURES {
            self.mark(&id.key, now, true);
            return Failed::Alone;
        }
        // What one client's requests do to the origin is no evidence of those of others.
        let avoided = counts.then_some(client);
        let Some((number, next_client, next)) = flight.followers.pop_leader(avoided) else {
            return Failed::Alone;
        };
        // Its number as a follower is that of no other leader.
        (flight.number, flight.failures) = (number, failures);
        (flight.client, flight.is_probe) = (next_client, false);
        let key = Arc::clone(&id.key);
        Failed::Next(next, FlightId { key, number })
    }

    /// The origin cannot be reached now. Returns the stale answer that serves meanwhile, and those
    /// who followed, who get it. `None`: no answer serves, and nothing changes.
    ///
    /// `goes_on`: the leader goes on trying, for no client.
    pub fn stand_in(
        &mut self,
        id: &FlightId,
        goes_on: bool,
        windows: impl Fn(&A) -> Windows,
        now: Moment,
    ) -> Option<(A, Vec<W>)> {
        let client = self.flight(id)?.client;
        let Some(Entry::Kept { answer, retry, .. }) = self.entries.get_mut(&id.key) else {
            return None;
        };
        if now >= windows(answer).error {
            return None;
        }
        let retry = retry.get_or_insert(Retry {
            at: now,
            failed: Vec::new(),
            have_others_come: false,
        });
        retry.failed(client, now);
        let answer = answer.clone();
        let flight = self.flight(id)?;
        let followers = std::mem::take(&mut flight.followers).into_waiters();
        if !goes_on {
            self.flights.remove(&id.key);
        }
        Some((answer, followers))
    }

    /// Nobody waits any more for the leader of this kind: its answer has no end in sight. `None`: no
    /// leader of the kind is the one that `is_it` knows.
    ///
    /// The kind is not shared for a while. What the leader does later changes nothing. The caller
    /// [releases](Self::release) those who followed.
    pub fn abandon(
        &mut self,
        key: &[u8],
        is_it: impl Fn(&S) -> bool,
        now: Moment,
    ) -> Option<FlightId> {
        let flight = self.flights.get_mut(key)?;
        if !is_it(&flight.state) {
            return None;
        }
        self.next += 1;
        // The number of the leader is that of no flight now.
        flight.number = self.next;
        (flight.state, flight.is_probe) = (S::default(), false);
        let key = Arc::clone(&flight.key);
        self.mark(&key, now, true);
        Some(FlightId {
            key,
            number: self.next,
        })
    }
}
