//! One server of an origin: its health, its metrics and its requests.
//!
//! A server is *in* if it gets requests, else *out*: by failed requests, or by health checks.
//! `health` decides that. `incidents` has the latest failure and check, for the API.

use std::fmt::Display;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::{Health, ServerUrl};
use limit::Moment;
use tokio::sync::watch;

use super::error::OriginError;
use super::failure_kind::FailureKind;
use super::good_answers::Client;
use super::health::{MaxFails, ServerHealth};
use super::in_flight_table::InFlightTable;
use super::incidents::{Availability, Failure, Incidents, LastCheck, OutBy};
use super::shown_certificate::ShownCertificate;
use super::stream::OriginStream;
use crate::observe::metrics::{Outcome, ServerMetrics};

/// Server of an origin, as long as it is in the file. Reloads keep it.
pub struct Server {
    url: ServerUrl,
    /// Requests at the server.
    pub(crate) in_flight: InFlightTable,
    pub(super) health: ServerHealth,
    incidents: Mutex<Incidents>,
    certificate: ShownCertificate,
    /// Counts and times of responses and failures.
    pub(crate) metrics: ServerMetrics,
    /// Whether the server has left the file.
    retirement: watch::Sender<bool>,
}

impl Server {
    pub(super) fn new(origin: &str, url: &ServerUrl) -> Self {
        Self {
            url: url.clone(),
            in_flight: InFlightTable::default(),
            health: ServerHealth::new(origin, url),
            incidents: Mutex::default(),
            certificate: ShownCertificate::new(origin),
            metrics: ServerMetrics::default(),
            retirement: watch::Sender::new(false),
        }
    }

    pub(crate) fn url(&self) -> &ServerUrl {
        &self.url
    }

    /// Returns whether the server gets requests, and if not, since when and why.
    pub(crate) fn availability(&self, now: Moment) -> Availability {
        let past = self.incidents();
        let out = |since: Option<Moment>, by| Availability::Out(since.unwrap_or(now), by);
        if !self.health.passes_checks() {
            return out(past.out_by_checks, OutBy::Checks);
        }
        if !self.is_in(now) {
            let until = self.health.out_until();
            return out(past.out_by_failures, OutBy::Failures(until));
        }
        let check = past.last_check.as_ref();
        let is_failing = self.health.has_failed() || check.is_some_and(|it| it.found.is_err());
        if is_failing {
            Availability::Failing
        } else {
            Availability::InUse
        }
    }

    fn incidents(&self) -> MutexGuard<'_, Incidents> {
        let incidents = self.incidents.lock();
        incidents.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last request that the server did not answer.
    pub(crate) fn last_failure(&self) -> Option<Failure> {
        self.incidents().last_failure.clone()
    }

    /// Returns the last health check.
    pub(crate) fn last_check(&self) -> Option<LastCheck> {
        self.incidents().last_check.clone()
    }

    /// Returns whether the server is in: requests may be sent to it.
    pub(super) fn is_in(&self, now: Moment) -> bool {
        self.health.passes_checks() && (self.health.is_alone() || self.out_for(now).is_zero())
    }

    /// Returns the time until the server may be in again.
    ///
    /// At least `check_interval`, the interval of its health checks, if they keep it out.
    pub(super) fn time_until_in(&self, check_interval: Duration, now: Moment) -> Duration {
        if self.health.passes_checks() {
            self.out_for(now)
        } else {
            self.out_for(now).max(check_interval)
        }
    }

    /// Returns the time for which failed requests still keep the server out.
    fn out_for(&self, now: Moment) -> Duration {
        self.health.out_until().since(now)
    }

    /// Returns whether the server is worth an attempt during an outage of its origin.
    ///
    /// True if nothing but failed connections keeps the server out.
    pub(super) fn may_be_back(&self, now: Moment) -> bool {
        self.is_in(now) || (self.health.passes_checks() && self.was_unreachable())
    }

    /// Returns whether the last failed request got no connection.
    fn was_unreachable(&self) -> bool {
        self.health.was_unreachable.load(Ordering::Relaxed)
    }

    /// Records that the server was reached in an outage.
    ///
    /// If failed connections had taken it out, it is in again.
    pub(super) fn note_reached(&self) {
        if self.was_unreachable() {
            self.health.note_answer();
        }
    }

