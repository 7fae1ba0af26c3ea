//! Verdicts of the limits about one request.
//!
//! A limit is a *zone* (a rate limit by key) as a route uses it. The verdicts determine the
//! response to a rejected request, its rate limit fields, and its entry in the log.

use std::num::NonZeroU32;
use std::time::Duration;

use config::{Route, RouteLimit};
use limit::Excess;
use smallvec::SmallVec;

use crate::http::gateway::Gateway;
use crate::observe::events::LimitedRequest;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::{LimitStatus, Rejected};
use crate::zone::{Key, NEW_KEYS, Prediction, Rejection, ZoneAdmission};

/// A limit as it applied to one request, for the fields of the response.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct AppliedLimit {
    /// Index of the limit's zone.
    pub(in super::super) zone: usize,
    pub(in super::super) burst: u32,
    pub(in super::super) in_flight: Option<NonZeroU32>,
}

impl AppliedLimit {
    /// Takes the values of a route's limit.
    pub(in super::super) fn of(RouteLimit { zone, limit }: &RouteLimit) -> Self {
        Self {
            zone: *zone,
            burst: limit.burst,
            in_flight: limit.in_flight,
        }
    }
}

/// Verdict of one limit about a request.
#[derive(Debug)]
pub(in super::super) struct LimitVerdict {
    pub(in super::super) limit: AppliedLimit,
    /// Key of the request, also if it was counted in a shared bucket.
    pub(in super::super) key: Key,
    /// Whether the request was counted in the bucket that unknown keys share.
    pub(in super::super) is_flood: bool,
    /// Verdict as a label for log and metrics.
    pub(in super::super) status: LimitStatus,
    /// Level of the key's bucket when the request joined, with this request.
    pub(in super::super) excess: Excess,
    /// Prediction for the client's next request.
    pub(in super::super) prediction: Prediction,
}

impl LimitVerdict {
    /// Builds the verdict of a limit that admitted the request.
    pub(super) fn of_admission(
        limit: AppliedLimit,
        admission: &ZoneAdmission<'_>,
        dry_run: bool,
    ) -> Self {
        let grant = admission.grant();
        Self {
            limit,
            key: Key::clone(admission.key()),
            is_flood: admission.is_flood(),
            status: grant.status(dry_run),
            excess: grant.excess,
            prediction: grant.prediction,
        }
    }

    /// Builds the verdict of a limit that rejected the request.
    pub(super) fn of_rejection(
        limit: AppliedLimit,
        key: Key,
        rejection: &Rejection,
        dry_run: bool,
    ) -> Self {
        Self {
            limit,
            key,
            is_flood: rejection.is_flood,
            status: rejection.status(dry_run),
            excess: rejection.excess,
            prediction: Prediction {
                remaining: 0,
                one_more_in: rejection.retry_after,
            },
        }
    }

    /// Returns the facts about this limit for the log.
    pub(super) fn limited_request<'r>(&'r self, gateway: &'r Gateway) -> LimitedRequest<'r> {
        let zone = gateway.zone(self.limit.zone).settings();
        LimitedRequest {
            zone: &zone.name,
            names: KeyNames::of(zone),
            key: if self.is_flood { NEW_KEYS } else { &self.key },
            status: self.status.label(),
            excess: self.excess,
        }
    }

    /// Logs that the limit rejected the request.
    pub(super) fn log_rejection(&self, gateway: &Gateway, route: &Route, rejection: &Rejection) {
        let (request, reason) = (self.limited_request(gateway), rejection.reason.label());
        let events = gateway.zone(self.limit.zone).events();
        events.rejected(&request, reason, || route.name());
    }
}

/// Verdicts of the limits of one request. Most routes have one limit.
pub(super) type Verdicts = SmallVec<[LimitVerdict; 1]>;

/// Verdicts of all limits of a request. The decisive one comes first.
#[derive(Debug, Default)]
pub(in super::super) struct LimitOutcome {
    /// Verdicts, the decisive one first.
    pub(in super::super) verdicts: Verdicts,
    /// Time that the request waited in its zones.
    pub(in super::super) waited: Duration,
    /// Reason why the request must not continue; `None`: it continues.
    ///
    /// A rejected request has only one verdict.
    pub(in super::super) rejected: Option<Rejected>,
}

impl LimitOutcome {
    /// Returns the limit that determined the request's status.
    ///
    /// This is the limit that rejected the request, or else the one with the longest wait.
    pub(in super::super) fn decisive(&self) -> Option<&LimitVerdict> {
        self.verdicts.first()
    }
}
