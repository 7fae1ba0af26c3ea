//! The fields that tell a client about its limits, in the three dialects of the file.

use std::cmp::Reverse;
use std::fmt::Write;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::limits::{Judged, Judgement};
use crate::config::Dialects;
use crate::gateway::Gateway;

const X_RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RATELIMIT_RETRY_AFTER: HeaderName = HeaderName::from_static("x-ratelimit-retry-after");

/// Writes the fields that `dialects` asks for.
pub(super) fn write(
    headers: &mut HeaderMap,
    dialects: Dialects,
    gateway: &Gateway,
    judged: &Judged,
    origin_took: Option<Duration>,
) {
    if dialects.x_ratelimit {
        x_ratelimit(headers, judged);
    }
    if dialects.ratelimit {
        ratelimit(headers, gateway, judged);
    }
    if dialects.server_timing {
        server_timing(headers, judged.waited, origin_took);
    }
}

/// What the tightest limit says: the one that lets the fewest through, or that makes them wait longest.
fn x_ratelimit(headers: &mut HeaderMap, judged: &Judged) {
    let tightness = |judgement: &&Judgement| {
        (
            judgement.outlook.remaining,
            Reverse(judgement.outlook.one_more_in),
        )
    };
    let Some(Judgement { limit, outlook, .. }) = judged.judgements.iter().min_by_key(tightness)
    else {
        return;
    };
    headers.insert(X_RATELIMIT_LIMIT, number(u64::from(limit.burst) + 1));
    headers.insert(X_RATELIMIT_REMAINING, number(outlook.remaining.into()));
    let retry_after = whole_seconds(outlook.retry_after());
    headers.insert(X_RATELIMIT_RETRY_AFTER, number(retry_after));
}

fn number(value: u64) -> HeaderValue {
    match value {
        // Of three numbers one or two are this.
        0 => const { HeaderValue::from_static("0") },
        _ => HeaderValue::from(value),
    }
}

/// draft-ietf-httpapi-ratelimit-headers-11: the quota is what an empty bucket takes at once, its window how long a full
/// one takes to empty; `t` is when there will be one more than remain.
fn ratelimit(headers: &mut HeaderMap, gateway: &Gateway, judged: &Judged) {
    let (mut policies, mut states) = (String::new(), String::new());
    for Judgement {
        zone,
        limit,
        outlook,
        ..
    } in &judged.judgements
    {
        let settings = gateway.zone(*zone).settings();
        let (name, quota) = (&settings.name, u64::from(limit.burst) + 1);
        let window = whole_seconds(settings.rate.time_for(quota)).max(1);
        let (remaining, next) = (outlook.remaining, whole_seconds(outlook.one_more_in));
        let comma = if policies.is_empty() { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(policies, "{comma}\"{name}\";q={quota};w={window}");
        let _ = write!(states, "{comma}\"{name}\";r={remaining};t={next}");
    }
    if !policies.is_empty() {
        set(headers, "ratelimit-policy", &policies);
        set(headers, "ratelimit", &states);
    }
}

fn server_timing(headers: &mut HeaderMap, waited: Duration, origin_took: Option<Duration>) {
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    let mut timing = format!("queue;dur={:.1}", millis(waited));
    if let Some(took) = origin_took {
        let _ = write!(timing, ", origin;dur={:.1}", millis(took));
    }
    // What the origin says of its own times stays.
    if let Ok(value) = HeaderValue::from_str(&timing) {
        headers.append(HeaderName::from_static("server-timing"), value);
    }
}

fn set(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// Whole seconds, rounded up: a client that waits this long does not come too early.
pub(super) fn whole_seconds(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}
