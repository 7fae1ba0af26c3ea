//! Rules for sharing a response: whether, and for how long (RFC 9111, sections 3 and 4).
//!
//! A *kind* is the requests with one key, which may share a response. An answer is *fresh* during
//! its lifetime and *stale* afterwards.

use std::time::Duration;

use config::Collapse;
use limit::Moment;

use super::date::parse_date;
use super::directives::{Directives, seconds};
use crate::http::message::decimal;

/// Terms under which an answer may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Freshness lifetime, which begins when the answer was made; `None` if the answer states none.
    lifetime: Option<Duration>,
    /// Age of the answer when it arrived.
    age: Duration,
    /// Time after the lifetime for which it may be used while it is refreshed (RFC 5861).
    while_revalidate: Duration,
    /// Time after the lifetime for which it may be used while the origin fails (RFC 5861).
    if_error: Duration,
    /// Whether `stale` of the route applies: the answer may be used once it is stale.
    may_be_stale: bool,
}

/// Verdict on a response: whether it may answer the waiting requests, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The response answers all waiting requests.
    Shared(Terms),
    /// The response answers the leader only. The others may get another response.
    Unshareable,
    /// The origin failed.
    Failed,
}

/// Instants until which an answer may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Until then new requests get the answer.
    pub fresh: Moment,
    /// Until then new requests get the answer, and it is refreshed in the background.
    pub revalidate: Moment,
    /// Until then new requests get the answer if the origin fails.
    pub error: Moment,
}

impl Windows {
    /// Returns the instant from which the answer can no longer be used.
    pub fn end(&self) -> Moment {
        self.fresh.max(self.revalidate).max(self.error)
    }
}

/// Statuses that are cacheable by default (RFC 9110, section 15.1), except 206.
///
/// A partial response (206) does not answer other requests.
const SHAREABLE: [u16; 11] = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501];

/// Media types of bodies that never end. Other endless bodies are detected by their duration.
const STREAMS: [&[u8]; 3] = [
    b"application/stream+json",
    b"multipart/x-mixed-replace",
    b"text/event-stream",
];

/// Returns whether a body with this `Content-Type` never ends.
pub(crate) fn is_stream(content_type: &[u8]) -> bool {
    let media = content_type.split(|byte| *byte == b';').next();
    let media = media.unwrap_or_default().trim_ascii();
    STREAMS.iter().any(|it| media.eq_ignore_ascii_case(it))
}

/// Head of a response, with the parts that the rules of caches need.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// Status, at least 200.
    pub status: u16,
    /// Names and values of all fields of the origin.
    pub fields: &'a [(&'a [u8], &'a [u8])],
    /// Instant at which the request left for the origin, by the wall clock.
    pub sent: Moment,
    /// Instant at which the head arrived, by the wall clock, for comparison with `Date`.
    pub arrived: Moment,
}

