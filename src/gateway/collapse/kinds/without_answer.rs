//! Leaders without an answer for their followers, and leaders whose answer may never end.
//!
//! The parent module defines *kind*, *leader*, *follower*, *flight*, *release* and *probe*.

use std::sync::Arc;
use std::time::Duration;

use limit::Moment;

use super::super::terms::Windows;
use super::{Entry, FlightId, Kinds, UNSHAREABLE_FOR};

/// Time for which a stale answer serves after the origin failed, before the next attempt.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Additional time before a client whose request has failed makes the next attempt.
///
/// Only if requests of other clients have come since then: these go first, because a request may
/// fail for one client only.
const FAILED_CLIENT_DELAY: Duration = Duration::from_secs(2);

/// Maximum number of failed clients that are remembered.
const MAX_FAILED: usize = 8;

/// Next attempt at the origin after a failure, and the clients that may make it.
pub(super) struct Retry {
    /// Instant from which an attempt may be made.
    at: Moment,
    /// Clients of the leaders that have failed in a row, each once; at most [`MAX_FAILED`].
    failed: Vec<u64>,
    /// Whether a request of another client has arrived since the last failure.
    have_others_come: bool,
}

impl Retry {
    /// Notes a request of `client`. Returns whether it may go to the origin now.
    pub(super) fn check_due(&mut self, client: u64, now: Moment) -> bool {
        let has_failed = self.failed.contains(&client);
        self.have_others_come |= !has_failed;
        let is_left_to_others = has_failed && self.have_others_come;
        now >= self.at && (!is_left_to_others || now >= self.at + FAILED_CLIENT_DELAY)
    }

    /// Records that the leader of `client` has failed.
    fn record_failure(&mut self, client: u64, now: Moment) {
        self.at = now + RETRY_AFTER;
        self.have_others_come = false;
        if !self.failed.contains(&client) && self.failed.len() < MAX_FAILED {
            self.failed.push(client);
        }
    }
}

/// Number of leaders in a row without an answer for others after which the followers are released.
const MAX_FAILURES: u8 = 2;

/// Reason for which a leader has no answer for its followers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The leader has left before its answer was complete.
    Left,
    /// The answer may not be shared. This may concern this leader only.
    Private,
    /// The origin failed.
    Failed,
}

/// Result for the followers of a leader without an answer for them.
#[derive(Debug, PartialEq, Eq)]
pub enum FailureResult<A, W> {
    /// The followers and the leader get this stale answer.
    Stale(A, Vec<W>),
    /// The first follower that may lead leads now.
    Next(W, FlightId),
    /// The followers go to the origin for themselves: see [`Kinds::release`].
    Alone,
    /// There were no followers.
    Over,
}

impl<A: Clone, W, S: Clone + Default> Kinds<A, W, S> {
    /// Ends a leader that has no answer for its followers.
    ///
    /// If the leader has left, `now` does not matter.
    pub fn end_failed(
        &mut self,
        id: &FlightId,
        cause: Cause,
        windows: impl Fn(&A) -> Windows,
        now: Moment,
    ) -> FailureResult<A, W> {
        if cause == Cause::Failed
            && let Some((answer, followers)) = self.stand_in(id, false, windows, now)
        {
            return FailureResult::Stale(answer, followers);
        }
        let Some(flight) = self.flight(id) else {
            return FailureResult::Over;
        };
        let (is_probe, client) = (flight.is_probe, flight.client);
        // A leader that has left says nothing about the origin.
        let (counts, is_refusal) = (cause != Cause::Left, cause == Cause::Private);
        let mut failures = flight.failures + u8::from(counts);
        let mut is_kept = false;
        match counts.then(|| self.entries.get_mut(&id.key)).flatten() {
            Some(Entry::Kept { retry, refused, .. }) => {
                // The origin answers, so a stale answer need not replace its answers.
                *retry = None;
                is_kept = true;
                if is_refusal && refused.replace(client).is_some_and(|it| it != client) {
                    self.remove_entry(&id.key);
                    is_kept = false;
                }
            }
            // Refusals of two clients count as two in a row, even if they were not in one flight.
            Some(Entry::Refused {
                client: previous,
                until,
            }) if is_refusal && *previous != client && now < *until => failures = MAX_FAILURES,
            _ => {}
        }
        let Some(flight) = self.flights.get_mut(&id.key) else {
            return FailureResult::Over;
        };
        if flight.followers.is_empty() {
            self.flights.remove(&id.key);
            let is_refused_twice = is_refusal && !is_kept && failures >= MAX_FAILURES;
            if is_refused_twice || is_probe && counts {
                self.mark_unshareable(&id.key, now, true);
            } else if is_refusal && !is_kept {
                let until = now + UNSHAREABLE_FOR;
                self.set_entry(&id.key, Entry::Refused { client, until });
            }
            return FailureResult::Over;
        }
        if failures >= MAX_FAILURES {
            self.mark_unshareable(&id.key, now, true);
            return FailureResult::Alone;
        }
        // Another client is preferred: failures of one client's requests say little about other
        // requests.
        let avoided = counts.then_some(client);
        let Some((number, next_client, next)) = flight.followers.pop_leader(avoided) else {
            return FailureResult::Alone;
        };
        // The follower's number becomes its number as the leader: all numbers differ.
        (flight.number, flight.failures) = (number, failures);
        (flight.client, flight.is_probe) = (next_client, false);
        let key = Arc::clone(&id.key);
        FailureResult::Next(next, FlightId { key, number })
    }

    /// Returns the stale answer to use while the origin cannot be reached, and the followers.
    ///
    /// The followers get the answer. Returns `None` if no answer may be used; then nothing changes.
    /// `goes_on`: the leader continues without a client.
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
        retry.record_failure(client, now);
        let answer = answer.clone();
        let flight = self.flight(id)?;
        let followers = std::mem::take(&mut flight.followers).into_waiters();
        if !goes_on {
            self.flights.remove(&id.key);
        }
        Some((answer, followers))
    }

    /// Abandons a leader whose answer may never end: gives its flight another number. Returns it.
    ///
    /// The kind is not shared for a while. Later results of the leader change nothing. The caller
    /// must [release](Self::release) the followers. Returns `None` if the kind has no flight whose
    /// state satisfies `is_meant`.
    pub fn abandon(
        &mut self,
        key: &[u8],
        is_meant: impl Fn(&S) -> bool,
        now: Moment,
    ) -> Option<FlightId> {
        let flight = self.flights.get_mut(key)?;
        if !is_meant(&flight.state) {
            return None;
        }
        self.last_number += 1;
        // From now on no flight has the number of the leader.
        flight.number = self.last_number;
        (flight.state, flight.is_probe) = (S::default(), false);
        let key = Arc::clone(&flight.key);
        self.mark_unshareable(&key, now, true);
        Some(FlightId {
            key,
            number: self.last_number,
        })
    }
}
