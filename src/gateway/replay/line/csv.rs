//! Traces as CSV: `time_seconds,key[,route_path[,cost]]`.

use std::borrow::Cow;

use limit::{Cost, Moment};

use super::{Line, LineError, time, truncated};

/// Error of a line that is not CSV.
pub(super) const NOT_CSV: LineError = LineError::Format("time_seconds,key[,route_path[,cost]]");

/// Parses a line.
pub(super) fn read(line: &str) -> Result<Line<'_>, LineError> {
    let (time, rest) = field(line);
    let rest = rest.ok_or(NOT_CSV)?;
    let nanos = time::parse_seconds(&time).ok_or_else(|| LineError::Seconds(truncated(&time)))?;
    let (key, rest) = field(rest);
    let rest = rest.map(str::trim).unwrap_or_default();
    let (path, cost) = if rest.starts_with('"') {
        field(rest)
    } else {
        // A path may have commas without quotes. A number after the last comma is a cost.
        let split = rest.rsplit_once(',');
        let split = split.filter(|(_, cost)| cost.trim().parse::<f64>().is_ok());
        split.map_or((rest.into(), None), |(path, cost)| {
            (path.trim().into(), Some(cost))
        })
    };
    let cost = cost.map(str::trim).filter(|cost| !cost.is_empty());
    let cost = cost.map(|cost| {
        let number = cost.parse().ok().and_then(Cost::new);
        number.ok_or_else(|| LineError::Cost(truncated(cost)))
    });
    Ok(Line {
        time: Moment::from_nanos(nanos),
        key: Some(match key {
            Cow::Borrowed(key) => Cow::Borrowed(key.as_bytes()),
            Cow::Owned(key) => Cow::Owned(key.into_bytes()),
        }),
        path: if path.is_empty() { "/".into() } else { path },
        cost: cost.transpose()?,
        recorded: None,
    })
}

/// Returns the first field of a CSV line, and the text after its comma, if there is one.
///
/// A quoted field may have commas and doubled quotes (RFC 4180). If the quotes are not closed, or
/// if other text follows them, they are ordinary characters.
pub(super) fn field(line: &str) -> (Cow<'_, str>, Option<&str>) {
    if let Some(quoted) = line.trim_start().strip_prefix('"')
        && let Some(end) = closing_quote(quoted)
    {
        let after_quote = quoted[end + 1..].trim_start();
        let rest = after_quote.strip_prefix(',');
        if rest.is_some() || after_quote.is_empty() {
            let field = &quoted[..end];
            let has_quotes = field.contains('"');
            let unescaped = has_quotes.then(|| field.replace("\"\"", "\"").into());
            return (unescaped.unwrap_or(field.into()), rest);
        }
    }
    match line.split_once(',') {
        Some((field, rest)) => (field.trim().into(), Some(rest)),
        None => (line.trim().into(), None),
    }
}

/// Returns the end of a quoted field: the first quote that is not doubled.
fn closing_quote(quoted: &str) -> Option<usize> {
    let mut start = 0;
    loop {
        let quote = start + quoted[start..].find('"')?;
        if !quoted[quote + 1..].starts_with('"') {
            return Some(quote);
        }
        start = quote + 2;
    }
}