    /// Records a good answer to a client.
    pub(super) fn note_good_answer(&self, client: Client, now: Moment) {
        self.health.note_answer();
        self.health.good_answers.note(client, now);
    }

    /// Records a failing answer, with its reason.
    ///
    /// `max_fails`: the rule by which it counts; `None`: it does not count.
    pub(super) fn note_bad_answer(&self, reason: &str, max_fails: Option<MaxFails>, now: Moment) {
        if max_fails.is_some() {
            self.health.was_unreachable.store(false, Ordering::Relaxed);
        }
        let text = format!("{}: {reason}", self.url);
        self.note_failure(&reason, max_fails, FailureKind::Other, text, now);
    }

    /// Records that an attempt got no response after `took`.
    ///
    /// `max_fails`: the rule by which it counts; `None`: it does not count.
    pub(super) fn note_no_answer(
        &self,
        error: &OriginError,
        max_fails: Option<MaxFails>,
        took: Duration,
        now: Moment,
    ) {
        let outcome = error.outcome();
        self.metrics.count(outcome, took);
        if max_fails.is_some() {
            let is_unreachable = outcome == Outcome::Unreachable;
            (self.health.was_unreachable).store(is_unreachable, Ordering::Relaxed);
            if !error.is_in_doubt() {
                self.health.note_in_doubt(false);
            }
        }
        let kind = FailureKind::of(error);
        self.note_failure(error, max_fails, kind, error.to_string(), now);
    }

    /// Records a failure: for the health, and as the latest one for the API.
    ///
    /// If it is of the same kind as the previous failure, and no good answer came since, the API
    /// shows both as one that began with the previous failure.
    fn note_failure(
        &self,
        reason: &dyn Display,
        max_fails: Option<MaxFails>,
        kind: FailureKind,
        text: String,
        now: Moment,
    ) {
        let mut past = self.incidents();
        if max_fails.is_some_and(|it| self.health.note_fail(it, reason, now)) {
            past.out_by_failures = Some(now);
        }
        let answered_at = self.health.good_answers.last(None);
        let is_continued =
            |it: &&Failure| it.kind == kind && answered_at.is_none_or(|at| at <= it.since);
        let before = past.last_failure.as_ref().filter(is_continued);
        past.last_failure = Some(Failure {
            at: now,
            since: before.map_or(now, |it| it.since),
            kind,
            text,
        });
    }

    /// Records the certificate that a new connection shows, and returns the connection.
    pub(super) fn note_opened(&self, opened: io::Result<OriginStream>) -> io::Result<OriginStream> {
        self.certificate.note(&self.url, &opened);
        opened
    }

    /// Returns the expiry of the certificate shown last, in Unix time; `None`: none was shown.
    pub(crate) fn certificate_expires(&self) -> Option<i64> {
        self.certificate.expires()
    }

    /// Records the result of a health check: the answer, or why the server is not healthy.
    pub(super) fn note_check(&self, found: Result<String, String>, health: &Health, now: Moment) {
        let mut past = self.incidents();
        let passed_before = self.health.passes_checks();
        let without_answer = found.as_ref().map(drop).map_err(String::clone);
        self.health.note_check(without_answer, health, now);
        if passed_before && !self.health.passes_checks() {
            past.out_by_checks = Some(now);
        }
        past.last_check = Some(LastCheck { at: now, found });
    }

    /// Records that health checks no longer run.
    pub(super) fn end_checks(&self, now: Moment) {
        self.health.end_checks(now);
        self.incidents().last_check = None;
    }

    /// Records that the server has left the file.
    pub(super) fn retire(&self) {
        self.retirement.send_replace(true);
    }

    pub(super) fn is_retired(&self) -> bool {
        *self.retirement.borrow()
    }

    /// Waits until the server leaves the file.
    pub(super) fn retirement(&self) -> impl Future<Output = ()> + use<> {
        let mut retirement = self.retirement.subscribe();
        async move {
            // If the sender is dropped, the server has left the file, too.
            let _sender_dropped = retirement.wait_for(|is_retired| *is_retired).await;
        }
    }
}
