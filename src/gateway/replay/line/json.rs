//! Parsers of JSON access logs: the gateway's own, nginx's, Caddy's and Traefik's.
//!
//! An nginx log in JSON has a field for each variable, with the variable's name. `FieldPaths` says
//! where a log has the time, client, method and target.

use std::borrow::Cow;
use std::time::Duration;

use limit::{Cost, Moment};
use serde_json::Value;

use super::{
    Line, LineError, Recorded, parse_address, request_parts, spans, time, truncated, without_host,
};

/// JSON pointers (RFC 6901) to the data of a request. The first one with a value counts.
struct FieldPaths {
    time: &'static [&'static str],
    client: &'static [&'static str],
    method: &'static [&'static str],
    target: &'static [&'static str],
}

/// The gateway's own log, and nginx's. The most precise time comes first.
const OWN: FieldPaths = FieldPaths {
    time: &[
        "/msec",
        "/time",
        "/time_iso8601",
        "/timestamp",
        "/@timestamp",
        "/time_local",
    ],
    client: &["/client", "/remote_addr"],
    method: &["/method", "/request_method"],
    target: &["/target", "/request_uri", "/uri"],
};

/// Caddy's log.
const CADDY: FieldPaths = FieldPaths {
    time: &["/ts"],
    client: &["/request/client_ip", "/request/remote_ip"],
    method: &["/request/method"],
    target: &["/request/uri"],
};

/// Traefik's log.
const TRAEFIK: FieldPaths = FieldPaths {
    time: &["/StartUTC"],
    client: &["/ClientHost"],
    method: &["/RequestMethod"],
    target: &["/RequestPath"],
};

impl FieldPaths {
    /// Parses a line. Returns its JSON, its time, and the data at these pointers.
    fn read(&self, line: &str) -> Result<(Value, Moment, Recorded<'static>), LineError> {
        let log: Value = serde_json::from_str(line)
            .map_err(|error| LineError::Json(truncated(&error.to_string())))?;
        let text = first(&log, self.time).ok_or_else(|| {
            // Without the slash at the begin of a pointer.
            let names = self.time.iter().map(|path| &path[1..]);
            let names = names.collect::<Vec<_>>().join(", ");
            LineError::Json(format!("it has none of these times: {names}"))
        })?;
        let parsed = time::parse_any(&text).or_else(|| time::parse_wall(&text));
        let (time, utc_offset) = parsed.ok_or_else(|| LineError::Time(truncated(&text)))?;
        // The gateway logs no target for a request that it could not parse.
        let target = first(&log, self.target).unwrap_or_default();
        let recorded = Recorded {
            client: first(&log, self.client).and_then(|client| parse_address(&client)),
            method: first(&log, self.method).unwrap_or_default().into(),
            target: without_host(&target).to_owned().into(),
            utc_offset,
            ..Recorded::default()
        };
        Ok((log, time, recorded))
    }
}

/// Parses a line of the gateway's own log, or of nginx's.
pub(super) fn read(line: &str) -> Result<Line<'_>, LineError> {
    let (log, ended, mut recorded) = OWN.read(line)?;
    if recorded.target.is_empty()
        && let Some(request) = first(&log, &["/request"])
    {
        let (method, target) = request_parts(&request);
        (recorded.method, recorded.target) = (method.to_owned().into(), target.to_owned().into());
    }
    let span_of = |name: &str| span(&log[name]);
    // The first one is of the gateway's own log, the second one of nginx's.
    let (own_duration, request_time) = (span_of("duration_seconds"), span_of("request_time"));
    recorded.took = own_duration.or(request_time).unwrap_or_default();
    recorded.at_origin = if text(&log["origin_seconds"]).is_some() {
        let queues = [span_of("queue_seconds"), span_of("origin_queue_seconds")];
        spans::after_queues(own_duration, queues)
    } else if let Some(times) = text(&log["upstream_response_time"]) {
        spans::sum_of_servers(&times)
    } else {
        request_time
    };
    // The gateway leaves a field out if the header was absent; nginx writes `-`.
    let header = |own_name: &str, nginx_path: &str| {
        let value = text(&log[own_name]).or_else(|| first(&log, &[nginx_path]));
        Cow::from(value.unwrap_or_default())
    };
    recorded.referer = header("referer", "/http_referer");
    recorded.user_agent = header("user_agent", "/http_user_agent");
    let keyed = text(&log["zone"]).zip(text(&log["key"]));
    recorded.keyed = keyed.map(|(zone, key)| (zone.into(), key.into()));
    let cost = first(&log, &["/cost"]).and_then(|cost| cost.parse().ok());
    Ok(Line {
        // A refunded charge is logged as 0, which is no cost. Then the route determines it.
        cost: cost.and_then(Cost::new),
        // The log has the instant at which the response ended.
        ..Line::logged(ended.before(recorded.took), recorded)
    })
}

