//! HAProxy's HTTP log (`option httplog`), with or without the prefix of syslog.

use std::time::Duration;

use super::{
    Line, LineError, Recorded, parse_address, request_parts, time, truncated, without_port,
};

/// Error of a line that is not of HAProxy's HTTP log.
const NOT_HAPROXY: LineError = LineError::Format(
    "HAProxy's HTTP log: client:port [time] frontend backend/server timers status bytes ... \"request\"",
);

/// Length of a time such as `21/Nov/2026:03:33:47.349`.
const TIME_LENGTH: usize = 24;
/// Length of its milliseconds, with the point.
const MILLIS_LENGTH: usize = 4;

/// Splits a line at the time in brackets: the client before it, the time, and the text after it.
///
/// HAProxy's time has milliseconds and no zone. `None` if there is no such time.
fn split_at_time(line: &str) -> Option<(&str, &str, &str)> {
    line.match_indices('[').find_map(|(bracket, _)| {
        let (time, rest) = line[bracket + 1..].split_at_checked(TIME_LENGTH)?;
        let rest = rest.strip_prefix("] ")?;
        let bytes = time.as_bytes();
        // As in `21/Nov/2026:03:33:47.349`.
        let is_time = bytes[2] == b'/' && bytes[11] == b':' && bytes[20] == b'.';
        let client = line[..bracket].split_whitespace().next_back();
        is_time.then_some((client.unwrap_or_default(), time, rest))
    })
}

/// Parses a line.
pub(super) fn read(line: &str) -> Result<Line<'_>, LineError> {
    let (client, begun, rest) = split_at_time(line).ok_or(NOT_HAPROXY)?;
    let (whole, millis) = begun.split_at(TIME_LENGTH - MILLIS_LENGTH);
    let nanos = time::parse_seconds(&format!("0{millis}"));
    // HAProxy writes no time zone.
    let read = time::parse_local(&format!("{whole} +0000")).zip(nanos);
    let ((begun, _), nanos) = read.ok_or_else(|| LineError::Time(truncated(begun)))?;
    // The fields after frontend and backend/server are the timers TR/Tw/Tc/Tr/Ta: to receive the
    // head, in the queue, to connect, until the response, and all since the first byte.
    let timers = rest.split_whitespace().nth(2).ok_or(NOT_HAPROXY)?;
    let timers: Vec<Option<Duration>> = timers.split('/').map(milliseconds).collect();
    let [head_time, queue, connect, _, active] = timers[..] else {
        return Err(NOT_HAPROXY);
    };
    let head_time = head_time.unwrap_or_default();
    let took = active.unwrap_or_default().saturating_sub(head_time);
    let at_origin = connect.map(|_| took.saturating_sub(queue.unwrap_or_default()));
    let (_, quoted) = rest.split_once('"').ok_or(NOT_HAPROXY)?;
    let request = quoted.split('"').next().unwrap_or_default();
    let (method, target) = request_parts(request);
    let recorded = Recorded {
        client: parse_address(without_port(client)),
        method: method.into(),
        target: target.into(),
        took,
        at_origin,
        ..Recorded::default()
    };
    // The line has the time of the first byte. A request arrives at the limits with its whole head.
    let arrived = begun + Duration::from_nanos(nanos) + head_time;
    Ok(Line::logged(arrived, recorded))
}

/// Parses a timer; `None` for -1, which means that the phase was not reached.
fn milliseconds(text: &str) -> Option<Duration> {
    let millis = text.trim_start_matches('+').parse().ok()?;
    Some(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Form;
    use crate::replay::line::tests::get_of_agent;

    const LINE: &str = "192.0.2.7:33317 [21/Nov/2026:03:33:47.349] http-in app/srv1 10/20/30/69/159 200 2750 - - ---- 1/1/1/1/0 0/0 {www.example} {} \"GET /a?b=1 HTTP/1.1\"";

    #[test]
    fn the_http_log_is_read_with_and_without_syslog() {
        let syslog = format!("Nov 21 03:33:47 lb1 haproxy[14389]: {LINE}");
        for text in [LINE, &syslog] {
            assert_eq!(Form::detect(text), Form::Haproxy, "{text}");
            let expected = get_of_agent("", 1_795_232_027_359_000_000, 149, 129);
            assert_eq!(read(text), Ok(expected));
        }
    }

    #[test]
    fn a_request_that_reached_no_server_has_no_time_at_the_origin() {
        let bad = LINE
            .replace("10/20/30/69/159", "-1/-1/-1/-1/5000")
            .replace("GET /a?b=1 HTTP/1.1", "<BADREQ>")
            .replace("192.0.2.7", "2001:db8::7");
        let line = read(&bad).unwrap();
        assert_eq!(line.path, "/");
        let recorded = line.recorded.unwrap();
        assert_eq!(recorded.at_origin, None);
        assert_eq!(recorded.client, "2001:db8::7".parse().ok());
        let late = LINE.replace("/159", "/+159");
        let took = read(&late).unwrap().recorded.unwrap().took;
        assert_eq!(took, Duration::from_millis(149));
    }

    #[test]
    fn a_truncated_line_is_an_error() {
        assert_eq!(read("192.0.2.7:1 [x] http-in"), Err(NOT_HAPROXY));
        assert_eq!(read(&LINE[..60]), Err(NOT_HAPROXY));
        let odd = LINE.replace("Nov/2026", "Nix/2026");
        assert!(matches!(read(&odd), Err(LineError::Time(_))));
        for end in 0..LINE.len() {
            let _any = read(&LINE[..end]);
        }
    }
}
