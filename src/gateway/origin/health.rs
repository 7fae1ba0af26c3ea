//! Health of one server: whether it gets requests.
//!
//! A server that gets requests is *in*, else *out*. Failed requests take a server out until a time
//! or a response. Failed health checks make it *ill*, and so out, until enough checks succeed.
//! Failed requests never take out the only server of an origin: they make it *dead*, which is only
//! shown.
//!
//! A failure is *in doubt* if the request itself may be its cause (`failures`). `health_check`
//! sends the checks.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use config::{Health, ServerUrl};
use limit::Moment;

use super::good_answers::{Client, GoodAnswers};
use crate::observe::summary::{SECOND, Summary};
use crate::time::clock;

/// Maximum number of clients that are distinguished in a row of failures.
const MAX_CLIENTS: usize = 64;

/// State that decides whether requests may be sent to a server.
///
/// They may be sent unless failed requests or health checks have taken the server out.
pub(super) struct ServerHealth {
    /// Name of the server's origin, for the log.
    origin: Box<str>,
    url: ServerUrl,
    /// Whether the origin has no other server. Such a server gets requests even after failures.
    is_alone: AtomicBool,
    /// Number of requests that failed since the last response.
    failures: AtomicU32,
    /// Whether the last failed request got no connection. Then a connection brings the server back.
    pub(super) was_unreachable: AtomicBool,
    /// Instant, in nanoseconds, until which failed requests keep the server out.
    ///
    /// Zero: no failure has taken it out since the last response or recovery.
    out_until: AtomicU64,
    /// Whether failures in doubt have taken the server out: the requests may be their cause.
    in_doubt: AtomicBool,
    /// Latest good answers.
    pub(super) good_answers: GoodAnswers,
    /// Clients whose requests failed since the last good answer, where each client counts once.
    failed_clients: Mutex<Vec<Client>>,
    /// Instant, in nanoseconds, at which the server was last in again, or new. Zero: never.
    returned: AtomicU64,
    /// For the only server of an origin, which gets requests anyway: as `out_until`.
    dead_until: AtomicU64,
    /// Number of health checks in a row whose result contradicts `is_ill`.
    contradictions: AtomicU32,
    /// Whether the health checks have found the server unhealthy; `false` before the first check.
    is_ill: AtomicBool,
    /// Limits the log events: a server may come and go many times a second.
    log: Summary<LogLine>,
}

/// Rule by which failures take a server out.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxFails {
    /// Number of failures in a row that take the server out.
    pub in_a_row: u32,
    /// Time for which the server is out.
    pub fail_timeout: Duration,
}

/// Function that writes the log line of a change.
///
/// It gets the number of changes since the line before.
type LogLine = Box<dyn Fn(u64) + Send>;

impl ServerHealth {
    pub(super) fn new(origin: &str, url: &ServerUrl) -> Self {
        Self {
            origin: origin.into(),
            url: url.clone(),
            is_alone: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            was_unreachable: AtomicBool::new(false),
            out_until: AtomicU64::new(0),
            in_doubt: AtomicBool::new(false),
            good_answers: GoodAnswers::default(),
            failed_clients: Mutex::default(),
            returned: AtomicU64::new(0),
            dead_until: AtomicU64::new(0),
            contradictions: AtomicU32::new(0),
            is_ill: AtomicBool::new(false),
            log: Summary::every(SECOND, |line, changes| line(changes)),
        }
    }

    /// Sets whether the origin has no other server.
    ///
    /// Applies at once, also to requests under the old settings of the origin.
    pub(super) fn set_alone(&self, is_alone: bool) {
        self.is_alone.store(is_alone, Ordering::Relaxed);
    }

