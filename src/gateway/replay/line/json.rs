//! Access logs as JSON: the gateway's own, and logs of nginx with the names of its variables.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use limit::Cost;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Line, LineError, Recorded, address, asked, bare_target, fields, shown, spans, time};

/// The fields that are read. A line may have several fields with the same meaning.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Json<'a> {
    #[serde(borrow)]
    time: Said<'a>,
    time_iso8601: Said<'a>,
    time_local: Said<'a>,
    msec: Said<'a>,
    timestamp: Said<'a>,
    #[serde(rename = "@timestamp")]
    at_timestamp: Said<'a>,
    client: Said<'a>,
    remote_addr: Said<'a>,
    method: Said<'a>,
    request_method: Said<'a>,
    target: Said<'a>,
    request_uri: Said<'a>,
    uri: Said<'a>,
    request: Said<'a>,
    referer: Said<'a>,
    http_referer: Said<'a>,
    user_agent: Said<'a>,
    http_user_agent: Said<'a>,
    zone: Said<'a>,
    key: Said<'a>,
    duration_seconds: Said<'a>,
    queue_seconds: Said<'a>,
    origin_queue_seconds: Said<'a>,
    origin_seconds: Said<'a>,
    request_time: Said<'a>,
    upstream_response_time: Said<'a>,
    cost: Said<'a>,
}

pub(super) fn read(line: &str) -> Result<Line<'_>, LineError> {
    let json: Json = fields(line)?;
    // The most precise time first.
    let times = json.msec.or(json.time).or(json.time_iso8601);
    let times = times.or(json.timestamp).or(json.at_timestamp);
    let Some(logged) = times.or(json.time_local).text() else {
        let wanted = "it has no time, time_iso8601, time_local or msec";
        return Err(LineError::Json(wanted.to_owned()));
    };
    let (ended, ahead) = time::any(&logged).ok_or_else(|| LineError::Time(shown(&logged)))?;
    // The log has the time at which the answer ended. The simulation needs the time at which the
    // request came.
    let own = json.duration_seconds.span();
    let request_time = json.request_time.span();
    let took = own.or(request_time).unwrap_or_default();
    let at_origin = if json.origin_seconds.is_said() {
        spans::own(
            own,
            [json.queue_seconds.span(), json.origin_queue_seconds.span()],
        )
    } else if json.upstream_response_time.is_said() {
        let told = json.upstream_response_time.text();
        told.and_then(|told| spans::upstream(&told))
    } else {
        request_time
    };
    let mut method = json.method.or(json.request_method).text();
    let mut target = json.target.or(json.request_uri).or(json.uri).text();
    if target.is_none()
        && let Some(request) = json.request.text()
    {
        let (by, what) = asked(&request);
        (method, target) = (Some(by.to_owned().into()), Some(what.to_owned().into()));
    }
    // The gateway logs no target for a request that it could not parse.
    let target = bare_target(target.unwrap_or_default());
    let cost = json.cost.text();
    let client = json.client.or(json.remote_addr).text();
    let recorded = Recorded {
        client: client.and_then(|client| address(&client)),
        method: method.unwrap_or_default(),
        target,
        referer: its_own(json.referer, json.http_referer),
        user_agent: its_own(json.user_agent, json.http_user_agent),
        keyed: json.zone.whole().zip(json.key.whole()),
        took,
        at_origin,
        ahead,
    };
    Ok(Line {
        // What was given back counts as its route says.
        cost: cost.and_then(|cost| cost.parse().ok().and_then(Cost::new)),
        ..Line::logged(ended.before(took), recorded)
    })
}

/// The value of a header, from the gateway's field or nginx's.
///
/// The gateway leaves its field out if the header was absent.
fn its_own<'a>(ours: Said<'a>, nginx: Said<'a>) -> Cow<'a, str> {
    ours.whole().or_else(|| nginx.text()).unwrap_or_default()
}

/// The value of a field. nginx writes numbers with or without quotes.
#[derive(Default)]
enum Said<'a> {
    /// The field is absent, or its value is neither text nor a number.
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Number(f64),
}

