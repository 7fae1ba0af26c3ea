//! A request as a line of text, and as JSON.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::IpAddr;

use jiff::Timestamp;
use limit::{Excess, Moment};
use serde::Serialize;

use super::Entry;
use crate::observe::escape::{escape, escape_unquoted, in_json};
use crate::time::clock;

/// A line in nginx's `combined` format, followed by the limit's fields.
///
/// These are `zone="…" key="…" limit_status=… excess=… queue=… origin_queue=… origin=… duration=…
/// origin_rejected=…`.
pub(crate) fn text(entry: &Entry) -> String {
    let mut line = String::with_capacity(256);
    let client = entry
        .client
        .map_or_else(|| "-".to_owned(), |client| client.to_string());
    let time = timestamp(entry.time).strftime("%d/%b/%Y:%H:%M:%S +0000");
    let asked = entry.line.as_ref().map_or_else(
        || "-".to_owned(),
        |line| {
            let (method, target) = (escape(line.method.as_bytes()), escape(&line.target));
            format!("{method} {target} {}", line.protocol)
        },
    );
    let quoted =
        |text: Option<&str>| text.map_or_else(|| "-".to_owned(), |text| escape(text.as_bytes()));
    // Writing to a string does not fail.
    let _ = write!(
        line,
        "{client} - - [{time}] \"{asked}\" {} {} \"{}\" \"{}\"",
        entry.status,
        entry.bytes,
        quoted(entry.referer.as_deref()),
        quoted(entry.user_agent.as_deref()),
    );
    if entry.is_refused {
        line.push_str(" refused");
    }
    if let Some(limited) = &entry.limited {
        let _ = write!(line, " zone=\"{}\"", limited.zone);
    }
    if let Some(key) = entry.key() {
        let _ = write!(line, " key=\"{key}\"");
    }
    if let Some(limited) = &entry.limited {
        let _ = write!(line, " limit_status={}", limited.status.label());
        if let Some(excess) = limited.excess {
            let _ = write!(line, " excess={:.3}", excess.requests());
        }
        if limited.is_flood {
            line.push_str(" flooded");
        }
    }
    for (name, span) in [
        ("queue", entry.queue),
        ("origin_queue", entry.origin_queue),
        ("origin", entry.origin_took),
        ("duration", Some(entry.duration)),
    ] {
        if let Some(span) = span {
            let _ = write!(line, " {name}={:.6}", span.as_secs_f64());
        }
    }
    if let Some(reason) = entry.origin_rejected {
        let _ = write!(line, " origin_rejected={reason}");
    }
    if let Some(shared) = entry.shared {
        let _ = write!(line, " shared={shared}");
    }
    let (plan, plan_zone) = entry.plan();
    if let Some(plan) = plan {
        let _ = write!(line, " plan={plan}");
    }
    if let Some(zone) = plan_zone {
        let _ = write!(line, " plan_zone={zone}");
    }
    if let Some(class) = entry.class {
        let _ = write!(line, " class={class}");
    }
    if let Some(cost) = entry.cost {
        let _ = write!(line, " cost={cost}");
    }
    if let Some(id) = entry.request_id {
        let _ = write!(line, " request_id={}", escape(id.as_bytes()));
    }
    line
}

#[derive(Serialize)]
struct Json<'a> {
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    status: u16,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_status: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excess: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flooded: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_queue_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_rejected: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_zone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_seconds: Option<f64>,
    duration_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    referer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'a str>,
}

pub(crate) fn json(entry: &Entry) -> String {
    let (limited, line) = (entry.limited.as_ref(), entry.line.as_ref());
    let (plan, plan_zone) = entry.plan();
    let line = Json {
        time: timestamp(entry.time).to_string(),
        client: entry.client,
        method: line.map(|line| line.method),
        target: line.map(|line| text_of(&line.target)),
        protocol: line.map(|line| line.protocol),
        request_id: entry.request_id,
        status: entry.status,
        bytes: entry.bytes,
        route: entry.route.as_deref(),
        origin: entry.origin,
        server: entry.server.as_deref(),
        shared: entry.shared,
        refused: entry.is_refused.then_some(true),
        zone: limited.map(|limited| limited.zone),
        key: entry.key(),
        limit_status: limited.map(|limited| limited.status.label()),
        excess: limited
            .and_then(|limited| limited.excess)
            .map(Excess::requests),
        flooded: limited.and_then(|limited| limited.is_flood.then_some(true)),
        queue_seconds: entry.queue.map(|span| span.as_secs_f64()),
        origin_queue_seconds: entry.origin_queue.map(|span| span.as_secs_f64()),
        origin_rejected: entry.origin_rejected,
        plan,
        plan_zone,
        class: entry.class,
        cost: entry.cost,
        origin_seconds: entry.origin_took.map(|span| span.as_secs_f64()),
        duration_seconds: entry.duration.as_secs_f64(),
        referer: entry.referer.as_deref(),
        user_agent: entry.user_agent.as_deref(),
    };
    // Strings and numbers always have a JSON form.
    in_json(serde_json::to_string(&line).unwrap_or_default())
}

/// Bytes as text: unchanged if they are UTF-8, otherwise escaped.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| escape_unquoted(bytes).into(), Cow::Borrowed)
}

/// The time with microseconds, as the log shows it.
fn timestamp(moment: Moment) -> Timestamp {
    let micros = i64::try_from(clock::to_wall(moment).as_nanos() / 1_000).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}
