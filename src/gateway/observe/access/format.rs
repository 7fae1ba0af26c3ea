//! Format of the access log's lines: text as in nginx, and JSON. `Entry` is one line.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use limit::{Excess, Moment};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::Entry;
use crate::observe::escape::{escape, escape_unquoted, in_json};
use crate::time::clock;

/// Appends each value that is present (`Some`), in its format.
macro_rules! append {
    ($line:ident; $($format:literal, $value:expr;)*) => {
        // Writing to a string does not fail.
        $(if let Some(value) = $value {
            let _ = write!($line, $format, value);
        })*
    };
}

/// Formats a line in nginx's `combined` format, followed by the limit's fields.
///
/// These are `zone="…" key="…" limit_status=… excess=… queue=… origin_queue=… origin=… duration=…
/// origin_rejected=…`.
pub(crate) fn text(entry: &Entry) -> String {
    let mut line = String::with_capacity(256);
    let client = entry
        .client
        .map_or_else(|| "-".to_owned(), |client| client.to_string());
    let time = timestamp(entry.time).strftime("%d/%b/%Y:%H:%M:%S +0000");
    let request_line = entry.line.as_ref().map_or_else(
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
        "{client} - - [{time}] \"{request_line}\" {} {} \"{}\" \"{}\"",
        entry.status,
        entry.bytes,
        quoted(entry.referer.as_deref()),
        quoted(entry.user_agent.as_deref()),
    );
    if entry.is_refused {
        line.push_str(" refused");
    }
    let limited = entry.limited.as_ref();
    append! { line;
        " zone=\"{}\"", limited.map(|limited| limited.zone);
        " key=\"{}\"", entry.key();
        " limit_status={}", limited.map(|limited| limited.status.label());
        " excess={:.3}", limited.and_then(|limited| limited.excess).map(Excess::requests);
    }
    if limited.is_some_and(|limited| limited.is_flood) {
        line.push_str(" flooded");
    }
    let (plan, plan_zone) = entry.plan();
    append! { line;
        " queue={:.6}", entry.queue.map(seconds);
        " origin_queue={:.6}", entry.origin_queue.map(seconds);
        " origin={:.6}", entry.origin_took.map(seconds);
        " duration={:.6}", Some(seconds(entry.duration));
        " origin_rejected={}", entry.origin_rejected;
        " shared={}", entry.shared;
        " plan={}", plan;
        " plan_zone={}", plan_zone;
        " class={}", entry.class;
        " cost={}", entry.cost;
        " request_id={}", entry.request_id.map(|id| escape(id.as_bytes()));
    }
    line
}

/// Formats a line in JSON.
pub(crate) fn json(entry: &Entry) -> String {
    // Strings and numbers always have a JSON form.
    in_json(serde_json::to_string(entry).unwrap_or_default())
}

/// Writes the fields that have a value into a map.
macro_rules! fields {
    ($map:ident; $($name:ident = $value:expr;)*) => {
        $(if let Some(value) = $value {
            $map.serialize_entry(stringify!($name), &value)?;
        })*
    };
}

/// Object of a line in JSON.
impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (limited, line) = (self.limited.as_ref(), self.line.as_ref());
        let (plan, plan_zone) = self.plan();
        let mut map = to.serialize_map(None)?;
        fields! { map;
            time = Some(timestamp(self.time).to_string());
            client = self.client;
            method = line.map(|line| line.method);
            target = line.map(|line| text_of(&line.target));
            protocol = line.map(|line| line.protocol);
            request_id = self.request_id;
            status = Some(self.status);
            bytes = Some(self.bytes);
            route = self.route.as_deref();
            origin = self.origin;
            server = self.server.as_deref();
            shared = self.shared;
            refused = self.is_refused.then_some(true);
            zone = limited.map(|limited| limited.zone);
            key = self.key();
            limit_status = limited.map(|limited| limited.status.label());
            excess = limited.and_then(|limited| limited.excess).map(Excess::requests);
            flooded = limited.and_then(|limited| limited.is_flood.then_some(true));
            queue_seconds = self.queue.map(seconds);
            origin_queue_seconds = self.origin_queue.map(seconds);
            origin_rejected = self.origin_rejected;
            plan = plan;
            plan_zone = plan_zone;
            class = self.class;
            cost = self.cost;
            origin_seconds = self.origin_took.map(seconds);
            duration_seconds = Some(seconds(self.duration));
            referer = self.referer.as_deref();
            user_agent = self.user_agent.as_deref();
        }
        map.end()
    }
}

/// Converts bytes to text: unchanged if they are UTF-8, otherwise escaped.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| escape_unquoted(bytes).into(), Cow::Borrowed)
}

/// Converts a duration to seconds.
fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

/// Converts an instant to a time of the wall clock, with microseconds.
fn timestamp(moment: Moment) -> Timestamp {
    let micros = i64::try_from(clock::to_wall(moment).as_nanos() / 1_000).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}
