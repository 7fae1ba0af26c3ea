//! The access log of an AWS Application Load Balancer.

use std::time::Duration;

use super::spans::seconds;
use super::{
    Line, LineError, Recorded, field_value, parse_address, request_parts, time, truncated,
    without_port,
};

/// Error of a line that is not of an ALB's access log.
const NOT_ALB: LineError = LineError::Format(
    "the access log of an ALB: type time elb client:port target:port ... \"request\" \"agent\"",
);

/// Types of requests: the first word of a line.
const TYPES: [&str; 6] = ["http", "https", "h2", "grpcs", "ws", "wss"];

/// Returns whether a line begins with the type of a request.
pub(super) fn begins_with_type(line: &str) -> bool {
    let first = line.split_whitespace().next();
    first.is_some_and(|word| TYPES.contains(&word))
}

/// Parses a line. The request arrived at its creation time, or else before the durations.
pub(super) fn read(line: &str) -> Result<Line<'_>, LineError> {
    let mut quoted = line.split('"');
    let (Some(fields), Some(request), Some(_), Some(agent)) =
        (quoted.next(), quoted.next(), quoted.next(), quoted.next())
    else {
        return Err(NOT_ALB);
    };
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // Type, end time, load balancer, client:port, target:port, then the durations of three phases:
    // before the target has the request, until its response begins, and until the response is sent.
    let [_, ended, _, client, _, before, at_target, after, ..] = fields[..] else {
        return Err(NOT_ALB);
    };
    let (ended, _) = time::parse_any(ended).ok_or_else(|| LineError::Time(truncated(ended)))?;
    // -1 is no duration: that phase was not reached.
    let phases = [before, at_target, after].map(seconds);
    let [_, at_target, after] = phases;
    let reached = phases.into_iter().flatten();
    let total = reached.fold(Duration::ZERO, Duration::saturating_add);
    // After the agent come trace, domain and certificate in quotes, a number, the creation time.
    let behind_certificate = quoted.nth(6);
    let created = behind_certificate.and_then(|rest| rest.split_whitespace().nth(1));
    let created = created.and_then(time::parse_any);
    let created = created.map(|(created, _offset)| created);
    let arrived = created.filter(|created| *created <= ended);
    let arrived = arrived.unwrap_or_else(|| ended.before(total));
    let (method, uri) = request_parts(request);
    let recorded = Recorded {
        client: parse_address(without_port(client).trim_matches(['[', ']'])),
        method: method.into(),
        target: uri.into(),
        user_agent: field_value(Some(agent)),
        took: ended.since(arrived),
        at_origin: at_target.map(|at_target| at_target.saturating_add(after.unwrap_or_default())),
        ..Recorded::default()
    };
    Ok(Line::logged(arrived, recorded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Form;
    use crate::replay::line::tests::get_of_agent;

    const LINE: &str = "https 2026-11-21T03:33:47.500000Z app/edge/0123456789abcdef 192.0.2.7:2817 198.51.100.1:80 0.001 0.200 0.050 200 200 34 366 \"GET https://www.example:443/a?b=1 HTTP/2.0\" \"curl/8\" TLS_AES_128_GCM_SHA256 TLSv1.3 arn:aws:elasticloadbalancing:eu:1:targetgroup/app/1 \"Root=1-1-1\" \"www.example\" \"arn:aws:acm:eu:1:certificate/1\" 0 2026-11-21T03:33:47.100000Z \"forward\" \"-\" \"-\" \"198.51.100.1:80\" \"200\" \"-\" \"-\"";

    #[test]
    fn the_arrival_is_the_creation_time() {
        assert_eq!(Form::detect(LINE), Form::Alb);
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
        assert_eq!(read("https 2026"), Err(NOT_ALB));
        let odd = LINE.replace("2026-11-21T03:33:47.5", "then");
        assert!(matches!(read(&odd), Err(LineError::Time(_))));
        for end in 0..LINE.len() {
            let _any = read(&LINE[..end]);
        }
    }
}
