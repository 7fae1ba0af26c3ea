//! Parser of `Cache-Control` in a response (RFC 9111, section 5.2.2): its directives.

use std::time::Duration;

use crate::http::message::decimal;

/// Upper bound of a directive's seconds (RFC 9111, section 1.2.2).
const MAX_SECONDS: u64 = 1 << 31;

/// Directives of the `Cache-Control` fields of a response that matter to a shared cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Directives {
    /// Whether no cache may use it for another request: `no-store`, `no-cache` or `private`.
    pub(super) forbids_sharing: bool,
    /// Whether it may not be used once it is stale: `must-revalidate` or `proxy-revalidate`.
    pub(super) forbids_stale: bool,
    pub(super) max_age: Option<Duration>,
    pub(super) s_maxage: Option<Duration>,
    pub(super) stale_while_revalidate: Option<Duration>,
    pub(super) stale_if_error: Option<Duration>,
}

impl Directives {
    /// Parses the values of all `Cache-Control` fields.
    ///
    /// Names are compared without case. A lifetime that is not a number, or that appears twice with
    /// different values, is zero (RFC 9111, section 4.2.1). A directive for certain fields only,
    /// such as `private="x"`, counts for the whole response.
    pub(super) fn parse<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut all = Self::default();
        for line in lines {
            let mut rest = line;
            while !rest.is_empty() {
                let (directive, after) = split_first(rest);
                all.add(directive);
                rest = after;
            }
        }
        all
    }

    /// Adds one directive, such as `max-age=60`. Unknown directives are ignored.
    fn add(&mut self, directive: &[u8]) {
        let equals = directive.iter().position(|byte| *byte == b'=');
        let (name, value) = directive.split_at(equals.unwrap_or(directive.len()));
        let value = value.strip_prefix(b"=");
        let name = name.trim_ascii().to_ascii_lowercase();
        let lifetime = match &*name {
            b"no-store" | b"no-cache" | b"private" => {
                self.forbids_sharing = true;
                return;
            }
            b"must-revalidate" | b"proxy-revalidate" => {
                self.forbids_stale = true;
                return;
            }
            b"max-age" => &mut self.max_age,
            b"s-maxage" => &mut self.s_maxage,
            b"stale-while-revalidate" => &mut self.stale_while_revalidate,
            b"stale-if-error" => &mut self.stale_if_error,
            _ => return,
        };
        let parsed = seconds(value.unwrap_or_default()).unwrap_or_default();
        *lifetime = match *lifetime {
            Some(before) if before != parsed => Some(Duration::ZERO),
            _ => Some(parsed),
        };
    }
}

/// Splits a list at the first comma outside a quoted string: the first directive, and the rest.
fn split_first(list: &[u8]) -> (&[u8], &[u8]) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (index, byte) in list.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => return (&list[..index], &list[index + 1..]),
            _ => {}
        }
    }
    if is_quoted {
        // An unterminated quoted string hides nothing: the list continues after the next comma.
        let comma = list.iter().position(|byte| *byte == b',');
        return comma.map_or((list, &[]), |index| (&list[..index], &list[index + 1..]));
    }
    (list, &[])
}

/// Parses seconds in digits, with or without quotes; `None` if they are not digits.
pub(super) fn seconds(value: &[u8]) -> Option<Duration> {
    let value = value.trim_ascii();
    let inner = value.strip_prefix(b"\"");
    let inner = inner.and_then(|it| it.strip_suffix(b"\""));
    // A number with too many digits is the upper bound.
    let seconds: u64 = decimal(inner.unwrap_or(value))?.parse().unwrap_or(u64::MAX);
    Some(Duration::from_secs(seconds.min(MAX_SECONDS)))
}
