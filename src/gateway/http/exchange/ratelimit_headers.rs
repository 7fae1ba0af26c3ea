//! Response fields that report the limits to a client, in the configurable forms.
//!
//! A *verdict* is the decision of one limit about the request. With *collapse*, requests share one
//! answer of the origin. The *gate* limits all requests to an origin.

use std::cmp::Reverse;
use std::fmt::Write;
use std::time::Duration;

use config::{RatelimitHeader, Route};
use limit::Rate;

use super::limits::{AppliedLimit, LimitOutcome};
use super::record::RequestRecord;
use crate::collapse::ACCEL_EXPIRES;
use crate::gate::GateRejection;
use crate::http::message::{FieldName, Put, put_number};
use crate::observe::metrics::SharedOutcome;

/// Returns whether the gateway replaces this field of the origin by its own.
pub(super) fn replaces(which: &[RatelimitHeader], known: FieldName) -> bool {
    match known {
        FieldName::XRateLimit => which.contains(&RatelimitHeader::XRatelimit),
        FieldName::RateLimit | FieldName::RateLimitPolicy => {
            which.contains(&RatelimitHeader::Ratelimit)
        }
        _ => false,
    }
}

/// Writes the fields that the route selects.
pub(super) fn write(
    put: Put<'_>,
    route: &Route,
    record: &RequestRecord<'_>,
    outcome: &LimitOutcome,
) {
    let which = &route.headers;
    if which.contains(&RatelimitHeader::XRatelimit) {
        match record.gate_rejection() {
            Some(rejection) => write_x_ratelimit_of_gate(put, route, record, rejection),
            None => write_x_ratelimit(put, record, outcome),
        }
    }
    if which.contains(&RatelimitHeader::Ratelimit) {
        write_ratelimit(put, route, record, outcome);
    }
    if which.contains(&RatelimitHeader::ServerTiming) {
        write_server_timing(put, outcome.waited, record);
    }
}

/// Returns whether a field of the origin is not forwarded because of collapsing.
///
/// `X-Accel-Expires` is an instruction to the gateway. `X-Drip-Shared` is replaced if the gateway
/// writes its own.
pub(super) fn is_about_sharing(route: &Route, name: &[u8]) -> bool {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    let writes_shared = || route.headers.contains(&RatelimitHeader::Shared);
    route.collapse.is_some() && (is(ACCEL_EXPIRES) || is("x-drip-shared") && writes_shared())
}

/// Writes `X-Drip-Shared`, if the route selects it and the answer is shared.
pub(super) fn write_shared(put: Put<'_>, route: &Route, record: &RequestRecord<'_>) {
    let is_selected = route.headers.contains(&RatelimitHeader::Shared);
    if is_selected && record.shared != SharedOutcome::Alone {
        put(b"X-Drip-Shared", record.shared.label().as_bytes());
    }
}

/// Writes the `X-RateLimit-…` fields of a request that the origin's gate rejected.
///
/// No request would be accepted before `retry_after`, whatever the limits would allow.
fn write_x_ratelimit_of_gate(
    put: Put<'_>,
    route: &Route,
    record: &RequestRecord<'_>,
    rejection: &GateRejection,
) {
    let mut limits = route.limits.iter();
    let quota = limits.find_map(|limit| quota(record, AppliedLimit::of(limit), &[]));
    if let Some((quota, _)) = quota {
        let retry_after = whole_seconds(rejection.retry_after).max(1);
        put_x_ratelimit(put, quota, 0, retry_after);
    }
}

/// Returns the number of requests that an unused key may send at once, and the key's rate.
///
/// This is `burst`, and the requests that pass without it: one by its rate, or `in_flight` without
/// a rate. Returns `None` if nothing limits this key.
fn quota(record: &RequestRecord<'_>, limit: AppliedLimit, key: &[u8]) -> Option<(u64, Rate)> {
    let rate = record.gateway.zone(limit.zone).settings().rate_of(key);
    let beside_burst = if rate.is_unlimited() {
        limit.in_flight?.get()
    } else {
        1
    };
    Some((u64::from(limit.burst) + u64::from(beside_burst), rate))
}

