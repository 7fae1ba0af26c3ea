//! The `combined` access log of nginx and Apache, and the gateway's own text log.
//!
//! Traefik's common format is the same at its begin.

use std::borrow::Cow;
use std::net::IpAddr;

use super::{
    Line, LineError, Recorded, field_value, parse_address, request_parts, spans, time, truncated,
};

/// Error of a line that is not in the combined format.
pub(super) const NOT_COMBINED: LineError = LineError::Format(
    "nginx's combined format: address - user [time] \"request\" status bytes \"referer\" \"agent\"",
);

/// Parses a line.
pub(super) fn read(line: &str) -> Result<Line<'_>, LineError> {
    let (first, rest) = line.split_once(' ').ok_or(NOT_COMBINED)?;
    let (client, rest) = skip_host(first, rest);
    let (_, rest) = rest.split_once('[').ok_or(NOT_COMBINED)?;
    let (time, rest) = rest.split_once("] \"").ok_or(NOT_COMBINED)?;
    // In turn, parts in quotes and parts between them: request, status and bytes, referer, a blank,
    // agent.
    let mut parts = split_at_quotes(rest);
    let mut next = || parts.next();
    let (Some(request), Some(_), referer, _, agent) = (next(), next(), next(), next(), next())
    else {
        return Err(NOT_COMBINED);
    };
    // The user field comes from the client and may contain brackets.
    let time = time.rsplit_once('[').map_or(time, |(_, time)| time);
    let (time, utc_offset) =
        time::parse_local(time).ok_or_else(|| LineError::Time(truncated(time)))?;
    let (method, target) = request_parts(request);
    let recorded = Recorded {
        client: parse_address(client),
        method: method.into(),
        target: target.into(),
        referer: field_value(referer),
        user_agent: field_value(agent),
        keyed: zone_and_key(&mut parts),
        at_origin: spans::in_text(rest),
        utc_offset,
        ..Recorded::default()
    };
    Ok(Line::logged(time, recorded))
}

/// Returns the client and the text after it, from the first word of a line and the rest.
///
/// Apache's `vhost_combined` begins with `host:port`. Then the second word is the client.
fn skip_host<'a>(first: &'a str, rest: &'a str) -> (&'a str, &'a str) {
    let is_address = |word: &str| word.parse::<IpAddr>().is_ok();
    let second = rest
        .split_once(' ')
        .filter(|(second, _)| first.contains(':') && !is_address(first) && is_address(second));
    second.unwrap_or((first, rest))
}

/// Splits a text at its quotes. Apache and Traefik write `\"` for a quote inside quoted text.
fn split_at_quotes(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        // A quote ends the part unless an odd number of backslashes is before it.
        let end = text.match_indices('"').map(|(at, _)| at).find(|at| {
            let before = text[..*at].bytes().rev();
            before.take_while(|byte| *byte == b'\\').count() % 2 == 0
        });
        rest = end.map(|end| &text[end + 1..]);
        Some(end.map_or(text, |end| &text[..end]))
    })
}

/// Parses the fields that the gateway's own log adds after the agent: ` zone="…" key="…"`.
fn zone_and_key<'a>(
    parts: &mut impl Iterator<Item = &'a str>,
) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    let zone = (parts.next()? == " zone=").then(|| parts.next())??;
    let key = (parts.next()? == " key=").then(|| parts.next())??;
    Some((zone.into(), key.into()))
}