impl<'a> Said<'a> {
    fn whole(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Nothing => None,
            Self::Text(text) => Some(text),
            Self::Number(number) => Some(number.to_string().into()),
        }
    }

    /// The value as text; `-` and an empty text are `None`.
    fn text(self) -> Option<Cow<'a, str>> {
        self.whole().filter(|text| !matches!(&**text, "" | "-"))
    }

    fn or(self, other: Self) -> Self {
        match &self {
            Self::Nothing => other,
            Self::Text(text) if matches!(&**text, "" | "-") => other,
            _ => self,
        }
    }

    fn is_said(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// The value as seconds.
    fn span(self) -> Option<Duration> {
        match self {
            Self::Nothing => None,
            Self::Text(text) => spans::seconds(&text),
            Self::Number(number) => Duration::try_from_secs_f64(number).ok(),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Said<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Said<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Said<'de>, E> {
        Ok(Said::Text(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Said<'de>, E> {
        Ok(Said::Text(text.to_owned().into()))
    }

    #[expect(clippy::cast_precision_loss, reason = "no time or span is as large")]
    fn visit_u64<E: Error>(self, number: u64) -> Result<Said<'de>, E> {
        Ok(Said::Number(number as f64))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Said<'de>, E> {
        Ok(Said::Nothing)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Said<'de>, E> {
        Ok(Said::Number(number))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Said<'de>, E> {
        Ok(Said::Nothing)
    }

    fn visit_unit<E: Error>(self) -> Result<Said<'de>, E> {
        Ok(Said::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Said<'de>, A::Error> {
        while all.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Said::Nothing)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Said<'de>, A::Error> {
        while all.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Said::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_tells_when_the_request_came_not_when_it_ended() {
        for line in [
            "{\"time\":\"2026-11-21T03:33:47.5Z\",\"target\":\"/a?b\",\"duration_seconds\":0.5}",
            "{\"msec\":1795232027.5,\"request\":\"GET /a?b HTTP/1.1\",\"request_time\":\"0.500\"}",
        ] {
            let line = read(line).unwrap();
            assert_eq!(
                (line.time.as_nanos(), &*line.path),
                (1_795_232_027_000_000_000, "/a")
            );
        }
    }

    #[test]
    fn nginx_names_are_known_and_what_is_unknown_is_no_matter() {
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
        assert_eq!(
            (&*recorded.referer, &*recorded.user_agent),
            ("", "curl \"8\"")
        );
        assert_eq!(recorded.keyed, None);
        let clock = read("{\"time_iso8601\":\"2026-11-21T04:33:47+01:00\"}").unwrap();
        assert_eq!(clock.recorded.unwrap().ahead, 3600);
    }

    #[test]
    fn json_tells_how_long_a_request_was_at_its_origin() {
        let at_origin = |fields: &str| {
            let line = format!("{{\"msec\":5,{fields}}}");
            let recorded = read(&line).unwrap().recorded.unwrap();
            recorded.at_origin.map(|span| span.as_millis())
        };
        let own = "\"duration_seconds\":0.9,\"queue_seconds\":0.5";
        assert_eq!(
            at_origin(&format!("{own},\"origin_seconds\":0.1")),
            Some(400)
        );
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
    fn a_request_that_could_not_be_read_came_too() {
        let line = read("{\"time\":\"2026-11-21T03:33:47Z\",\"client\":\"unix:\",\"status\":408}");
        let line = line.unwrap();
        assert_eq!(line.path, "/");
        assert_eq!(line.recorded.unwrap().client, None);
    }

    #[test]
    fn without_a_time_it_is_none() {
        for line in [
            "{}",
            "{\"time\":\"\"}",
            "{\"target\":\"/\"}",
            "{\"time\":[]}",
            "[]",
            "{",
        ] {
            assert!(matches!(read(line), Err(LineError::Json(_))), "{line}");
        }
        for time in ["\"now\"", "1795232027349", "\"1969-01-01T00:00:00Z\""] {
            let line = format!("{{\"time\":{time}}}");
            assert!(matches!(read(&line), Err(LineError::Time(_))), "{line}");
        }
    }
}
