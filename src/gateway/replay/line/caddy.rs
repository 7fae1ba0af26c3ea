//! Caddy's access log, which is JSON.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::{Line, LineError, Recorded, address, bare_target, fields, shown, time};

/// The fields that are read.
#[derive(Deserialize)]
struct Caddy<'a> {
    ts: Value,
    #[serde(borrow)]
    request: Request<'a>,
    /// Seconds, or text with a unit, as the log's `duration_format` says.
    duration: Option<Value>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow, default)]
    client_ip: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    remote_ip: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    uri: Cow<'a, str>,
    #[serde(default)]
    headers: HashMap<String, Vec<String>>,
}

/// Whether a line of JSON is Caddy's.
pub(super) fn is(line: &str) -> bool {
    let has = |text| line.contains(text);
    has("\"ts\":") && (has("\"request\":{") || has("\"request\": {"))
}

pub(super) fn read(line: &str) -> Result<Line<'_>, LineError> {
    let log: Caddy = fields(line)?;
    let ended = match &log.ts {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let read = time::any(&ended).or_else(|| time::wall(&ended));
    let (ended, ahead) = read.ok_or_else(|| LineError::Time(shown(&ended)))?;
    let took = log.duration.as_ref().and_then(span);
    let Request {
        client_ip,
        remote_ip,
        method,
        uri,
        headers,
    } = log.request;
    let header = |name: &str| {
        let found = headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = found.and_then(|(_, values)| values.first());
        Cow::Owned(value.cloned().unwrap_or_default())
    };
    let client = client_ip.or(remote_ip);
    let recorded = Recorded {
        client: client.and_then(|client| address(&client)),
        method,
        target: bare_target(uri),
        referer: header("referer"),
        user_agent: header("user-agent"),
        took: took.unwrap_or_default(),
        at_origin: took,
        ahead,
        ..Recorded::default()
    };
    Ok(Line::logged(ended.before(recorded.took), recorded))
}

/// A duration in seconds, or as text such as `1.5ms`.
fn span(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::String(text) => {
            let units = [
                ("ns", 1e-9),
                ("µs", 1e-6),
                ("us", 1e-6),
                ("ms", 1e-3),
                ("s", 1.0),
            ];
            let (number, unit) = units
                .into_iter()
                .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
            number.parse::<f64>().ok()? * unit
        }
        other => other.as_f64()?,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Form;
    use crate::replay::line::tests::get_of_agent;

    const LINE: &str = "{\"level\":\"info\",\"ts\":1795232027.5,\"logger\":\"http.log.access\",\"msg\":\"handled request\",\"request\":{\"remote_ip\":\"198.51.100.9\",\"remote_port\":\"41342\",\"client_ip\":\"192.0.2.7\",\"proto\":\"HTTP/2.0\",\"method\":\"GET\",\"host\":\"www.example\",\"uri\":\"/a?b=1\",\"headers\":{\"User-Agent\":[\"curl/8\"]}},\"bytes_read\":0,\"user_id\":\"\",\"duration\":0.25,\"size\":10,\"status\":200,\"resp_headers\":{\"Server\":[\"Caddy\"]}}";

    #[test]
    fn the_request_came_its_duration_before_the_time_of_the_line() {
        assert_eq!(Form::of(LINE), Form::Caddy);
        let expected = get_of_agent("curl/8", 1_795_232_027_250_000_000, 250, 250);
        assert_eq!(read(LINE), Ok(expected));
    }

    #[test]
    fn times_and_durations_may_be_text() {
        let text = LINE
            .replace("1795232027.5", "\"2026-11-21T04:33:47.5+01:00\"")
            .replace("\"duration\":0.25", "\"duration\":\"250ms\"")
            .replace("\"client_ip\":\"192.0.2.7\",", "");
        let line = read(&text).unwrap();
        assert_eq!(line.time.as_nanos(), 1_795_232_027_250_000_000);
        let recorded = line.recorded.unwrap();
        assert_eq!(recorded.ahead, 3600);
        assert_eq!(recorded.client, "198.51.100.9".parse().ok());
    }

    #[test]
    fn other_lines_of_caddy_are_errors() {
        for line in [
            "{\"ts\":1,\"msg\":\"serving\"}",
            "{\"ts\":1,\"request\":{",
            "{}",
        ] {
            assert!(matches!(read(line), Err(LineError::Json(_))), "{line}");
        }
        let odd = LINE.replace("1795232027.5", "true");
        assert!(matches!(read(&odd), Err(LineError::Time(_))));
    }
}
