//! Rules by which failures take servers of an origin out, with their bounds.
//!
//! A server that is *out* gets no requests. `health` has the state of one server.

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use config::{self, FailOn};
use limit::Moment;

use super::error::OriginError;
use super::good_answers::Client;
use super::health::MaxFails;
use super::server::Server;
use crate::observe::metrics::Outcome;

/// Upper bound of the time for which one answer shows that a server works.
///
/// A shorter `fail_timeout` applies instead.
const MAX_WORKS_FOR: Duration = Duration::from_secs(10);
/// Divisor: a server that is in again has that time, divided by this, for its first good answer.
const FIRST_ANSWER_DIVISOR: u32 = 10;

/// Rules by which failed requests take the servers of an origin out.
///
/// A failure is *in doubt* if the server had received the request: the request itself may be the
/// cause, and a client could take all servers out by sending it repeatedly.
///
/// Failing answers and timeouts of one client are in doubt, too. While the server answers other
/// clients, the failures of each client count once in a row, and at least two clients must fail
/// before the server goes out.
pub(super) struct Failures {
    pub(super) max_fails: MaxFails,
    /// Answers that count as failures. Empty if there is no other server.
    fail_on: Vec<FailOn>,
    servers: Vec<Arc<Server>>,
    /// Locked while a server is taken out.
    ///
    /// Without this lock, the last two servers could go out at the same time, each because the
    /// other is still in. Reloads keep the lock.
    going_out: Arc<Mutex<()>>,
}

impl Failures {
    /// Creates the rules of an origin, and sets whether its servers are alone.
    ///
    /// `before`: the rules under the old settings.
    pub(super) fn new(
        settings: &config::Origin,
        servers: &[Arc<Server>],
        before: Option<&Self>,
    ) -> Self {
        let is_alone = servers.len() < 2;
        for server in servers {
            server.health.set_alone(is_alone);
        }
        let fail_on = settings.fail_on.iter().filter(|_| !is_alone);
        Self {
            max_fails: MaxFails {
                in_a_row: settings.max_fails,
                fail_timeout: settings.fail_timeout,
            },
            fail_on: fail_on.copied().collect(),
            servers: servers.to_vec(),
            going_out: before.map_or_else(Arc::default, |it| Arc::clone(&it.going_out)),
        }
    }

    /// Returns the reason for which an answer counts as a failure; `None`: it does not count.
    ///
    /// `waited` returns how long the server had the request. Called only if some answers count.
    pub(super) fn reason(&self, status: u16, waited: impl FnOnce() -> Duration) -> Option<String> {
        if self.fail_on.is_empty() {
            return None;
        }
        let waited = waited();
        let failed = self.fail_on.iter().find(|it| it.has(status, waited))?;
        Some(match failed {
            FailOn::Status(_) => format!("it answered {status}"),
            FailOn::Slow(_) => format!("it answered after {waited:?}"),
        })
    }

    /// Counts an answer to `client` as a failure of `server`, for this reason.
    pub(super) fn count_bad_answer(
        &self,
        server: &Arc<Server>,
        client: Client,
        reason: &str,
        now: Moment,
    ) {
        let max_fails = self.rule_for_client(server, client, now);
        self.count_in_doubt(server, max_fails, now, |max_fails| {
            server.note_bad_answer(reason, max_fails, now);
        });
    }

    /// Records that an attempt for `client` got no response after `took`.
    ///
    /// A failure in doubt counts only if the server does not answer other requests either.
    pub(super) fn count_no_answer(
        &self,
        server: &Arc<Server>,
        client: Client,
        error: &OriginError,
        took: Duration,
        now: Moment,
    ) {
        let is_timeout = error.outcome() == Outcome::Timeout;
        // A few clients can have timeouts at all servers at once, while the servers answer all
        // other clients.
        let is_in_doubt =
            error.is_in_doubt() || is_timeout && self.has_answered(server, Some(client), now);
        let max_fails = if error.is_in_doubt() {
            Some(self.max_fails).filter(|_| !self.works(server, now))
        } else if is_timeout {
            self.rule_for_client(server, client, now)
        } else {
            Some(self.max_fails)
        };
        let count = |max_fails| server.note_no_answer(error, max_fails, took, now);
        if is_in_doubt {
            self.count_in_doubt(server, max_fails, now, count);
        } else {
            count(max_fails);
        }
    }

    /// Returns the rule for a failure that `client` may have caused; `None`: it does not count.
    fn rule_for_client(&self, server: &Server, client: Client, now: Moment) -> Option<MaxFails> {
        if server.health.is_alone() || !self.has_answered(server, Some(client), now) {
            return Some(self.max_fails);
        }
        let is_first = server.health.note_failed_client(client);
        is_first.then(|| MaxFails {
            // At least two clients must fail.
            in_a_row: self.max_fails.in_a_row.max(2),
            ..self.max_fails
        })
    }

    /// Returns the time for which one answer shows that a server works.
    fn works_for(&self) -> Duration {
        self.max_fails.fail_timeout.min(MAX_WORKS_FOR)
    }

    /// Returns whether a server has given a good answer within [`works_for`](Self::works_for).
    ///
    /// `except`: answers to this client do not count.
    fn has_answered(&self, server: &Server, except: Option<Client>, now: Moment) -> bool {
        let answered_at = server.health.good_answers.last(except);
        answered_at.is_some_and(|at| now < at + self.works_for())
    }

    /// Returns whether a server has given a good answer recently, or has only just come in again.
    fn works(&self, server: &Server, now: Moment) -> bool {
        let max_time = self.works_for() / FIRST_ANSWER_DIVISOR;
        let since_return = server.health.time_since_return(now);
        self.has_answered(server, None, now) || since_return.is_some_and(|it| it < max_time)
    }

    /// Counts a failure in doubt by `count`, within the bounds of such failures.
    ///
    /// Failures in doubt take out at most half of the servers, and never the last one that is in.
    /// While all servers answer 503, half of them are better than none.
    fn count_in_doubt(
        &self,
        server: &Arc<Server>,
        max_fails: Option<MaxFails>,
        now: Moment,
        count: impl FnOnce(Option<MaxFails>),
    ) {
        let Some(mut max_fails) = max_fails.filter(|_| !server.health.is_alone()) else {
            return count(max_fails);
        };
        let guard = self.going_out.lock();
        let _guard = guard.unwrap_or_else(PoisonError::into_inner);
        let others = || self.servers.iter().filter(|it| !Arc::ptr_eq(it, server));
        let already_out = others().filter(|it| it.health.is_out_in_doubt(now)).count();
        let at_most_half = 2 * (already_out + 1) <= self.servers.len();
        if at_most_half && others().any(|it| it.is_in(now)) {
            server.health.note_in_doubt(true);
        } else {
            // The failure is recorded, but does not take the server out.
            max_fails.in_a_row = u32::MAX;
        }
        count(Some(max_fails));
    }
}
