//! Log lines about requests at their limits.
//!
//! The access log has a line for each request. The lines of this module show which keys of a zone
//! are limited, and why. There are few of them, however many requests come.

use std::error::Error;
use std::time::Duration;

use limit::{Excess, Moment};
use tracing::field::display;

use crate::observe::forwarders::Forwarders;
use crate::observe::key_names::KeyNames;
use crate::observe::networks::Networks;
use crate::observe::summary::{MINUTE, Summary};
use crate::observe::throttle::Throttle;

/// A request that waited or was rejected, or would have been in a dry run.
pub struct LimitedRequest<'r> {
    /// Name of the zone.
    pub zone: &'r str,
    /// Key of the request in the zone.
    pub key: &'r [u8],
    /// Display of the zone's keys.
    pub names: KeyNames<'r>,
    /// The `limit_status` of the access log.
    pub status: &'static str,
    /// Level of the bucket with the request.
    pub excess: Excess,
}

/// Log events of one zone: at most one a minute for rejections, and one a second for delays.
pub struct Events {
    /// Untrusted peers of the zone's limited requests that name clients.
    pub forwarders: Forwarders,
    rejections: Summary<Rejection>,
    delays: Throttle,
}

/// A rejected request, as its line describes it.
struct Rejection {
    zone: String,
    key: String,
    status: &'static str,
    reason: &'static str,
    route: String,
    excess: f64,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            forwarders: Forwarders::default(),
            rejections: Summary::every(MINUTE, |rejection: &Rejection, count| {
                tracing::info!(
                    zone = rejection.zone,
                    count,
                    key = %rejection.key,
                    reason = rejection.reason,
                    route = rejection.route,
                    status = rejection.status,
                    excess = rejection.excess,
                    "limiting requests"
                );
            }),
            delays: Throttle::default(),
        }
    }
}

impl Events {
    /// Logs a request that was rejected for this reason, or would have been in a dry run.
    pub fn rejected(
        &self,
        request: &LimitedRequest,
        reason: &'static str,
        route: impl FnOnce() -> String,
    ) {
        self.rejections.count_keeping_first(|| Rejection {
            zone: request.zone.to_owned(),
            key: request.names.short_quoted(request.key),
            status: request.status,
            reason,
            route: route(),
            excess: rounded(request.excess),
        });
    }

    /// Logs a request that waited, or would have in a dry run.
    ///
    /// At level `debug`, because waiting is normal.
    pub fn delayed(&self, request: &LimitedRequest, now: Moment) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        if let Some(hidden) = self.delays.show(now) {
            tracing::debug!(
                zone = request.zone,
                key = %request.names.short_quoted(request.key),
                status = request.status,
                excess = rounded(request.excess),
                hidden,
                "delaying requests"
            );
        }
    }
}

/// Converts the level of a bucket to requests, with one decimal.
fn rounded(excess: Excess) -> f64 {
    (excess.requests() * 10.0).round() / 10.0
}

/// Log events of the gate of one origin: at most one a minute for rejections, and one a second of
/// each other kind.
///
/// A gate bounds the pace of all requests to the origin.
pub struct GateEvents {
    /// Clients of the requests that waited or were rejected, if keys do not share the gate.
    pub networks: Networks,
    rejections: Summary<RejectionAtGate>,
    outages: Throttle,
    recoveries: Throttle,
}

/// A request that a gate rejected, as its line describes it.
pub struct RejectionAtGate {
    /// Name of the origin.
    pub origin: String,
    /// Name of the key at the gate, for a text between quotes.
    ///
    /// `None` if keys do not share the gate.
    pub key: Option<String>,
    /// Reason, as in the metrics.
    pub reason: &'static str,
    /// Name of the route.
    pub route: String,
}

impl Default for GateEvents {
    fn default() -> Self {
        let rejections = Summary::every(MINUTE, |rejection: &RejectionAtGate, count| {
            let RejectionAtGate {
                origin,
                key,
                reason,
                route,
            } = rejection;
            let key = key.as_ref().map(display);
            tracing::info!(
                origin,
                count,
                key,
                reason,
                route,
                "the origin's gate rejects requests"
            );
        });
        Self {
            networks: Networks::default(),
            rejections,
            outages: Throttle::default(),
            recoveries: Throttle::default(),
        }
    }
}

impl GateEvents {
    /// Logs a request that the gate rejected.
    pub fn rejected(&self, describe: impl FnOnce() -> RejectionAtGate) {
        self.rejections.count_keeping_first(describe);
    }

    /// Logs that the origin cannot be reached and that its requests wait.
    pub fn outage_began(&self, origin: &str, error: &dyn Error, now: Moment) {
        if let Some(hidden) = self.outages.show(now) {
            tracing::warn!(origin, %error, hidden, "the origin cannot be reached: its requests wait");
        }
    }

    /// Logs that the origin can be reached again, with the duration and the number of waiters.
    pub fn outage_over(&self, origin: &str, lasted: Duration, waiting: usize, now: Moment) {
        if let Some(hidden) = self.recoveries.show(now) {
            tracing::info!(
                origin,
                ?lasted,
                waiting,
                hidden,
                "the origin can be reached again"
            );
        }
    }
}