/// Parses a line of Caddy's log.
pub(super) fn read_caddy(line: &str) -> Result<Line<'_>, LineError> {
    let (log, ended, mut recorded) = CADDY.read(line)?;
    if !log["request"].is_object() {
        return Err(LineError::Json("it has no request".to_owned()));
    }
    let header = |path| Cow::from(first(&log, &[path]).unwrap_or_default());
    recorded.referer = header("/request/headers/Referer/0");
    recorded.user_agent = header("/request/headers/User-Agent/0");
    recorded.at_origin = span(&log["duration"]);
    recorded.took = recorded.at_origin.unwrap_or_default();
    Ok(Line::logged(ended.before(recorded.took), recorded))
}

/// Parses a line of Traefik's log. Its durations are in nanoseconds.
pub(super) fn read_traefik(line: &str) -> Result<Line<'_>, LineError> {
    let (log, arrived, mut recorded) = TRAEFIK.read(line)?;
    let nanos = |name: &str| log[name].as_u64().map(Duration::from_nanos);
    recorded.took = nanos("Duration").unwrap_or_default();
    recorded.at_origin = nanos("OriginDuration").filter(|it| !it.is_zero());
    let header = |path| Cow::from(first(&log, &[path]).unwrap_or_default());
    recorded.referer = header("/request_Referer");
    recorded.user_agent = header("/request_User-Agent");
    Ok(Line::logged(arrived, recorded))
}

/// Returns the first value at these pointers. `-` and an empty text are no value.
fn first(log: &Value, paths: &[&str]) -> Option<String> {
    let found = paths.iter().filter_map(|path| text(log.pointer(path)?));
    found.into_iter().find(|text| !matches!(&**text, "" | "-"))
}

