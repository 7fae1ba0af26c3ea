//! The access log of an AWS Application Load Balancer.

use std::time::Duration;

use super::spans::seconds;
use super::{
    Line, LineError, Recorded, address, field_value, request_parts, time, truncated, without_port,
};

/// Types of requests: the first word of each line.
const KINDS: [&str; 6] = ["http", "https", "h2", "grpcs", "ws", "wss"];

/// Returns whether a line begins with a type of request and a time.
pub(super) fn is(line: &str) -> bool {
    let mut words = line.split(' ');
    let is_kind = words.next().is_some_and(|word| KINDS.contains(&word));
    is_kind && words.next().is_some_and(|word| time::any(word).is_some())
}

/// Parses a line.
pub(super) fn read(line: &str) -> Result<Line<'_>, LineError> {
    let mut quoted = line.split('"');
    let (Some(before), Some(request), Some(_), Some(agent)) =
        (quoted.next(), quoted.next(), quoted.next(), quoted.next())
    else {
        return Err(LineError::Alb);
    };
    let words: Vec<&str> = before.split_whitespace().collect();
    // Fields: type, time, load balancer, client:port, target:port, three durations, status.
    let [
        _,
        ended,
        _,
        client,
        _,
        request_time,
        target_time,
        response_time,
        ..,
    ] = words[..]
    else {
        return Err(LineError::Alb);
    };
    let (ended, _) = time::any(ended).ok_or_else(|| LineError::Time(truncated(ended)))?;
    // -1 is no duration: that phase was not reached.
    let times = [request_time, target_time, response_time].map(seconds);
    let [_, target_time, response_time] = times;
    let spans = times.into_iter().flatten();
    let total = spans.fold(Duration::ZERO, Duration::saturating_add);
    // The trace, the domain and the certificate are between the agent and the creation time.
    let created = quoted
        .nth(6)
        .and_then(|rest| rest.split_whitespace().nth(1));
    let created = created.and_then(time::any).map(|(created, _)| created);
    let came = created.filter(|created| *created <= ended);
    let came = came.unwrap_or_else(|| ended.before(total));
    let (method, uri) = request_parts(request);
    let recorded = Recorded {
        client: address(without_port(client).trim_matches(['[', ']'])),
        method: method.into(),
        target: uri.into(),
        user_agent: field_value(Some(agent)),
        took: ended.since(came),
        at_origin: target_time
            .map(|target_time| target_time.saturating_add(response_time.unwrap_or_default())),
        ..Recorded::default()
    };
    Ok(Line::logged(came, recorded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Form;
    use crate::replay::line::tests::get_of_agent;

    const LINE: &str = "https 2026-11-21T03:33:47.500000Z app/edge/0123456789abcdef 192.0.2.7:2817 198.51.100.1:80 0.001 0.200 0.050 200 200 34 366 \"GET https://www.example:443/a?b=1 HTTP/2.0\" \"curl/8\" TLS_AES_128_GCM_SHA256 TLSv1.3 arn:aws:elasticloadbalancing:eu:1:targetgroup/app/1 \"Root=1-1-1\" \"www.example\" \"arn:aws:acm:eu:1:certificate/1\" 0 2026-11-21T03:33:47.100000Z \"forward\" \"-\" \"-\" \"198.51.100.1:80\" \"200\" \"-\" \"-\"";

    #[test]
    fn the_arrival_is_the_creation_time() {
        assert_eq!(Form::of(LINE), Form::Alb);
        let expected = get_of_agent("curl/8", 1_795_232_027_100_000_000, 400, 250);
        assert_eq!(read(LINE), Ok(expected));
    }

    #[test]
    fn without_a_creation_time_the_arrival_is_computed_from_durations() {
        let old = LINE.split(" TLS_").next().unwrap();
        let line = read(old).unwrap();
        assert_eq!(line.time.as_nanos(), 1_795_232_027_249_000_000);
        let failed = LINE.replace("0.001 0.200 0.050", "-1 -1 -1");
        let recorded = read(&failed).unwrap().recorded.unwrap();
        assert_eq!(recorded.at_origin, None);
        assert_eq!(read("https 2026"), Err(LineError::Alb));
        let odd = LINE.replace("2026-11-21T03:33:47.5", "then");
        assert!(matches!(read(&odd), Err(LineError::Time(_))));
        for end in 0..LINE.len() {
            let _any = read(&LINE[..end]);
        }
    }
}
