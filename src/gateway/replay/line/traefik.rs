//! Traefik's access log: its common log format (`combined` and more fields), and its JSON.

use std::time::Duration;

use super::{Line, LineError, combined, json};

/// Error of a line that is not of Traefik's access log.
const NOT_TRAEFIK: LineError =
    LineError::Format("Traefik's access log: its common format, or JSON");

/// Parses the duration at the end of a line in the common format: `"http://198.51.100.1:80" 12ms`.
fn duration(line: &str) -> Option<Duration> {
    let (_, last) = line.trim_end().rsplit_once("\" ")?;
    let millis = last.strip_suffix("ms")?.parse().ok()?;
    Some(Duration::from_millis(millis))
}

/// Parses a line.
pub(super) fn read(line: &str) -> Result<Line<'_>, LineError> {
    if line.trim_start().starts_with('{') {
        return json::read_traefik(line);
    }
    let took = duration(line).ok_or(NOT_TRAEFIK)?;
    let mut read = combined::read(line)?;
    if let Some(recorded) = &mut read.recorded {
        recorded.took = took;
        recorded.at_origin = Some(took);
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Form;
    use crate::replay::line::tests::get_of_agent;

    const COMMON: &str = "192.0.2.7 - - [21/Nov/2026:03:33:47 +0000] \"GET /a?b=1 HTTP/1.1\" 200 66 \"-\" \"curl/8\" 17 \"app@docker\" \"http://198.51.100.1:80\" 250ms";
    const JSON: &str = "{\"ClientAddr\":\"192.0.2.7:58310\",\"ClientHost\":\"192.0.2.7\",\"DownstreamStatus\":200,\"Duration\":250000000,\"OriginDuration\":240000000,\"Overhead\":10000000,\"RequestMethod\":\"GET\",\"RequestPath\":\"/a?b=1\",\"RouterName\":\"app@docker\",\"StartLocal\":\"2026-11-21T04:33:47.1+01:00\",\"StartUTC\":\"2026-11-21T03:33:47.1Z\",\"request_User-Agent\":\"curl/8\",\"level\":\"info\",\"msg\":\"\",\"time\":\"2026-11-21T03:33:47Z\"}";

    #[test]
    fn both_forms_have_the_arrival_of_the_request() {
        let whole = 1_795_232_027_000_000_000;
        for (text, nanos, at_origin) in [(COMMON, whole, 250), (JSON, whole + 100_000_000, 240)] {
            assert_eq!(Form::detect(text), Form::Traefik, "{text}");
            let expected = get_of_agent("curl/8", nanos, 250, at_origin);
            assert_eq!(read(text), Ok(expected));
        }
    }

    #[test]
    fn a_request_without_a_service_has_no_time_at_an_origin() {
        let json = JSON.replace("\"OriginDuration\":240000000,", "");
        assert_eq!(read(&json).unwrap().recorded.unwrap().at_origin, None);
        assert_eq!(read("192.0.2.7 - -"), Err(NOT_TRAEFIK));
    }
}