/// Returns a value that is text or a number. nginx writes numbers with or without quotes.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Parses a duration in seconds, or text with a unit such as `1.5ms`, as Caddy writes it.
fn span(value: &Value) -> Option<Duration> {
    const UNITS: [(&str, f64); 5] = [
        ("ns", 1e-9),
        ("µs", 1e-6),
        ("us", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
    ];
    let text = text(value)?;
    let mut units = UNITS.iter();
    let split = units.find_map(|(name, seconds)| Some((text.strip_suffix(name)?, *seconds)));
    let (number, unit_seconds) = split.unwrap_or((&text, 1.0));
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit_seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Form;
    use crate::replay::line::tests::get_of_agent;

    #[test]
    fn arrivals_are_computed_from_the_ends_in_json() {
        for line in [
            "{\"time\":\"2026-11-21T03:33:47.5Z\",\"target\":\"/a?b\",\"duration_seconds\":0.5}",
            "{\"msec\":1795232027.5,\"request\":\"GET /a?b HTTP/1.1\",\"request_time\":\"0.500\"}",
        ] {
            let line = read(line).unwrap();
            assert_eq!(line.time.as_nanos(), 1_795_232_027_000_000_000);
            assert_eq!(line.path, "/a");
        }
    }

    #[test]
    fn nginx_names_are_known_and_unknown_fields_are_ignored() {
        let line = read(
            "{\"time_local\":\"21/Nov/2026:04:33:47 +0100\",\"msec\":\"1795232027.349\",\
             \"time_iso8601\":\"2026-11-21T04:33:47+01:00\",\"remote_addr\":\"192.0.2.1\",\
             \"request\":\"POST /a HTTP/1.1\",\"status\":\"200\",\"http_referer\":\"-\",\
             \"http_user_agent\":\"curl \\\"8\\\"\",\"client\":null,\"uri\":{\"a\":[1]},\"zone\":true}",
        )
        .unwrap();
        assert_eq!(line.time.as_nanos(), 1_795_232_027_349_000_000);
        let recorded = line.recorded.unwrap();
        assert_eq!(recorded.client, "192.0.2.1".parse().ok());
        assert_eq!((&*recorded.method, &*recorded.target), ("POST", "/a"));
        assert_eq!(recorded.referer, "");
        assert_eq!(recorded.user_agent, "curl \"8\"");
        assert_eq!(recorded.keyed, None);
        let clock = read("{\"time_iso8601\":\"2026-11-21T04:33:47+01:00\"}").unwrap();
        assert_eq!(clock.recorded.unwrap().utc_offset, 3600);
    }

    #[test]
    fn json_has_the_time_of_a_request_at_its_origin() {
        let at_origin = |fields: &str| {
            let line = format!("{{\"msec\":5,{fields}}}");
            let recorded = read(&line).unwrap().recorded.unwrap();
            recorded.at_origin.map(|span| span.as_millis())
        };
        let own = "\"duration_seconds\":0.9,\"queue_seconds\":0.5";
        let found = at_origin(&format!("{own},\"origin_seconds\":0.1"));
        assert_eq!(found, Some(400));
        let gated = format!("{own},\"origin_seconds\":0.1,\"origin_queue_seconds\":0.1");
        assert_eq!(at_origin(&gated), Some(300));
        assert_eq!(at_origin(own), None, "it did not reach an origin");
        assert_eq!(at_origin("\"request_time\":\"0.250\""), Some(250));
        let nginx = "\"request_time\":0.25,\"upstream_response_time\":";
        assert_eq!(at_origin(&format!("{nginx}\"0.100, 0.050\"")), Some(150));
        assert_eq!(at_origin(&format!("{nginx}\"-\"")), None);
        assert_eq!(at_origin("\"status\":200"), None);
    }

    #[test]
    fn an_unparsable_request_counts_too() {
        let line = read("{\"time\":\"2026-11-21T03:33:47Z\",\"client\":\"unix:\",\"status\":408}");
        let line = line.unwrap();
        assert_eq!(line.path, "/");
        assert_eq!(line.recorded.unwrap().client, None);
    }

    #[test]
    fn a_line_without_a_time_is_an_error() {
        let lines = "{}|{\"time\":\"\"}|{\"target\":\"/\"}|{\"time\":[]}|[]|{";
        for line in lines.split('|') {
            assert!(matches!(read(line), Err(LineError::Json(_))), "{line}");
        }
        for time in ["\"now\"", "1795232027349", "\"1969-01-01T00:00:00Z\""] {
            let line = format!("{{\"time\":{time}}}");
            assert!(matches!(read(&line), Err(LineError::Time(_))), "{line}");
        }
    }

    const CADDY_LINE: &str = "{\"level\":\"info\",\"ts\":1795232027.5,\"logger\":\"http.log.access\",\"msg\":\"handled request\",\"request\":{\"remote_ip\":\"198.51.100.9\",\"remote_port\":\"41342\",\"client_ip\":\"192.0.2.7\",\"proto\":\"HTTP/2.0\",\"method\":\"GET\",\"host\":\"www.example\",\"uri\":\"/a?b=1\",\"headers\":{\"User-Agent\":[\"curl/8\"]}},\"bytes_read\":0,\"user_id\":\"\",\"duration\":0.25,\"size\":10,\"status\":200,\"resp_headers\":{\"Server\":[\"Caddy\"]}}";

    #[test]
    fn the_arrival_of_caddy_is_the_logged_time_minus_the_duration() {
        assert_eq!(Form::detect(CADDY_LINE), Form::Caddy);
        let expected = get_of_agent("curl/8", 1_795_232_027_250_000_000, 250, 250);
        assert_eq!(read_caddy(CADDY_LINE), Ok(expected));
    }

    #[test]
    fn times_and_durations_of_caddy_may_be_text() {
        let text = CADDY_LINE
            .replace("1795232027.5", "\"2026-11-21T04:33:47.5+01:00\"")
            .replace("\"duration\":0.25", "\"duration\":\"250ms\"")
            .replace("\"client_ip\":\"192.0.2.7\",", "");
        let line = read_caddy(&text).unwrap();
        assert_eq!(line.time.as_nanos(), 1_795_232_027_250_000_000);
        let recorded = line.recorded.unwrap();
        assert_eq!(recorded.utc_offset, 3600);
        assert_eq!(recorded.client, "198.51.100.9".parse().ok());
    }

    #[test]
    fn other_lines_of_caddy_are_errors() {
        let lines = "{\"ts\":1,\"msg\":\"serving\"}|{\"ts\":1,\"request\":{|{}";
        for line in lines.split('|') {
            let is_refused = matches!(read_caddy(line), Err(LineError::Json(_)));
            assert!(is_refused, "{line}");
        }
        let odd = CADDY_LINE.replace("1795232027.5", "\"true\"");
        assert!(matches!(read_caddy(&odd), Err(LineError::Time(_))));
    }
}
