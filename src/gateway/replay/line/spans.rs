//! Durations in access logs: above all, the time of requests at their origin.

use std::time::Duration;

/// Computes the time at the origin from the gateway's own log: the duration without the queues.
///
/// `duration`: from the arrival to the last byte of the response. `queues`: waits in the zone's
/// queue and in the origin's queue.
pub(super) fn after_queues(
    duration: Option<Duration>,
    queues: [Option<Duration>; 2],
) -> Option<Duration> {
    let in_queues: Duration = queues.into_iter().flatten().sum();
    duration.map(|duration| duration.saturating_sub(in_queues))
}

/// Returns the time at the origin from a text line of the gateway's own log.
///
/// Its last fields are ` queue=… origin=… duration=…`. `None` if the request reached no origin.
pub(super) fn in_text(line: &str) -> Option<Duration> {
    let field = |name| field(line, name).and_then(seconds);
    field("origin")?;
    after_queues(field("duration"), [field("queue"), field("origin_queue")])
}

/// Returns a field after the last quote of a text line of the gateway's log.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, after_quote) = line.rsplit_once('"')?;
    let mut fields = after_quote.split_ascii_whitespace();
    fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
}

/// Parses nginx's `$upstream_response_time`: the sum of the times of all servers that were tried.
///
/// nginx writes `-` for a server that did not answer, and for a request that reached no server.
pub(super) fn sum_of_servers(text: &str) -> Option<Duration> {
    text.split([',', ':'])
        .filter_map(|time| seconds(time.trim()))
        .reduce(Duration::saturating_add)
}

/// Parses a duration in seconds.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_own_text_log_has_the_time_after_the_queue() {
        let line = r#"x "curl" zone="z" key="origin=9" limit_status=delayed excess=1.000"#;
        let with = |fields: &str| in_text(&format!("{line} {fields}"));
        let found = with("queue=0.95 origin=0.012 duration=0.963");
        assert_eq!(found, Some(13 * MS));
        assert_eq!(with("origin=0.012 duration=0.963"), Some(963 * MS));
        assert_eq!(with("queue=0.95 duration=0.963"), None, "it was rejected");
        assert_eq!(with("origin=0.012 duration=x"), None);
        assert_eq!(in_text(r#"x "curl" 0.5"#), None);
    }

    #[test]
    fn the_servers_that_nginx_asked_count_together() {
        assert_eq!(sum_of_servers("0.250"), Some(250 * MS));
        assert_eq!(sum_of_servers("0.250, 0.100 : -, 0.050"), Some(400 * MS));
        assert_eq!(sum_of_servers("-"), None);
        assert_eq!(sum_of_servers("-1"), None);
    }
}