impl Head<'_> {
    /// Returns the values of all fields of this name.
    fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s [u8]> {
        let is_named = move |found: &[u8]| found.eq_ignore_ascii_case(name.as_bytes());
        let fields = self.fields.iter();
        fields.filter(move |it| is_named(it.0)).map(|it| it.1)
    }

    /// Returns the date in a field; `Err` if the field is there and is not a date.
    fn date(&self, name: &str) -> Option<Result<Moment, ()>> {
        let value = self.all(name).next()?;
        Some(parse_date(value, self.arrived).ok_or(()))
    }

    /// Returns whether the answer differs between requests of its kind.
    fn varies(&self, collapse: &Collapse) -> bool {
        let names = self.all("vary");
        let names = names.flat_map(|it| it.split(|byte| *byte == b','));
        let mut names = names.map(<[u8]>::trim_ascii).filter(|it| !it.is_empty());
        names.any(|name| {
            let is_named = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            // No request of a kind has these fields.
            let is_absent =
                is_named("authorization") || is_named("cookie") && collapse.cookies.is_none();
            let is_in_key = is_named("host") || collapse.vary.iter().any(|it| is_named(it));
            !is_absent && !is_in_key
        })
    }

    /// Returns when the answer was made, by `Date`; without a valid one, when it arrived.
    fn made(&self) -> Moment {
        let date = self.date("date").and_then(Result::ok);
        date.unwrap_or(self.arrived)
    }

    /// Returns the freshness lifetime, from when the answer was made (RFC 9111, section 4.2.1).
    fn lifetime(&self, directives: &Directives) -> Option<Duration> {
        let stated = directives.s_maxage.or(directives.max_age);
        stated.or_else(|| {
            // An invalid date has expired (section 5.3).
            let Ok(expires) = self.date("expires")? else {
                return Some(Duration::ZERO);
            };
            let is_only = self.all("expires").nth(1).is_none();
            Some(if is_only {
                expires.since(self.made())
            } else {
                Duration::ZERO
            })
        })
    }

    /// Returns the age of the answer when it arrives (RFC 9111, section 4.2.3).
    ///
    /// An answer without `Age` is made by the origin itself, at the end of the time that the origin
    /// takes. So that time does not add to its age.
    fn age(&self) -> Duration {
        let apparent = self.arrived.since(self.made());
        // `Date` has a resolution of one second, so a shorter time is no age.
        let apparent = Some(apparent).filter(|it| *it >= Duration::from_secs(1));
        // The first member of a list counts. Anything but a number is ignored (section 5.1).
        let first = |line: &[u8]| seconds(line.split(|byte| *byte == b',').next()?);
        let stated = self.all("age").next().and_then(first);
        let stated = stated.map(|stated| stated + self.arrived.since(self.sent));
        apparent.max(stated).unwrap_or_default()
    }

    /// Decides which requests the answer may serve.
    pub fn judge(&self, collapse: &Collapse) -> Verdict {
        if self.status >= 500 && self.status != 501 {
            return Verdict::Failed;
        }
        // For other statuses, the fields do not matter: many error pages have `no-store`, which
        // says nothing about other requests.
        if !SHAREABLE.contains(&self.status) {
            return Verdict::Unshareable;
        }
        let directives = Directives::parse(self.all("cache-control"));
        // A stream has no end to wait for.
        let is_stream = self.all("content-type").next().is_some_and(is_stream);
        // `X-Accel-Expires` has precedence over `Cache-Control` and `Expires`, as in nginx. It
        // counts from the arrival.
        let accel_expires = accel_expires(self.all(ACCEL_EXPIRES), self.arrived);
        let forbids_sharing = directives.forbids_sharing && accel_expires.is_none();
        let is_private = is_stream || forbids_sharing || self.all("set-cookie").next().is_some();
        if is_private || self.varies(collapse) {
            return Verdict::Unshareable;
        }
        let age = self.age();
        let lifetime = match accel_expires {
            // `rest` counts from the arrival, but a lifetime counts from when the answer was made.
            Some(rest) => Some(age.saturating_add(rest)),
            None => self.lifetime(&directives),
        };
        if lifetime.is_some_and(|lifetime| lifetime <= age) {
            return Verdict::Unshareable;
        }
        let unless_forbidden = |span: Option<Duration>| {
            span.filter(|_| !directives.forbids_stale)
                .unwrap_or_default()
        };
        Verdict::Shared(Terms {
            lifetime,
            age,
            while_revalidate: unless_forbidden(directives.stale_while_revalidate),
            if_error: unless_forbidden(directives.stale_if_error),
            // `s-maxage` also forbids stale answers (section 5.2.2.10).
            may_be_stale: !directives.forbids_stale && directives.s_maxage.is_none(),
        })
    }
}

impl Terms {
    /// Returns the age of the answer, `since` its arrival.
    pub fn age(&self, since: Duration) -> Duration {
        self.age + since
    }

    /// Returns the terms as if the answer had arrived `span` later.
    pub fn later(self, span: Duration) -> Self {
        Self {
            age: self.age + span,
            ..self
        }
    }

    /// Returns the instants until which an answer that arrived at `arrived` may be used.
    pub fn windows(&self, collapse: &Collapse, arrived: Moment) -> Windows {
        let lifetime_left = self.lifetime.map(|it| it.saturating_sub(self.age));
        let fresh_for = lifetime_left.map_or(collapse.keep, |left| left.min(collapse.keep));
        let fresh = arrived + fresh_for;
        let keeps_answers = !collapse.keep.is_zero();
        let stale = Some(collapse.stale).filter(|_| self.may_be_stale);
        // A route without `keep` gives no kept answer to new requests.
        let while_revalidate = Some(self.while_revalidate).filter(|_| keeps_answers);
        // If the origin fails, the answer may be used as long as its `stale-if-error` allows,
        // whatever `keep` is.
        let if_error = Some(self.if_error).filter(|it| !it.is_zero());
        let if_error = if_error.map(|it| arrived + lifetime_left.unwrap_or(collapse.keep) + it);
        Windows {
            fresh,
            revalidate: fresh + while_revalidate.unwrap_or_default(),
            error: (fresh + stale.unwrap_or_default()).max(if_error.unwrap_or(fresh)),
        }
    }
}

/// Name of a field, in lower case, which overrides the lifetime of a response.
///
/// The gateway removes the field, so no client gets it.
pub(crate) const ACCEL_EXPIRES: &str = "x-accel-expires";

/// Parses `X-Accel-Expires`: the time from `arrived` for which a response may be used.
///
/// Zero: it may not be used for another request. The value is a number of seconds, or `@` and the
/// Unix time until which the response may be used. As in nginx
/// (`ngx_http_upstream_process_accel_expires`), only the first line counts. Returns `None` if the
/// line is not a number or exceeds an `i64`: the field is then ignored.
pub(super) fn accel_expires<'a>(
    mut lines: impl Iterator<Item = &'a [u8]>,
    arrived: Moment,
) -> Option<Duration> {
    let value = lines.next()?;
    let until = value.strip_prefix(b"@");
    let number = decimal(until.unwrap_or(value))?.parse::<i64>().ok()?;
    let seconds = Duration::from_secs(number.try_into().ok()?);
    Some(match until {
        Some(_) => (Moment::default() + seconds).since(arrived),
        None => seconds,
    })
}

#[cfg(test)]
mod tests;