/// Writes the `X-RateLimit-…` fields for the tightest limit.
///
/// The tightest limit accepts the fewest requests now; of several, the one with the longest wait.
fn write_x_ratelimit(put: Put<'_>, record: &RequestRecord<'_>, outcome: &LimitOutcome) {
    let limits = outcome.verdicts.iter().filter_map(|verdict| {
        let (quota, _) = quota(record, verdict.limit, &verdict.key)?;
        Some((quota, verdict.prediction))
    });
    let tightest = limits
        .min_by_key(|(_, prediction)| (prediction.remaining, Reverse(prediction.one_more_in)));
    if let Some((quota, prediction)) = tightest {
        let retry_after = whole_seconds(prediction.retry_after());
        put_x_ratelimit(put, quota, prediction.remaining, retry_after);
    }
}

/// Writes the three `X-RateLimit-…` fields.
fn put_x_ratelimit(put: Put<'_>, quota: u64, remaining: u32, retry_after: u64) {
    put_number(put, b"X-RateLimit-Limit", quota);
    put_number(put, b"X-RateLimit-Remaining", remaining);
    put_number(put, b"X-RateLimit-Retry-After", retry_after);
}

/// Writes the fields of draft-ietf-httpapi-ratelimit-headers-11.
///
/// The quota is the number of requests that an empty bucket accepts at once. The window is the time
/// in which a full bucket empties. For a limit with only `in_flight` the window is one second,
/// because the end of running requests is unknown. `r` is the number of requests that are possible
/// now, `t` the time until one more is possible.
///
/// If the origin's gate rejected the request, no request is possible before its `retry_after`,
/// whatever the limits would allow.
fn write_ratelimit(
    put: Put<'_>,
    route: &Route,
    record: &RequestRecord<'_>,
    outcome: &LimitOutcome,
) {
    let (mut policies, mut states) = (String::new(), String::new());
    let mut add = |limit: AppliedLimit, key: &[u8], remaining: u32, one_more_in: Duration| {
        let Some((quota, rate)) = quota(record, limit, key) else {
            return;
        };
        let name = &record.gateway.zone(limit.zone).settings().name;
        let window = whole_seconds(rate.time_for(quota)).max(1);
        let next = whole_seconds(one_more_in);
        let comma = if policies.is_empty() { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(policies, "{comma}\"{name}\";q={quota};w={window}");
        let _ = write!(states, "{comma}\"{name}\";r={remaining};t={next}");
    };
    if let Some(rejection) = record.gate_rejection() {
        for limit in &route.limits {
            add(AppliedLimit::of(limit), &[], 0, rejection.retry_after);
        }
    } else {
        for verdict in &outcome.verdicts {
            let prediction = verdict.prediction;
            let (limit, key) = (verdict.limit, &verdict.key);
            add(limit, key, prediction.remaining, prediction.one_more_in);
        }
    }
    if !policies.is_empty() {
        put(b"RateLimit-Policy", policies.as_bytes());
        put(b"RateLimit", states.as_bytes());
    }
}

/// Writes `Server-Timing`.
///
/// The origin's own `Server-Timing` is kept, too.
fn write_server_timing(put: Put<'_>, waited: Duration, record: &RequestRecord<'_>) {
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    let mut timing = format!("queue;dur={:.1}", millis(waited));
    let at_gate = record.waited_at_gate(|| record.answered_at());
    for (name, span) in [("origin_queue", at_gate), ("origin", record.origin_took)] {
        if let Some(span) = span {
            let _ = write!(timing, ", {name};dur={:.1}", millis(span));
        }
    }
    put(b"Server-Timing", timing.as_bytes());
}

/// Returns whole seconds, rounded up: a client that waits this long does not return too early.
pub(super) fn whole_seconds(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}