    /// Returns whether the origin has no other server.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone.load(Ordering::Relaxed)
    }

    /// Returns the instant until which failed requests keep the server out; zero if they do not.
    pub(super) fn out_until(&self) -> Moment {
        Moment::from_nanos(self.out_until.load(Ordering::Relaxed))
    }

    /// Returns whether health checks do not keep the server out.
    pub(super) fn passes_checks(&self) -> bool {
        !self.is_ill.load(Ordering::Relaxed)
    }

    /// Returns whether the last request at the server got no response.
    pub(super) fn has_failed(&self) -> bool {
        self.failures.load(Ordering::Relaxed) > 0
    }

    /// Records that a request got a response, which brings the server in.
    pub(super) fn note_answer(&self) {
        // Loads are cheap and shared between workers. Stores are not, and after most responses
        // nothing changes.
        if self.failures.load(Ordering::Relaxed) > 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
        if self.dead_until.load(Ordering::Relaxed) > 0 {
            self.dead_until.store(0, Ordering::Relaxed);
        }
        let until = self.out_until();
        if until > Moment::default() {
            self.note_return(until.min(clock::now()));
            self.out_until.store(0, Ordering::Relaxed);
            self.log(|origin, server, changes| {
                tracing::info!(origin, %server, changes, "the server answers again");
            });
        }
    }

    /// Records the instant at which the server came in again, or was added beside others.
    pub(super) fn note_return(&self, at: Moment) {
        self.returned.store(at.as_nanos(), Ordering::Relaxed);
    }

    /// Returns the time since the server came in again or was added; `None`: neither happened.
    pub(super) fn time_since_return(&self, now: Moment) -> Option<Duration> {
        // A server also returns when `fail_timeout` ends, which nothing records.
        let in_since = Some(self.out_until()).filter(|until| *until <= now);
        let returned = Moment::from_nanos(self.returned.load(Ordering::Relaxed));
        let returned = in_since.unwrap_or_default().max(returned);
        (returned > Moment::default()).then(|| now.since(returned))
    }

    /// Records that a request of `client` failed. Returns whether it is the first of this client.
    ///
    /// Counts the present row of failures: those since the last response.
    pub(super) fn note_failed_client(&self, client: Client) -> bool {
        let clients = self.failed_clients.lock();
        let mut clients = clients.unwrap_or_else(PoisonError::into_inner);
        if self.failures.load(Ordering::Relaxed) == 0 {
            clients.clear();
        }
        let is_first = !clients.contains(&client);
        if is_first && clients.len() < MAX_CLIENTS {
            clients.push(client);
        }
        is_first
    }

    /// Records whether the failures that take the server out next are in doubt.
    pub(super) fn note_in_doubt(&self, in_doubt: bool) {
        self.in_doubt.store(in_doubt, Ordering::Relaxed);
    }

    /// Returns whether failures in doubt keep the server out.
    pub(super) fn is_out_in_doubt(&self, now: Moment) -> bool {
        self.in_doubt.load(Ordering::Relaxed) && self.out_until() > now
    }

    /// Logs a change. `write_line` gets the origin, the server and the number of changes.
    fn log(&self, write_line: impl Fn(&str, &ServerUrl, u64) + Send + 'static) {
        let (origin, server) = (self.origin.clone(), self.url.clone());
        let line = move |changes| write_line(&origin, &server, changes);
        self.log.count_keeping_last(Box::new(line));
    }

    /// Records that a request failed. Returns whether this took the server out.
    ///
    /// `reason`: why it failed, for the log. Returns false if the server was out before.
    pub(super) fn note_fail(&self, max_fails: MaxFails, reason: &dyn Display, now: Moment) -> bool {
        let failures_before = self.failures.fetch_add(1, Ordering::Relaxed);
        let in_a_row = failures_before.saturating_add(1);
        if in_a_row < max_fails.in_a_row {
            return false;
        }
        let fail_timeout = max_fails.fail_timeout;
        let until = (now + fail_timeout).as_nanos();
        if self.is_alone() {
            self.dead_until.store(until, Ordering::Relaxed);
            return false;
        }
        let out_before = self.out_until.swap(until, Ordering::Relaxed);
        // While the server is out, failures of requests sent before are not logged again.
        if out_before <= now.as_nanos() {
            let reason = reason.to_string();
            self.log(move |origin, server, changes| {
                tracing::warn!(origin, %server, changes, in_a_row, reason, ?fail_timeout, "the server is out of use for fail_timeout: requests failed");
            });
        }
        // `out_until` stays above zero from the first time out until a response or a recovery.
        out_before == 0
    }

    /// Records the result of a health check: healthy, or why not. Only one check runs at a time.
    pub(super) fn note_check(&self, found: Result<(), String>, health: &Health, now: Moment) {
        let is_ill = self.is_ill.load(Ordering::Relaxed);
        if found.is_err() == is_ill {
            self.contradictions.store(0, Ordering::Relaxed);
            return;
        }
        let contradictions = self.contradictions.load(Ordering::Relaxed);
        let in_a_row = contradictions.saturating_add(1);
        self.contradictions.store(in_a_row, Ordering::Relaxed);
        let enough = if is_ill {
            health.healthy_after
        } else {
            health.unhealthy_after
        };
        if in_a_row < enough {
            return;
        }
        self.contradictions.store(0, Ordering::Relaxed);
        self.is_ill.store(!is_ill, Ordering::Relaxed);
        if is_ill {
            // Failures before the recovery no longer keep the server out.
            self.failures.store(0, Ordering::Relaxed);
            self.out_until.store(0, Ordering::Relaxed);
            self.dead_until.store(0, Ordering::Relaxed);
            self.note_return(now);
        }
        self.log(move |origin, server, changes| match &found {
            Ok(()) => {
                tracing::info!(origin, %server, changes, in_a_row, "the server is healthy again");
            }
            Err(reason) => {
                tracing::warn!(origin, %server, changes, in_a_row, reason, "the server is unhealthy: it is out of use");
            }
        });
    }

    /// Records that health checks no longer run: they no longer keep the server out.
    pub(super) fn end_checks(&self, now: Moment) {
        self.contradictions.store(0, Ordering::Relaxed);
        if self.is_ill.swap(false, Ordering::Relaxed) {
            self.note_return(now);
        }
    }

    /// Returns whether requests may be sent to the server, and it answers.
    ///
    /// For the only server of an origin, failures from a time with other servers do not count.
    pub(super) fn is_healthy(&self, now: Moment) -> bool {
        let until = if self.is_alone() {
            &self.dead_until
        } else {
            &self.out_until
        };
        self.passes_checks() && until.load(Ordering::Relaxed) <= now.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_nanos(1);

    fn server() -> ServerHealth {
        ServerHealth::new("app", &ServerUrl::Unix("/run/app.sock".into()))
    }

    /// Records checks, `+` good and `-` bad, of which three bad or two good ones in a row count.
    ///
    /// `e` ends the checks. Returns after each whether the server passes its checks, as 1 or 0.
    fn check(health: &ServerHealth, script: &str) -> String {
        let settings = Health {
            path: None,
            grpc: None,
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            unhealthy_after: 3,
            healthy_after: 2,
        };
        let after_step = |step| {
            match step {
                'e' => health.end_checks(NOW),
                '+' => health.note_check(Ok(()), &settings, NOW),
                _ => health.note_check(Err("500".to_owned()), &settings, NOW),
            }
            if health.passes_checks() { '1' } else { '0' }
        };
        script.chars().map(after_step).collect()
    }

    /// Records failed requests, of which `in_a_row` take the server out for an hour.
    fn fail(health: &ServerHealth, in_a_row: u32, times: usize) {
        let fail_timeout = Duration::from_secs(3600);
        for _ in 0..times {
            let max_fails = MaxFails {
                in_a_row,
                fail_timeout,
            };
            health.note_fail(max_fails, &"refused", NOW);
        }
    }

    #[test]
    fn checks_take_a_server_out_and_in_after_enough_in_a_row() {
        assert_eq!(check(&server(), "+--+----+-++"), "111111000001");
        // A server without checks passes.
        assert_eq!(check(&server(), "---e"), "1101");
    }

    #[test]
    fn recovery_found_by_checks_ends_fail_timeout_and_the_count_of_failures() {
        let health = server();
        fail(&health, 2, 2);
        assert_eq!(check(&health, "---+"), "1100");
        assert!(health.out_until() > NOW);
        assert_eq!(check(&health, "+"), "1");
        assert!(health.out_until() <= NOW);
        fail(&health, 2, 1);
        assert!(health.out_until() <= NOW, "one failure, not three");
    }

    #[test]
    fn a_good_check_does_not_end_an_outage_by_failed_requests() {
        let health = server();
        fail(&health, 1, 1);
        check(&health, "+");
        assert!(health.out_until() > NOW);
        health.note_answer();
        assert!(health.out_until() <= NOW);
    }
}
